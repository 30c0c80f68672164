// What the runs gave: the headline of the latest answer, and a tab for each kind of result. A sweep or a lens that is
// new on screen comes to the front, whoever started it.
import { useEffect, useId, useRef } from "preact/hooks";
import { type Lab, useLab } from "../../common/lab";
import { TABS, type Tab, useDesk } from "../desk";
import { ActivationTab } from "./activation";
import { AnswerTab } from "./answer";
import { LensTab } from "./lens";
import { SweepTab } from "./sweep";

const NAMES: Record<Tab, string> = {
  answer: "Answer",
  activation: "Activation",
  sweep: "Sweep",
  lens: "Lens",
};

export function Results({ lab }: { lab: Lab }) {
  const { view, answer, status } = useLab(lab);
  const desk = useDesk(lab);
  const id = useId();
  const tabs = useRef<HTMLDivElement>(null);
  useNewInFront(view?.shown_sweep ?? null, () => desk.show("sweep"));
  useNewInFront(view?.shown_lens ?? null, () => desk.show("lens"));

  const onKeyDown = (event: KeyboardEvent) => {
    const at = TABS.indexOf(desk.tab);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: TABS.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = TABS[(to + TABS.length) % TABS.length]!;
    desk.show(next);
    tabs.current?.querySelector<HTMLElement>(`[data-tab=${next}]`)?.focus();
  };

  return (
    <section class="nnsl-results" aria-label="Results">
      <p class="nnsl-headline" data-stale={status?.stale === true} role="status">
        <span title={answer?.headline ?? ""}>{answer?.headline ?? "\u00a0"}</span>
        <small>{status?.stale === true && answer !== null ? "of an earlier state" : ""}</small>
      </p>
      <div class="nnsl-tabs" role="tablist" aria-label="Results" ref={tabs} onKeyDown={onKeyDown}>
        {TABS.map((tab) => (
          <button
            key={tab}
            type="button"
            role="tab"
            id={`${id}-tab-${tab}`}
            data-tab={tab}
            aria-selected={tab === desk.tab}
            aria-controls={`${id}-panel`}
            tabIndex={tab === desk.tab ? 0 : -1}
            onClick={() => desk.show(tab)}
          >
            {NAMES[tab]}
          </button>
        ))}
      </div>
      <div
        class="nnsl-panel"
        role="tabpanel"
        id={`${id}-panel`}
        aria-labelledby={`${id}-tab-${desk.tab}`}
        data-tab={desk.tab}
      >
        {desk.tab === "answer" && <AnswerTab lab={lab} />}
        {desk.tab === "activation" && <ActivationTab lab={lab} />}
        {desk.tab === "sweep" && <SweepTab lab={lab} />}
        {desk.tab === "lens" && <LensTab lab={lab} />}
      </div>
    </section>
  );
}

/** Calls `show` when `run` becomes another run, not for the one that is there at first. */
function useNewInFront(run: string | null, show: () => void): void {
  const known = useRef(run);
  useEffect(() => {
    if (run !== null && run !== known.current) show();
    known.current = run;
  });
}
