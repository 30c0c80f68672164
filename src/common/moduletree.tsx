// The module tree: only the rows on screen are drawn, so that 20,000 modules scroll as easily as 20.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { count } from "./format";
import { ancestorsOf, filteredRows, rowsOf, type Tree, type TreeRow } from "./treemodel";

const ROW = 21;
const MARGIN = 12;

export interface ModuleTreeProps {
  /** Null before it is known. */
  tree: Tree | null;
  /** What stands in its place: why it is not there, or that it is on its way. */
  error: string;
  waiting: string;
  /** Path of the module that is shown; null where none is. */
  current: string | null;
  modelKind: string;
  /** What heads the tree. */
  title: string;
  onChoose(module: string): void;
}

export function ModuleTreeView({
  tree,
  error,
  waiting,
  current: shown,
  modelKind,
  title,
  onChoose,
}: ModuleTreeProps) {
  const [filter, setFilter] = useState("");
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set([""]));
  const [groups, setGroups] = useState<ReadonlySet<string>>(new Set());
  const [focused, setFocused] = useState(0);
  const [view_, setView] = useState({ top: 0, height: 400 });
  const list = useRef<HTMLDivElement>(null);
  const current = shown ?? "";

  // What is shown is always in the tree.
  useEffect(() => {
    setOpen((old) => new Set([...old, ...ancestorsOf(current)]));
  }, [current]);
  const rows = useMemo(() => {
    if (tree === null) return [];
    return filter.trim() === "" ? rowsOf(tree, { open, groups, current }) : filteredRows(tree, filter);
  }, [tree, filter, open, groups, current]);
  const isCurrent = (row: TreeRow) => row.row === "module" && tree?.paths[row.module] === shown;
  const at = rows.findIndex(isCurrent);
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolled to when another module is shown.
  useEffect(() => {
    if (at < 0 || list.current === null) return;
    setFocused(at);
    const { scrollTop, clientHeight } = list.current;
    if (at * ROW < scrollTop || (at + 1) * ROW > scrollTop + clientHeight)
      list.current.scrollTop = Math.max(0, at * ROW - clientHeight / 2);
  }, [current, tree]);
  useEffect(() => {
    const element = list.current;
    if (element === null) return;
    const look = () => setView({ top: element.scrollTop, height: element.clientHeight });
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const toggle = (row: TreeRow) => {
    if (tree === null) return;
    const flip = (old: ReadonlySet<string>, path: string) => {
      const next = new Set(old);
      if (!next.delete(path)) next.add(path);
      return next;
    };
    if (row.row === "group") {
      setGroups((old) => flip(old, tree.paths[row.first]!));
      move(rows.indexOf(row));
    } else setOpen((old) => flip(old, tree.paths[row.module]!));
  };
  const choose = (row: TreeRow) => {
    if (row.row === "group") toggle(row);
    else if (tree !== null) onChoose(tree.paths[row.module]!);
  };
  const move = (to: number) => {
    const next = Math.min(Math.max(to, 0), rows.length - 1);
    setFocused(next);
    const element = list.current;
    if (element === null) return;
    if (next * ROW < element.scrollTop) element.scrollTop = next * ROW;
    else if ((next + 1) * ROW > element.scrollTop + element.clientHeight)
      element.scrollTop = (next + 1) * ROW - element.clientHeight;
    requestAnimationFrame(() => element.querySelector<HTMLElement>(`[data-row="${next}"]`)?.focus());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const row = rows[focused];
    if (row === undefined) return;
    const page = Math.max(1, Math.floor(view_.height / ROW) - 1);
    const moves: Record<string, () => void> = {
      ArrowDown: () => move(focused + 1),
      ArrowUp: () => move(focused - 1),
      Home: () => move(0),
      End: () => move(rows.length - 1),
      PageDown: () => move(focused + page),
      PageUp: () => move(focused - page),
      ArrowRight: () => {
        if (!row.open && (row.row === "group" || row.parent)) toggle(row);
        else move(focused + 1);
      },
      ArrowLeft: () => {
        if (row.open) toggle(row);
        else move(rows.findLastIndex((other, i) => i < focused && other.depth < row.depth));
      },
      Enter: () => choose(row),
      " ": () => choose(row),
    };
    const action = moves[event.key];
    if (action === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  };

  const from = Math.max(0, Math.floor(view_.top / ROW) - MARGIN);
  const to = Math.min(rows.length, Math.ceil((view_.top + view_.height) / ROW) + MARGIN);
  const stop = Math.min(focused, rows.length - 1);
  return (
    <section class="nnsl-tree-pane" aria-label="Modules">
      <h2 class="nnsl-title">{title}</h2>
      <input
        class="nnsl-field"
        type="search"
        placeholder="Filter: mlp, attn, Conv1D …"
        aria-label="Filter modules by name or class"
        value={filter}
        onInput={(event) => setFilter(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") {
            event.preventDefault();
            move(0);
          } else if (event.key === "Escape" && filter !== "") {
            event.stopPropagation();
            setFilter("");
          }
        }}
      />
      <div
        ref={list}
        class="nnsl-tree"
        role="tree"
        aria-label="Module tree"
        onScroll={(event) => setView((old) => ({ ...old, top: event.currentTarget.scrollTop }))}
        onKeyDown={onKeyDown}
      >
        {error !== "" && <p class="nnsl-problem">{error}</p>}
        {tree === null && error === "" && <p class="nnsl-dim">{waiting}</p>}
        {tree !== null && rows.length === 0 && <p class="nnsl-dim">No module has “{filter}” in it.</p>}
        <div style={{ height: `${rows.length * ROW}px`, position: "relative" }} role="presentation">
          {tree !== null &&
            rows
              .slice(from, to)
              .map((row, i) => (
                <RowView
                  key={row.row === "group" ? `g${row.first}` : row.module}
                  tree={tree}
                  row={row}
                  number={from + i}
                  current={isCurrent(row)}
                  stop={from + i === stop || (i === 0 && (stop < from || stop >= to))}
                  modelKind={modelKind}
                  onFocus={() => setFocused(from + i)}
                  onToggle={() => toggle(row)}
                  onChoose={() => choose(row)}
                />
              ))}
        </div>
      </div>
    </section>
  );
}

interface RowProps {
  tree: Tree;
  row: TreeRow;
  number: number;
  current: boolean;
  stop: boolean;
  modelKind: string;
  onFocus(): void;
  onToggle(): void;
  onChoose(): void;
}

/** The last two names of a path: `h.0` of `transformer.h.0`. */
const shortPath = (path: string) => path.split(".").slice(-2).join(".");

function RowView({ tree, row, number, current, stop, ...props }: RowProps) {
  const module = row.row === "group" ? row.first : row.module;
  const name = tree.names[module]! || props.modelKind;
  const folded = row.row === "group" ? [tree.paths[row.first]!, tree.paths[row.last]!].map(shortPath) : [];
  const alias = tree.alias[module]!;
  const kind = tree.kinds[module]!;
  const title =
    row.row === "group"
      ? `${row.count} × ${kind}`
      : `${tree.paths[module] || "the model"}\n${kind}\n${tree.parameters[module]!.toLocaleString("en")} parameters`;
  return (
    <div
      class="nnsl-tree-row"
      role="treeitem"
      data-row={number}
      data-current={current}
      aria-level={row.depth + 1}
      aria-expanded={row.row === "group" || row.parent ? row.open : undefined}
      aria-selected={current}
      aria-label={row.row === "group" ? `${folded.join(" to ")}, ${row.count} ${kind}` : `${name} ${kind}`}
      tabIndex={stop ? 0 : -1}
      title={title}
      style={{ top: `${number * ROW}px`, height: `${ROW}px`, paddingLeft: `${4 + row.depth * 11}px` }}
      onFocus={props.onFocus}
      onClick={props.onChoose}
      onKeyDown={() => undefined}
    >
      <span
        class="nnsl-twist"
        aria-hidden="true"
        onClick={(event) => {
          event.stopPropagation();
          props.onToggle();
        }}
      >
        {row.row === "group" || row.parent ? (row.open ? "▾" : "▸") : ""}
      </span>
      <span class="nnsl-tree-name">{row.row === "group" ? folded.join(" … ") : name}</span>
      <span class="nnsl-tree-kind">
        {alias >= 0
          ? `= ${tree.paths[alias]}`
          : row.row === "group"
            ? `${row.count} × ${kind}`
            : number === 0
              ? count(tree.parameters[module]!)
              : kind}
      </span>
    </div>
  );
}
