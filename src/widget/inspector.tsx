// The steps of the experiment: what each does and where, whether it is on, how strong it is, what became of it.
import { useId, useState } from "preact/hooks";
import { type Lab, useLab } from "../common/lab";
import { colourOf, indicesText, positionsText, readIndices, readPositions } from "../common/steps";
import type { AnyStep, Scope, StepView } from "../common/wire";
import { whyNot } from "./reach";

export function Inspector({ lab }: { lab: Lab }) {
  const { view } = useLab(lab);
  const why = whyNot(lab);
  const steps = view?.steps ?? [];
  const off = why !== "" || view === null;
  return (
    <section class="nnsl-steps" aria-label="Steps">
      <div class="nnsl-steps-head">
        <h2 class="nnsl-title">Steps</h2>
        <button
          type="button"
          class="nnsl-icon"
          disabled={off || !view?.can_undo}
          title={why || "Undo (Ctrl+Z)"}
          aria-label="Undo"
          onClick={() => void lab.act({ do: "undo" })}
        >
          ↶
        </button>
        <button
          type="button"
          class="nnsl-icon"
          disabled={off || !view?.can_redo}
          title={why || "Redo (Ctrl+Shift+Z)"}
          aria-label="Redo"
          onClick={() => void lab.act({ do: "redo" })}
        >
          ↷
        </button>
        <button
          type="button"
          class="nnsl-link"
          disabled={off || !steps.some(({ step }) => step.enabled !== false)}
          onClick={() => void lab.act({ do: "disable_all" })}
        >
          All off
        </button>
        <button
          type="button"
          class="nnsl-link"
          disabled={off || steps.length === 0}
          onClick={() => void lab.act({ do: "clear_steps" })}
        >
          Clear
        </button>
      </div>
      {steps.length === 0 ? (
        <p class="nnsl-dim nnsl-steps-none">
          None yet: this is the model as it is. Choose an operation and capture, zero, patch or scale it.
        </p>
      ) : (
        <ol class="nnsl-steps-list">
          {steps.map((step, number) => (
            <Step
              key={number}
              lab={lab}
              view={step}
              number={number}
              active={view?.active === number}
              off={off}
              scope={view?.scope ?? null}
            />
          ))}
        </ol>
      )}
    </section>
  );
}

interface StepProps {
  lab: Lab;
  view: StepView;
  number: number;
  active: boolean;
  off: boolean;
  scope: Scope | null;
}

// What is as expected needs no words.
const QUIET = new Set(["changed", "captured", "disabled"]);

function Step({ lab, view, number, active, off, scope }: StepProps) {
  const { step, title, where, error, report } = view;
  const enabled = step.enabled !== false;
  const change = (changed: AnyStep) => void lab.act({ do: "change_step", number, step: changed });
  return (
    <li class="nnsl-step" data-kind={colourOf(step.kind)} data-enabled={enabled} data-active={active}>
      <div class="nnsl-step-line">
        <button
          type="button"
          class="nnsl-switch"
          role="switch"
          aria-checked={enabled}
          aria-label={`${title} is on`}
          disabled={off}
          onClick={() => void lab.act({ do: "enable_step", number, enabled: !enabled })}
        />
        <button
          type="button"
          class="nnsl-step-title"
          aria-pressed={active}
          disabled={off}
          title={`${step.site}\nChoose this step: positions then belong to it.`}
          onClick={() => void lab.act({ do: "activate_step", number: active ? null : number })}
        >
          <span>{title}</span>
          <small>{where}</small>
        </button>
        <button
          type="button"
          class="nnsl-icon"
          aria-label={`Remove ${title}`}
          title="Remove"
          disabled={off}
          onClick={() => void lab.act({ do: "remove_step", number })}
        >
          ×
        </button>
      </div>
      {error !== "" && <p class="nnsl-problem">{error}</p>}
      {error === "" && report !== null && !QUIET.has(report.outcome) && (
        <p class="nnsl-step-outcome" data-outcome={report.outcome}>
          <b>{report.outcome}</b> {report.message}
        </p>
      )}
      <Strength step={step} off={off} change={change} />
      {active && step.kind !== "capture" && scope !== null && (
        <ScopeFields lab={lab} scope={scope} step={step} off={off} />
      )}
    </li>
  );
}

interface StrengthProps {
  step: AnyStep;
  off: boolean;
  change(step: AnyStep): void;
}

function Strength({ step, off, change }: StrengthProps) {
  if (step.kind === "scale")
    return (
      <NumberField
        name="factor"
        value={step.factor}
        off={off}
        commit={(factor) => change({ ...step, factor })}
      />
    );
  if (step.kind === "noise")
    return (
      <div class="nnsl-fields">
        <NumberField name="std" value={step.std} off={off} commit={(std) => change({ ...step, std })} />
        <NumberField
          name="seed"
          value={step.seed ?? 0}
          off={off}
          commit={(seed) => change({ ...step, seed })}
        />
      </div>
    );
  if (step.kind === "replace" && typeof step.value === "number")
    return (
      <NumberField name="value" value={step.value} off={off} commit={(value) => change({ ...step, value })} />
    );
  if (step.kind === "mean")
    return (
      <label class="nnsl-field-row">
        over
        <select
          class="nnsl-field"
          disabled={off}
          value={step.over ?? "positions"}
          onChange={(event) => change({ ...step, over: event.currentTarget.value as "positions" | "batch" })}
        >
          <option value="positions">positions</option>
          <option value="batch">batch</option>
        </select>
      </label>
    );
  return null;
}

interface NumberProps {
  name: string;
  value: number;
  off: boolean;
  commit(value: number): void;
}

function NumberField({ name, value, off, commit }: NumberProps) {
  return (
    <TextField
      name={name}
      text={String(value)}
      off={off}
      numeric
      commit={(text) => {
        const number = Number(text.replace("\u2212", "-"));
        if (Number.isFinite(number) && text.trim() !== "") commit(number);
      }}
    />
  );
}

interface TextProps {
  name: string;
  text: string;
  off: boolean;
  placeholder?: string;
  hint?: string;
  numeric?: boolean;
  commit(text: string): void;
}

/** A field that is applied by Enter or by leaving it; Escape takes the typing back. */
function TextField({ name, text, off, placeholder, hint, numeric, commit }: TextProps) {
  const id = useId();
  const [typed, setTyped] = useState<string | null>(null);
  const apply = () => {
    if (typed !== null && typed !== text) commit(typed);
    setTyped(null);
  };
  return (
    <span class="nnsl-field-row">
      <label for={id}>{name}</label>
      <input
        id={id}
        class="nnsl-field"
        value={typed ?? text}
        placeholder={placeholder}
        title={hint}
        inputMode={numeric ? "decimal" : "text"}
        spellcheck={false}
        autocomplete="off"
        disabled={off}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onBlur={apply}
        onKeyDown={(event) => {
          event.stopPropagation();
          if (event.key === "Enter") apply();
          if (event.key === "Escape") setTyped(null);
        }}
      />
    </span>
  );
}

const POSITIONS_HINT =
  'Numbers (0, -1), ranges (2:5) or tokens (" Tower"; the second of several is " the"#1), with commas between them';

function ScopeFields({ lab, scope, step, off }: { lab: Lab; scope: Scope; step: AnyStep; off: boolean }) {
  const set = (changed: Partial<Scope>) => void lab.act({ do: "set_scope", scope: { ...scope, ...changed } });
  return (
    <div class="nnsl-fields" role="group" aria-label="Limits of the step">
      <TextField
        name="positions"
        text={positionsText(scope.positions)}
        placeholder="all"
        hint={POSITIONS_HINT}
        off={off}
        commit={(text) => set({ positions: readPositions(text), from_positions: null })}
      />
      {step.kind === "patch" && (
        <TextField
          name="from"
          text={positionsText(scope.from_positions)}
          placeholder="same"
          hint={`Positions of the source prompt that belong to those. ${POSITIONS_HINT}`}
          off={off}
          commit={(text) => set({ from_positions: readPositions(text) })}
        />
      )}
      <TextField
        name="heads"
        text={indicesText(scope.heads)}
        placeholder="all"
        off={off}
        commit={(text) => set({ heads: readIndices(text) })}
      />
      <TextField
        name="neurons"
        text={indicesText(scope.index)}
        placeholder="all"
        off={off}
        commit={(text) => set({ index: readIndices(text) })}
      />
      {step.kind === "patch" && (
        <TextField
          name="from site"
          text={step.from_site ?? ""}
          placeholder="same"
          off={off}
          commit={(text) => {
            const { from_site: _, ...rest } = step;
            const changed: AnyStep = text.trim() === "" ? rest : { ...rest, from_site: text.trim() };
            const number = lab.state.view?.active ?? null;
            if (number !== null) void lab.act({ do: "change_step", number, step: changed });
          }}
        />
      )}
    </div>
  );
}
