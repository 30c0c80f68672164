// What the cell under the cursor is, in words: its value, and the name of its place on every axis.
import { counted, significant } from "./format";
import { entryOf, pooledCells } from "./region";
import { entryText } from "./ticks";
import type { AxisView, Picture } from "./wire";

export interface Cell {
  row: number;
  column: number;
}

const POOLED = { mean: "mean", min: "smallest", max: "largest", extreme: "farthest from zero" } as const;

/** The axis, or one entry without a name where a value has fewer than two dimensions. */
export function axisOf(picture: Picture, axis: number | null): AxisView {
  return (axis === null ? undefined : picture.axes[axis]) ?? { name: "", size: 1, labels: [] };
}

function place(axis: AxisView, from: number, to: number): string {
  if (axis.name === "") return "";
  const last = to - 1;
  const where = last > from ? `${entryText(axis, from)} to ${entryText(axis, last)}` : entryText(axis, from);
  return where.startsWith(axis.name) ? where : `${axis.name} ${where}`;
}

export interface Readout {
  value: string;
  /** Places on the axes on screen, then on the others. */
  places: string;
  /** How many entries the value was made of; empty for an exact one. */
  pooled: string;
}

/** Entry of the values under a cell of the whole picture, with the cells it stands for; null outside the window. */
export function entryUnder(picture: Picture, { row, column }: Cell) {
  const { window } = picture;
  if (row < window.row || row >= window.row_end || column < window.column || column >= window.column_end) {
    return null;
  }
  const down = entryOf(window.row, window.row_end, picture.rows, row);
  const across = entryOf(window.column, window.column_end, picture.columns, column);
  return {
    number: down * picture.columns + across,
    rows: pooledCells(window.row, window.row_end, picture.rows, down),
    columns: pooledCells(window.column, window.column_end, picture.columns, across),
  };
}

export function readout(picture: Picture, values: Float32Array, cell: Cell): Readout | null {
  const found = entryUnder(picture, cell);
  if (found === null) return null;
  const { row_axis, column_axis, index } = picture.slice;
  const [row, rowEnd] = found.rows;
  const [column, columnEnd] = found.columns;
  const others = picture.axes
    .map((axis, number) => ({ axis, number }))
    .filter(({ number }) => number !== row_axis && number !== column_axis)
    .map(({ axis }, order) => (axis.size > 1 ? place(axis, index[order] ?? 0, (index[order] ?? 0) + 1) : ""));
  const entries = (rowEnd - row) * (columnEnd - column);
  return {
    value: significant(values[found.number]!, 5),
    places: [
      place(axisOf(picture, row_axis), row, rowEnd),
      place(axisOf(picture, column_axis), column, columnEnd),
      ...others,
    ]
      .filter((text) => text !== "")
      .join(" · "),
    pooled: entries > 1 ? `${POOLED[picture.pooling]} of ${counted(entries, "entry")}` : "",
  };
}
