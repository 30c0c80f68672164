// A sweep's numbers as cells: which two axes are on screen, where each cell is among the values, and which cell changed
// the metric most. Colours stand for the difference from the clean run.
import { inkOn, type Theme, valueColour } from "../../common/colours";
import { significant, visibleToken } from "../../common/format";
import { entryText, shortNames } from "../../common/ticks";
import type { AxisView, SweepGrid } from "../../common/wire";
import type { CellLook, Heading } from "./cellgrid";
import type { Pick } from "./picking";

/** Rows and columns by default: the first two axes with several entries, in their order. */
export function sweepPick(axes: readonly AxisView[]): Pick {
  const several = axes.map((_, number) => number).filter((number) => axes[number]!.size > 1);
  const [row = 0, column = axes.findIndex((_, number) => number !== row)] = several;
  return { row, column: column < 0 ? null : column, entries: axes.map(() => 0) };
}

/** The numbers of a cell for each axis of the sweep. */
export function cellNumbers(axes: readonly AxisView[], pick: Pick, row: number, column: number): number[] {
  return axes.map((_, axis) => {
    if (axis === pick.row) return row;
    if (axis === pick.column) return column;
    return pick.entries[axis] ?? 0;
  });
}

/** Where a cell is in the buffer, which is in C order. */
export function cellPlace(axes: readonly AxisView[], cell: readonly number[]): number {
  return axes.reduce((place, axis, number) => place * axis.size + cell[number]!, 0);
}

export interface Best {
  cell: number[];
  difference: number;
}

/** The computed cell that differs most from the clean run; null where none is computed. */
export function bestCell(grid: SweepGrid, values: Float32Array): Best | null {
  let found = -1;
  let most = -1;
  values.forEach((value, number) => {
    const size = Math.abs(value - (grid.baseline ?? 0));
    if (size > most) {
      most = size;
      found = number;
    }
  });
  if (found < 0) return null;
  const difference = values[found]! - (grid.baseline ?? 0);
  const cell: number[] = [];
  let rest = found;
  for (const { size } of [...grid.axes].reverse()) {
    cell.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return { cell, difference };
}

/** Headings of an axis: the parts of site names that differ, positions with their tokens. */
export function headings(axis: AxisView | undefined): { headings: Heading[]; name: string } {
  if (axis === undefined) return { headings: [{ text: "", title: "" }], name: "" };
  const entries = Array.from({ length: axis.size }, (_, entry) => entry);
  if (axis.name === "site") {
    const { pattern, short } = shortNames(axis.labels);
    const named = entries.map((entry) => ({
      text: short[entry] ?? String(entry),
      title: axis.labels[entry] ?? "",
    }));
    return { headings: named, name: pattern === "" ? "site" : pattern };
  }
  return {
    headings: entries.map((entry) => {
      const label = axis.labels[entry];
      const text =
        axis.name === "position" && label !== undefined ? visibleToken(label) : entryText(axis, entry);
      return { text, title: `${axis.name} ${entryText(axis, entry)}` };
    }),
    name: axis.name,
  };
}

/** A cell in words: its place on every axis. */
export function cellWords(axes: readonly AxisView[], cell: readonly number[]): string {
  return axes
    .map((axis, number) => {
      const text = entryText(axis, cell[number]!);
      return axis.name === "site" || text.startsWith(axis.name) ? text : `${axis.name} ${text}`;
    })
    .join(" · ");
}

/** A value with its difference from the clean run. */
export function valueWords(value: number, baseline: number | null): string {
  if (Number.isNaN(value)) return "not computed";
  if (baseline === null) return significant(value);
  const difference = value - baseline;
  return `${difference > 0 ? "+" : ""}${significant(difference)} (${significant(value)})`;
}

export function sweepCells(
  grid: SweepGrid,
  values: Float32Array,
  pick: Pick,
  best: Best | null,
  theme: Theme,
): CellLook[][] {
  const { axes, baseline, colours } = grid;
  const size = (axis: number | null) => (axis === null ? 1 : (axes[axis]?.size ?? 1));
  const marked = best === null ? "" : best.cell.join(" ");
  return Array.from({ length: size(pick.row) }, (_, row) =>
    Array.from({ length: size(pick.column) }, (_, column): CellLook => {
      const cell = cellNumbers(axes, pick, row, column);
      const value = values[cellPlace(axes, cell)] ?? Number.NaN;
      const colour = valueColour(theme, value - (baseline ?? 0), colours.low, colours.high);
      const isBest = cell.join(" ") === marked;
      return {
        colour,
        ink: colour === null ? theme.ink : inkOn(colour),
        text: "",
        label: `${cellWords(axes, cell)}: ${valueWords(value, baseline)}${isBest ? ", largest effect" : ""}`,
        marked: isBest,
      };
    }),
  );
}
