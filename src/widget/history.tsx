// Every run, named by what changed, the newest at the end. A click goes back to its state; the button beside it puts it
// next to the present one. One tab stop: arrow keys move between the runs.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Lab, useLab } from "../common/lab";
import type { HistoryEntry } from "../common/wire";
import { useDesk } from "./desk";

const KINDS: Record<HistoryEntry["kind"], string> = { run: "", sweep: "▦", lens: "◫" };

export function HistoryBar({ lab }: { lab: Lab }) {
  const { history, view, answer } = useLab(lab);
  const desk = useDesk(lab);
  const entries = history?.entries ?? [];
  const list = useRef<HTMLUListElement>(null);
  const shown = new Set([view?.shown_answer ?? answer?.run, view?.shown_sweep, view?.shown_lens]);
  const current = view?.shown_answer ?? answer?.run ?? null;
  const [focused, setFocused] = useState<string | null>(null);
  const stop =
    entries.find(({ run }) => run === focused) ??
    entries.find(({ run }) => run === current) ??
    entries.at(-1);

  // A new run is scrolled into sight, unless the reader is looking through the list.
  const newest = entries.at(-1)?.run;
  // biome-ignore lint/correctness/useExhaustiveDependencies: when there is a new run or another is current.
  useEffect(() => {
    const element = list.current;
    if (!element || element.contains((element.getRootNode() as Document | ShadowRoot).activeElement)) return;
    const chip = element.querySelector<HTMLElement>("[data-current=true]") ?? element.lastElementChild;
    if (chip instanceof HTMLElement) keepInSight(element, chip);
  }, [newest, current]);

  const onKeyDown = (event: KeyboardEvent) => {
    const at = entries.findIndex(({ run }) => run === stop?.run);
    const to = {
      ArrowLeft: at - 1,
      ArrowUp: at - 1,
      ArrowRight: at + 1,
      ArrowDown: at + 1,
      Home: 0,
      End: entries.length - 1,
    }[event.key];
    const entry = to === undefined ? undefined : entries[to];
    if (to !== undefined) event.preventDefault();
    if (entry !== undefined) {
      setFocused(entry.run);
      list.current?.querySelectorAll<HTMLElement>(".nnsl-history-run")[to!]?.focus();
    } else if (event.key === "c" && stop?.kind === "run") {
      event.preventDefault();
      desk.compare(stop.run);
    }
  };

  return (
    <section class="nnsl-history" aria-label="History">
      <h2 class="nnsl-title">History</h2>
      {entries.length === 0 && <p class="nnsl-dim">Every run will be kept here.</p>}
      <ul ref={list} class="nnsl-history-list" onKeyDown={onKeyDown}>
        {entries.map((entry) => {
          const { run, kind, title, detail, complete } = entry;
          const isCurrent = run === current;
          const compared = desk.compared === run;
          return (
            <li key={run} class="nnsl-history-entry" data-current={isCurrent} data-compared={compared}>
              <button
                type="button"
                class="nnsl-history-run"
                aria-current={isCurrent ? "true" : undefined}
                data-shown={shown.has(run)}
                tabIndex={run === stop?.run ? 0 : -1}
                title={`${title}\n${detail}\nClick to go back to this state.`}
                onFocus={() => setFocused(run)}
                onClick={() => {
                  if (kind === "run") desk.show("answer");
                  else desk.show(kind);
                  void lab.act({ do: "restore", run });
                }}
              >
                {KINDS[kind] !== "" && <span aria-hidden="true">{KINDS[kind]}</span>}
                <span class="nnsl-history-title">{title}</span>
                <small>
                  {detail}
                  {complete ? "" : " · not complete"}
                </small>
              </button>
              {kind === "run" && !isCurrent && (
                <button
                  type="button"
                  class="nnsl-history-compare"
                  aria-pressed={compared}
                  aria-label={`Compare with ${title}`}
                  title={compared ? "End the comparison" : "Compare with the present run (c)"}
                  tabIndex={-1}
                  onClick={() => desk.compare(run)}
                >
                  A|B
                </button>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** Scrolls only the list, never the page. */
function keepInSight(list: HTMLElement, chip: HTMLElement): void {
  const top = chip.offsetTop - list.offsetTop;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + chip.offsetHeight > list.scrollTop + list.clientHeight) {
    list.scrollTop = top + chip.offsetHeight - list.clientHeight;
  }
}
