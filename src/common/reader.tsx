// A listing to read: folded callees, search, links to the modules that are called. It takes its listings from whoever
// has them, a kernel or a saved cell, and knows neither.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Listing } from "./listing";
import { targetOf } from "./steps";
import type { ListingView, OperationView } from "./wire";

export interface ReaderProps {
  /** Name that addresses begin with. */
  model: string;
  listing: ListingView | null;
  /** Why there is none, or what is the matter with it. */
  notice: string;
  opened: ReadonlySet<string>;
  /** Whether a module's listing can be shown. */
  canShow(module: string): boolean;
  /** Whether the listing inside an operation can be shown. */
  canOpen(operation: OperationView): boolean;
  onShow(module: string): void;
  onOpen(site: string): void;
  /** Further actions on the chosen operation, or on the module where none is chosen. */
  actions(operation: OperationView | null): ComponentChildren;
}

export function Reader(props: ReaderProps) {
  const { listing, opened } = props;
  const [chosen, setChosen] = useState<string | null>(null);
  const [everything, setEverything] = useState(false);
  const [search, setSearch] = useState("");
  const [hit, setHit] = useState(0);
  const [hits, setHits] = useState(0);
  const scroll = useRef<HTMLDivElement>(null);
  const module = listing?.module ?? "";
  // biome-ignore lint/correctness/useExhaustiveDependencies: another module is read from its beginning.
  useEffect(() => {
    setChosen(null);
    if (scroll.current !== null) scroll.current.scrollTop = 0;
  }, [module]);
  const blocks = listing?.blocks.filter(({ site }) => site === module || opened.has(site)) ?? [];
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows are marked after each drawing.
  useEffect(() => {
    const wanted = search.trim().toLowerCase();
    const rows = [...(scroll.current?.querySelectorAll<HTMLElement>(".nnsl-source-row") ?? [])];
    const found = rows.filter((row) => wanted !== "" && row.textContent?.toLowerCase().includes(wanted));
    for (const row of rows) {
      const at = found.indexOf(row);
      row.toggleAttribute("data-found", at >= 0);
      row.toggleAttribute("data-found-now", at >= 0 && at === hit % found.length);
    }
    setHits(found.length);
    found[hit % found.length]?.scrollIntoView({ block: "nearest" });
  }, [search, hit, listing, opened, everything]);
  const operation =
    blocks.flatMap(({ operations }) => operations).find(({ site }) => site === chosen) ?? null;
  const head = blocks[0];

  return (
    <section class="nnsl-reader" aria-label="Listing">
      <div class="nnsl-crumbs">
        <Crumbs {...props} module={module} />
        <span class="nnsl-dim">{head?.title ?? ""}</span>
        <span class="nnsl-reader-search">
          <input
            class="nnsl-field"
            type="search"
            placeholder="Search"
            aria-label="Search this listing"
            value={search}
            onInput={(event) => {
              setSearch(event.currentTarget.value);
              setHit(0);
            }}
            onKeyDown={(event) => {
              if (event.key === "Enter") setHit((at) => Math.max(0, at + (event.shiftKey ? -1 : 1)));
              else if (event.key === "Escape" && search !== "") setSearch("");
              else return;
              event.preventDefault();
              event.stopPropagation();
            }}
          />
          <span class="nnsl-dim" role="status">
            {search.trim() === "" ? "" : hits === 0 ? "none" : `${(hit % hits) + 1} of ${hits}`}
          </span>
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
      <div class="nnsl-listing-scroll" ref={scroll}>
        {listing !== null && (
          <Listing
            listing={{ ...listing, blocks }}
            selection={chosen === null ? null : targetOf(chosen)}
            steps={[]}
            everything={everything}
            disabled={false}
            onSelect={({ site }) => setChosen(site === chosen ? null : site)}
            onPeek={() => undefined}
          />
        )}
      </div>
      <div class="nnsl-actions" role="toolbar" aria-label="Actions on what is chosen">
        {operation === null && (
          <span class="nnsl-dim">{blocks.length > 0 ? "Click a label to choose an operation." : ""}</span>
        )}
        {operation !== null && (opened.has(operation.site) || props.canOpen(operation)) && (
          <button
            type="button"
            class="nnsl-button"
            aria-expanded={opened.has(operation.site)}
            onClick={() => props.onOpen(operation.site)}
          >
            {opened.has(operation.site) ? "Step out" : "Step into"}
          </button>
        )}
        {operation !== null && operation.module !== "" && props.canShow(operation.module) && (
          <button type="button" class="nnsl-button" onClick={() => props.onShow(operation.module)}>
            Show {operation.module.split(".").at(-1)}
          </button>
        )}
        {listing !== null && props.actions(operation)}
        <span class="nnsl-dim nnsl-reader-notice" role="status">
          {props.notice}
        </span>
      </div>
    </section>
  );
}

function Crumbs({ model, module, canShow, onShow }: ReaderProps & { module: string }) {
  const parts = module === "" ? [] : module.split(".");
  return (
    <nav aria-label="Path of the module" class="nnsl-crumb-path">
      {[model, ...parts].map((name, at) => {
        const path = parts.slice(0, at).join(".");
        return at === parts.length || !canShow(path) ? (
          <b key={path}>{name}</b>
        ) : (
          <button key={path} type="button" class="nnsl-crumb" onClick={() => onShow(path)}>
            {name}
          </button>
        );
      })}
    </nav>
  );
}
