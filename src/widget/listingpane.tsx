// The listing with its breadcrumb and actions. Keys act on the selected value anywhere in the pane.
import { useRef, useState } from "preact/hooks";
import { type Lab, useLab } from "../common/lab";
import { Listing } from "../common/listing";
import { PeekCard } from "../common/peek";
import { CLICKS, type ClickKind, stepFor, targetOf } from "../common/steps";
import type { OperationView, Target } from "../common/wire";
import { whyNot } from "./reach";

const PEEK_AFTER_MS = 150;

export function ListingPane({ lab }: { lab: Lab }) {
  const { view, listing } = useLab(lab);
  const [everything, setEverything] = useState(false);
  const [peek, setPeek] = useState<{ target: Target; top: number; left: number } | null>(null);
  const timer = useRef(0);
  const pane = useRef<HTMLElement>(null);
  const why = whyNot(lab);
  const selection = view?.selection ?? null;
  const chosen = listing?.blocks
    .flatMap(({ operations }) => operations)
    .find(({ site }) => site === selection?.site);
  const edited = view !== null && view.active !== null ? view.steps[view.active]?.step.site : undefined;

  const click = (kind: ClickKind) => {
    if (selection === null || view === null || why !== "" || selection.argument !== null) return;
    void lab.act({ do: "add_step", step: stepFor(kind, selection, view.scope, edited === selection.site) });
  };
  const sweep = () => {
    if (why === "")
      void lab.act({ do: "start_sweep", step: null, sites: "", positions: "each", heads: false });
  };
  const select = (target: Target | null) => why === "" && void lab.act({ do: "select", target });
  const flip = () =>
    selection && select({ ...selection, io: selection.io === "output" ? "input" : "output" });
  const opened = chosen !== undefined && (view?.opened.includes(chosen.site) ?? false);
  const step = () => {
    if (chosen === undefined || why !== "") return;
    if (opened) void lab.act({ do: "step_out", site: chosen.site });
    else if (chosen.can_step_into) void lab.act({ do: "step_into", site: chosen.site });
  };
  const showPeek = (target: Target | null, at: Element | null, after = PEEK_AFTER_MS) => {
    clearTimeout(timer.current);
    if (target === null || at === null || why !== "") {
      setPeek(null);
      return;
    }
    const place = () => {
      const box = pane.current?.getBoundingClientRect();
      const { bottom, left } = at.getBoundingClientRect();
      if (box)
        setPeek({
          target,
          top: bottom - box.top + 4,
          left: Math.max(8, Math.min(left - box.left, box.width - 268)),
        });
    };
    timer.current = window.setTimeout(place, after);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || (event.target as Element).closest("input, select"))
      return;
    const key = event.key.toLowerCase();
    const kind = CLICKS.find((one) => one.key === key)?.kind;
    const focused = (event.target as Element).closest("[data-peek]");
    if (kind !== undefined) click(kind);
    else if (key === "5") sweep();
    else if (key === "i") flip();
    else if (key === "o") step();
    else if (key === "p" && focused)
      showPeek(JSON.parse(focused.getAttribute("data-peek")!) as Target, focused, 0);
    else if (key === "escape" && peek !== null) showPeek(null, null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  if (view === null || listing === null)
    return <section class="nnsl-listing-pane" aria-label="Listing" aria-busy="true" />;
  const head = listing.blocks[0];
  const none =
    why ||
    (selection === null
      ? "Choose an operation first."
      : selection.argument !== null
        ? "An argument is changed where it is made."
        : "");
  return (
    <section ref={pane} class="nnsl-listing-pane" aria-label="Listing" onKeyDown={onKeyDown}>
      <div class="nnsl-crumbs">
        <Crumbs lab={lab} module={listing.module} model={view.model?.kind ?? "model"} off={why !== ""} />
        <span class="nnsl-dim">
          {head?.title ?? ""}
          {head?.calls === 0
            ? " · not reached"
            : head?.calls === 1
              ? " · ran once"
              : head?.calls
                ? ` · ran ${head.calls} times`
                : ""}
        </span>
        <label class="nnsl-toggle" title="Operators, bound names and returned values as well">
          <input
            type="checkbox"
            checked={everything}
            onChange={(event) => setEverything(event.currentTarget.checked)}
          />
          Everything
        </label>
      </div>
      <div class="nnsl-listing-scroll">
        <Listing
          listing={listing}
          selection={selection}
          steps={view.steps}
          everything={everything}
          disabled={why !== ""}
          onSelect={(operation: OperationView) =>
            select({
              ...targetOf(operation.site),
              io: operation.site === selection?.site ? selection.io : "output",
            })
          }
          onPeek={showPeek}
        />
      </div>
      <div class="nnsl-actions" role="toolbar" aria-label="Actions on the selected value">
        {CLICKS.map(({ kind, name, key }) => (
          <button
            key={kind}
            type="button"
            class="nnsl-button"
            data-kind={kind}
            disabled={none !== ""}
            title={none}
            onClick={() => click(kind)}
          >
            {name}
            <kbd>{key}</kbd>
          </button>
        ))}
        <button
          type="button"
          class="nnsl-button"
          disabled={why !== "" || view.active === null}
          onClick={sweep}
        >
          Sweep layers × positions<kbd>5</kbd>
        </button>
        <button
          type="button"
          class="nnsl-button"
          disabled={none !== ""}
          onClick={flip}
          aria-pressed={selection?.io === "input"}
        >
          {selection?.io === "input" ? "Input" : "Output"}
          <kbd>I</kbd>
        </button>
        {chosen !== undefined && (opened || chosen.can_step_into) && (
          <button type="button" class="nnsl-button" disabled={why !== ""} onClick={step}>
            {opened ? "Step out" : "Step into"}
            <kbd>O</kbd>
          </button>
        )}
        {chosen !== undefined && chosen.module !== "" && (
          <button
            type="button"
            class="nnsl-button"
            disabled={why !== ""}
            onClick={() => void lab.act({ do: "show_module", module: chosen.module })}
          >
            Show {chosen.module.split(".").at(-1)}
          </button>
        )}
        {chosen !== undefined && chosen.tensors.length > 1 && selection !== null && (
          <label class="nnsl-field-row">
            element
            <select
              class="nnsl-field"
              value={JSON.stringify(selection.element)}
              onChange={(event) =>
                select({ ...selection, element: JSON.parse(event.currentTarget.value) as Target["element"] })
              }
            >
              <option value="null">first tensor</option>
              {chosen.tensors.map(({ element, shape }) => (
                <option
                  key={element.join(".")}
                  value={JSON.stringify(element)}
                >{`${element.join(".")} [${shape.join(",")}]`}</option>
              ))}
            </select>
          </label>
        )}
      </div>
      {peek !== null && (
        <div class="nnsl-float" role="tooltip" style={{ top: `${peek.top}px`, left: `${peek.left}px` }}>
          <PeekCard lab={lab} target={peek.target} />
        </div>
      )}
    </section>
  );
}

function Crumbs({ lab, module, model, off }: { lab: Lab; module: string; model: string; off: boolean }) {
  const parts = module === "" ? [] : module.split(".");
  return (
    <nav aria-label="Path of the module" class="nnsl-crumb-path">
      {[model, ...parts].map((name, at) => {
        const path = parts.slice(0, at).join(".");
        return at === parts.length ? (
          <b key={path}>{name}</b>
        ) : (
          <button
            key={path}
            type="button"
            class="nnsl-crumb"
            disabled={off}
            onClick={() => void lab.act({ do: "show_module", module: path })}
          >
            {name}
          </button>
        );
      })}
    </nav>
  );
}
