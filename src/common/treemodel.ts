// The module tree as rows. Modules come in preorder with their depth; runs of equal siblings (the layers) are folded under
// one row that can be opened and closed, but for the one on the way to what is shown.
import type { Modules } from "./wire";

export interface Tree {
  count: number;
  names: readonly string[];
  paths: readonly string[];
  kinds: readonly string[];
  depth: Float64Array;
  parameters: Float64Array;
  alias: Float64Array;
  structure: Float64Array;
  /** Number after the last module below each. */
  end: Int32Array;
}

export type TreeRow =
  | { row: "module"; module: number; depth: number; open: boolean; parent: boolean }
  | { row: "group"; first: number; last: number; count: number; depth: number; open: boolean };

// Fewer equal siblings than this are not folded.
const FOLDED = 3;

export function treeOf(names: readonly string[], kindNames: readonly string[], columns: Float64Array): Tree {
  const count = names.length;
  const column = (number: number) => columns.subarray(number * count, (number + 1) * count);
  const depth = column(0);
  const kind = column(1);
  const paths: string[] = [];
  const end = new Int32Array(count);
  const ancestors: number[] = [];
  for (let i = 0; i < count; i++) {
    while (ancestors.length > depth[i]!) end[ancestors.pop()!] = i;
    const parent = ancestors.at(-1);
    const above = parent === undefined ? "" : paths[parent]!;
    paths.push(above === "" ? names[i]! : `${above}.${names[i]}`);
    ancestors.push(i);
  }
  for (const i of ancestors) end[i] = count;
  return {
    count,
    names,
    paths,
    kinds: Array.from(kind, (number) => kindNames[number] ?? ""),
    depth,
    parameters: column(2),
    alias: column(3),
    structure: column(4),
    end,
  };
}

/** The tree of the kernel's reply, whose buffer is float64. */
export function treeFrom(reply: Modules, buffer: DataView): Tree {
  const bytes = buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.byteLength);
  return treeOf(reply.names, reply.kind_names, new Float64Array(bytes as ArrayBuffer));
}

export function childrenOf(tree: Tree, module: number): number[] {
  const found: number[] = [];
  for (let i = module + 1; i < tree.end[module]!; i = tree.end[i]!) found.push(i);
  return found;
}

export interface Folding {
  /** Paths that are open; those on the way to `current` are too. */
  open: ReadonlySet<string>;
  /** Paths of the first members of groups that are open. */
  groups: ReadonlySet<string>;
  current: string;
}

function onTheWay(path: string, current: string): boolean {
  return path === "" || current === path || current.startsWith(`${path}.`);
}

export function rowsOf(tree: Tree, folding: Folding): TreeRow[] {
  const rows: TreeRow[] = [];
  const visit = (module: number) => {
    const path = tree.paths[module]!;
    const parent = tree.end[module]! > module + 1;
    const open = parent && folding.open.has(path);
    rows.push({ row: "module", module, depth: tree.depth[module]!, open, parent });
    if (!open) return;
    const children = childrenOf(tree, module);
    let at = 0;
    while (at < children.length) {
      const first = children[at]!;
      let to = at + 1;
      const same = (child: number) =>
        tree.structure[child] === tree.structure[first] &&
        /^\d+$/.test(tree.names[child]!) &&
        !onTheWay(tree.paths[child]!, folding.current);
      if (same(first)) while (to < children.length && same(children[to]!)) to += 1;
      const folds = to - at >= FOLDED;
      const shown = !folds || folding.groups.has(tree.paths[first]!);
      if (folds)
        rows.push({
          row: "group",
          first,
          last: children[to - 1]!,
          count: to - at,
          depth: tree.depth[first]!,
          open: shown,
        });
      if (shown) for (const child of children.slice(at, to)) visit(child);
      at = to;
    }
  };
  if (tree.count > 0) visit(0);
  return rows;
}

/** Every module whose path or class contains the text, under its ancestors. */
export function filteredRows(tree: Tree, text: string): TreeRow[] {
  const wanted = text.trim().toLowerCase();
  const keep = new Uint8Array(tree.count);
  const ancestors: number[] = [];
  for (let i = 0; i < tree.count; i++) {
    while (ancestors.length > tree.depth[i]!) ancestors.pop();
    ancestors.push(i);
    if (
      tree.names[i]!.toLowerCase().includes(wanted) ||
      tree.kinds[i]!.toLowerCase().includes(wanted) ||
      (wanted.includes(".") && tree.paths[i]!.toLowerCase().includes(wanted))
    ) {
      for (const ancestor of ancestors) keep[ancestor] = 1;
    }
  }
  const rows: TreeRow[] = [];
  for (let i = 0; i < tree.count; i++) {
    if (!keep[i]) continue;
    const parent = tree.end[i]! > i + 1;
    rows.push({ row: "module", module: i, depth: tree.depth[i]!, open: parent, parent });
  }
  return rows;
}

/** Paths of all modules above a path, the model's own ("") included. */
export function ancestorsOf(path: string): string[] {
  const parts = path.split(".");
  return ["", ...parts.map((_, i) => parts.slice(0, i).join(".")).slice(1)];
}
