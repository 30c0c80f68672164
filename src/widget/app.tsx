// The Lab's page: prompts above; modules, listing, and steps with results side by side; history and code below.
import { useRef } from "preact/hooks";
import { useHostTheme } from "../common/hosttheme";
import { type Lab, useLab } from "../common/lab";
import { CodePane } from "./code";
import { HistoryBar } from "./history";
import { Inspector } from "./inspector";
import { ListingPane } from "./listingpane";
import { Prompts } from "./prompts";
import { whyNot } from "./reach";
import { Results } from "./results/index";
import { StatusBar } from "./statusbar";
import { ModuleTree } from "./tree";

export function App({ lab }: { lab: Lab }) {
  const { view } = useLab(lab);
  const root = useRef<HTMLElement>(null);
  const theme = useHostTheme(root);
  const why = whyNot(lab);
  const off = why !== "" || view === null;
  const onKeyDown = (event: KeyboardEvent) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || off) return;
    if ((event.target as Element).closest("input")) return;
    event.preventDefault();
    event.stopPropagation();
    void lab.act({ do: event.shiftKey ? "redo" : "undo" });
  };
  return (
    <section
      ref={root}
      class="nnsl"
      data-theme={theme}
      aria-label="nnsight-lab"
      // Hosts take keys for commands of their own unless they are told that the widget uses them.
      data-lm-suppress-shortcuts="true"
      onKeyDown={onKeyDown}
    >
      <div class="nnsl-frame">
        <header class="nnsl-top">
          <Prompts lab={lab} />
          <div class="nnsl-runs">
            <button
              type="button"
              class="nnsl-button"
              disabled={off}
              title={why || "Switch every step off"}
              onClick={() => void lab.act({ do: "disable_all" })}
            >
              Clean run
            </button>
            <button
              type="button"
              class="nnsl-button nnsl-primary"
              disabled={off}
              title={why}
              onClick={() => void lab.act({ do: "run" })}
            >
              Run
            </button>
          </div>
        </header>
        <StatusBar lab={lab} />
        <div class="nnsl-mid">
          <ModuleTree lab={lab} />
          <ListingPane lab={lab} />
          <div class="nnsl-side">
            <Inspector lab={lab} />
            <Results lab={lab} />
          </div>
        </div>
        <footer class="nnsl-bottom">
          <HistoryBar lab={lab} />
          <CodePane lab={lab} />
        </footer>
      </div>
    </section>
  );
}
