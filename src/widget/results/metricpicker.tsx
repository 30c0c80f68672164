// What a sweep is judged by. A metric of tokens is sent as soon as its tokens are given; they are suggested from the
// latest answer.
import { useEffect, useId, useState } from "preact/hooks";
import { visibleToken } from "../../common/format";
import type { Answer, AnyMetric } from "../../common/wire";
import { typedToken } from "./patterns";

type Kind = "automatic" | "logit_diff" | "probability" | "kl";

const KINDS: ReadonlyArray<readonly [Kind, string]> = [
  ["automatic", "automatic"],
  ["logit_diff", "logit difference"],
  ["probability", "probability"],
  ["kl", "KL from clean"],
];

/** Two tokens to begin with: the likeliest after the edits, and the likeliest before, or the next one. */
export function suggestedTokens(answer: Answer | null): [string, string] {
  const by = (rank: "clean_rank" | "edited_rank") =>
    [...(answer?.rows ?? [])].sort((one, other) => one[rank] - other[rank]).map(({ token }) => token);
  const before = by("clean_rank");
  const first = by("edited_rank")[0] ?? "";
  return [first, before.find((token) => token !== first) ?? ""];
}

/** The metric of a kind with its tokens; undefined while a token is missing. */
export function metricOf(kind: Kind, first: string, second: string): AnyMetric | null | undefined {
  if (kind === "automatic") return null;
  if (kind === "kl") return { kind };
  if (first === "") return undefined;
  if (kind === "probability") return { kind, token: first };
  return second === "" ? undefined : { kind, correct: first, wrong: second };
}

interface Fields {
  kind: Kind;
  first: string;
  second: string;
}

function fieldsOf(metric: AnyMetric | null, suggested: [string, string]): Fields {
  const [first, second] = suggested;
  if (metric?.kind === "logit_diff") {
    return { kind: "logit_diff", first: String(metric.correct), second: String(metric.wrong) };
  }
  if (metric?.kind === "probability") return { kind: "probability", first: String(metric.token), second };
  if (metric?.kind === "kl") return { kind: "kl", first, second };
  return { kind: "automatic", first, second };
}

interface Props {
  metric: AnyMetric | null;
  answer: Answer | null;
  onChange(metric: AnyMetric | null): void;
}

export function MetricPicker({ metric, answer, onChange }: Props) {
  const id = useId();
  const suggested = suggestedTokens(answer);
  const [fields, setFields] = useState(() => fieldsOf(metric, suggested));
  const told = JSON.stringify(metric);
  // The kernel's metric wins; what is half typed here is kept otherwise.
  // biome-ignore lint/correctness/useExhaustiveDependencies: when the kernel's metric changes.
  useEffect(() => setFields(fieldsOf(metric, suggested)), [told]);

  const set = (change: Partial<Fields>) => {
    const next = { ...fields, ...change };
    setFields(next);
    const made = metricOf(next.kind, next.first, next.second);
    if (made !== undefined && JSON.stringify(made) !== told) onChange(made);
  };
  const token = (field: "first" | "second", label: string) => (
    <input
      type="text"
      size={9}
      list={`${id}-tokens`}
      aria-label={label}
      title="A token; ␣ or a space before it belongs to it"
      placeholder="␣token"
      value={visibleToken(fields[field]).replace("∅", "")}
      onChange={(event) => set({ [field]: typedToken(event.currentTarget.value) })}
    />
  );
  return (
    <div class="nnsl-field">
      <span id={`${id}-label`}>metric</span>
      <select
        aria-labelledby={`${id}-label`}
        value={fields.kind}
        onChange={(event) => set({ kind: event.currentTarget.value as Kind })}
      >
        {KINDS.map(([kind, text]) => (
          <option key={kind} value={kind}>
            {text}
          </option>
        ))}
      </select>
      {fields.kind === "logit_diff" && (
        <>
          {token("first", "Token whose logit counts")}
          <span>−</span>
          {token("second", "Token whose logit is taken off")}
        </>
      )}
      {fields.kind === "probability" && token("first", "Token")}
      <datalist id={`${id}-tokens`}>
        {(answer?.rows ?? []).map(({ token: text, token_id }) => (
          <option key={token_id} value={visibleToken(text)} />
        ))}
      </datalist>
    </div>
  );
}
