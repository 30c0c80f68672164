// A value as a debugger would show it: its structure, the statistics of its tensor, and a small picture. What was shown
// once is kept until the view changes, so that moving over a listing does not ask again and again.
import { useLayoutEffect, useRef } from "preact/hooks";
import { counted, dtypeText, shapeText, significant } from "./format";
import type { Lab } from "./lab";
import { useLab } from "./lab";
import { floatsOf, paintIn } from "./paint";
import { useAsk } from "./useask";
import { useTheme } from "./usetheme";
import type { Peek, Target } from "./wire";

export interface Peeked {
  peek: Peek;
  values: Float32Array;
}

// A listing has a few dozen variables; older ones go first.
const KEPT = 60;

interface Kept {
  state: string;
  peeks: Map<string, Promise<Peeked>>;
}

const kept = new WeakMap<Lab, Kept>();

/** The value of a target in the present state, asked for once in each. A failed question is not kept. */
export function peekOf(lab: Lab, target: Target): Promise<Peeked> {
  const { view, answer } = lab.state;
  const state = `${view?.revision ?? 0} ${answer?.run ?? ""}`;
  let store = kept.get(lab);
  if (store?.state !== state) {
    store = { state, peeks: new Map() };
    kept.set(lab, store);
  }
  const { peeks } = store;
  const key = JSON.stringify(target);
  let asked = peeks.get(key);
  if (asked === undefined) {
    asked = lab.connection
      .ask("peek", { kind: "peek", target })
      .then(({ reply, buffer }) => ({ peek: reply, values: floatsOf(buffer) }));
    asked.catch(() => peeks.delete(key));
    peeks.set(key, asked);
    if (peeks.size > KEPT) peeks.delete(peeks.keys().next().value!);
  }
  return asked;
}

export function PeekCard({ lab, target }: { lab: Lab; target: Target }) {
  const { view, answer } = useLab(lab);
  const key = JSON.stringify([target, view?.revision, answer?.run]);
  const { answer: peeked, error, waiting } = useAsk(key, () => peekOf(lab, target));
  const fits = peeked !== null && JSON.stringify(peeked.peek.target) === JSON.stringify(target);
  return (
    <div class="nnsl-peek" aria-busy={waiting}>
      {error !== null ? (
        <p class="nnsl-problem">{error.message}</p>
      ) : fits ? (
        <Contents {...peeked} />
      ) : (
        <p class="nnsl-dim nnsl-peek-head">
          {target.argument ?? (target.site.split(".").at(-1) || "model")} …
        </p>
      )}
    </div>
  );
}

function Contents({ peek, values }: Peeked) {
  const tensor = peek.tensors[0];
  const { statistics, odd } = peek;
  const numbers = statistics === null ? [] : Object.entries(NAMES).map(([key, name]) => [key, name] as const);
  return (
    <>
      <p class="nnsl-peek-head">
        <b>{peek.label}</b>{" "}
        {tensor !== undefined && (
          <span class="nnsl-dim">{`${shapeText(tensor.shape)} ${dtypeText(tensor.dtype)}`}</span>
        )}
        {peek.calls > 1 && <span class="nnsl-dim"> · {counted(peek.calls, "call")}</span>}
      </p>
      {peek.reason !== "" && <p class="nnsl-peek-reason">{peek.reason}</p>}
      {peek.structure !== "" && <pre class="nnsl-peek-structure">{peek.structure}</pre>}
      {peek.rows > 0 && peek.columns > 0 && <Small peek={peek} values={values} />}
      {statistics !== null && (
        <dl class="nnsl-peek-numbers">
          {numbers.map(([key, name]) => {
            const value = statistics[key as keyof typeof statistics];
            return (
              <div key={key}>
                <dt>{name}</dt>
                <dd>{value === null ? "–" : significant(value, 3)}</dd>
              </div>
            );
          })}
        </dl>
      )}
      <Odd odd={odd} />
    </>
  );
}

const NAMES = { smallest: "min", mean: "mean", largest: "max", std: "std", norm: "norm" };

function Odd({ odd }: { odd: Peek["odd"] }) {
  const found = [
    ["NaN", odd.nan],
    ["+inf", odd.positive_infinity],
    ["−inf", odd.negative_infinity],
  ] as const;
  const told = found
    .filter(([, number]) => number > 0)
    .map(([name, number]) => `${number.toLocaleString("en")} ${name}`);
  return told.length === 0 ? null : <p class="nnsl-problem">{told.join(", ")}</p>;
}

function Small({ peek, values }: Peeked) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme(canvas);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || peek.colours === null) return;
    const pixels = paintIn(theme, values, peek.rows, peek.columns, peek.colours);
    context.putImageData(new ImageData(pixels.data, pixels.width, pixels.height), 0, 0);
  }, [peek, values, theme]);
  return (
    <canvas
      ref={canvas}
      class="nnsl-peek-picture"
      width={peek.columns}
      height={peek.rows}
      role="img"
      aria-label={`Small picture of ${peek.label}`}
    />
  );
}
