// What to sweep: the active step, over which sites, positions and heads, and judged by what.
import { useEffect, useId, useState } from "preact/hooks";
import { type Lab, useLab } from "../../common/lab";
import type { StepView } from "../../common/wire";
import { MetricPicker } from "./metricpicker";
import { sitePatterns } from "./patterns";
import { Choice } from "./valuecontrols";

export function SweepControls({ lab }: { lab: Lab }) {
  const { view, answer, status } = useLab(lab);
  const id = useId();
  const active = view?.active ?? null;
  const step = active === null ? null : (view?.steps[active] ?? null);
  const sweepable = step !== null && step.step.kind !== "capture";
  const site = step?.step.site ?? "";
  const patterns = sitePatterns(site, view?.model?.layers ?? "");
  const [sites, setSites] = useState("");
  const [positions, setPositions] = useState<"each" | "own">("each");
  const [heads, setHeads] = useState(false);
  const suggested = sweepable ? (patterns[0]?.pattern ?? "") : "";
  useEffect(() => setSites(suggested), [suggested]);
  const running = status?.work === "sweep" || status?.waiting.includes("sweep") === true;

  const start = () => void lab.act({ do: "start_sweep", step: null, sites: sites.trim(), positions, heads });
  return (
    <form
      class="nnsl-sweep-controls"
      aria-label="Sweep"
      onSubmit={(event) => {
        event.preventDefault();
        if (sweepable && !running) start();
      }}
    >
      <p class="nnsl-sweep-step">
        <StepLine step={step} />
      </p>
      <label class="nnsl-field nnsl-field-wide">
        <span>sites</span>
        <input
          type="text"
          value={sites}
          list={`${id}-sites`}
          spellcheck={false}
          disabled={!sweepable}
          title="Where the step is put, with * for any part of a name"
          onInput={(event) => setSites(event.currentTarget.value)}
        />
        <datalist id={`${id}-sites`}>
          {patterns.map(({ pattern, text }) => (
            <option key={pattern} value={pattern}>
              {text}
            </option>
          ))}
        </datalist>
      </label>
      <div class="nnsl-row">
        <Choice
          label="Positions"
          value={positions}
          onChange={(chosen) => setPositions(chosen)}
          values={[
            ["each", "each position", "a cell for each position of the prompt"],
            ["own", "the step’s own", "the positions that the step is limited to, in one cell"],
          ]}
        />
        {(view?.model?.heads ?? null) !== null && (
          <label class="nnsl-check" title="A cell for each attention head">
            <input
              type="checkbox"
              checked={heads}
              onChange={(event) => setHeads(event.currentTarget.checked)}
            />
            <span>each head</span>
          </label>
        )}
      </div>
      <div class="nnsl-row">
        <MetricPicker
          metric={view?.metric ?? null}
          answer={answer}
          onChange={(metric) => void lab.act({ do: "set_metric", metric })}
        />
        {running ? (
          <button
            type="button"
            class="nnsl-button nnsl-push"
            onClick={() => void lab.act({ do: "cancel", work: "sweep" })}
          >
            Cancel
          </button>
        ) : (
          <button type="submit" class="nnsl-button nnsl-button-main nnsl-push" disabled={!sweepable}>
            Start sweep
          </button>
        )}
      </div>
    </form>
  );
}

function StepLine({ step }: { step: StepView | null }) {
  if (step === null) {
    return (
      <span class="nnsl-dim">
        A sweep puts the active step at many places. Add a step first: zero, patch or scale an operation.
      </span>
    );
  }
  if (step.step.kind === "capture") {
    return (
      <span class="nnsl-dim">
        The active step only captures, so a sweep of it would change nothing. Zero, patch or scale an
        operation, or make such a step the active one.
      </span>
    );
  }
  return (
    <>
      <b>{step.title}</b> <span class="nnsl-dim">at many places</span>
    </>
  );
}
