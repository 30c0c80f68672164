// Tables for files: what is on screen as CSV after RFC 4180, numbers in full.
import type { Answer, AxisView, LensGrid } from "../../common/wire";

type Cell = string | number;

function written(cell: Cell): string {
  if (typeof cell === "number") return String(cell);
  return /[",\r\n]|^\s|\s$/.test(cell) || cell === "" ? `"${cell.replaceAll('"', '""')}"` : cell;
}

export function csvOf(head: readonly string[], rows: Iterable<readonly Cell[]>): string {
  const lines = [head.map(written).join(",")];
  for (const row of rows) lines.push(row.map(written).join(","));
  return `${lines.join("\r\n")}\r\n`;
}

/** The whole table of a run; ranks count from 1. */
export function answerCsv({ rows }: Answer): string {
  return csvOf(
    [
      "token_id",
      "token",
      "clean_logit",
      "edited_logit",
      "logit_difference",
      "clean_probability",
      "edited_probability",
      "clean_rank",
      "edited_rank",
    ],
    rows.map((row) => [
      row.token_id,
      row.token,
      row.clean_logit,
      row.edited_logit,
      row.edited_logit - row.clean_logit,
      row.clean_probability,
      row.edited_probability,
      row.clean_rank + 1,
      row.edited_rank + 1,
    ]),
  );
}

/** The numbers of each cell of a grid in the order of its values. */
export function* cellsOf(axes: readonly AxisView[]): Generator<number[]> {
  const total = axes.reduce((product, axis) => product * axis.size, 1);
  for (let number = 0; number < total; number += 1) {
    const cell: number[] = [];
    let rest = number;
    for (let axis = axes.length - 1; axis >= 0; axis -= 1) {
      const size = axes[axis]!.size;
      cell.unshift(rest % size);
      rest = Math.floor(rest / size);
    }
    yield cell;
  }
}

/** A sweep: a row for each computed cell, with a number and a name for each axis. */
export function sweepCsv(axes: readonly AxisView[], values: Float32Array, baseline: number | null): string {
  const head = axes.flatMap(({ name, labels }) => (labels.length > 0 ? [name, `${name}_label`] : [name]));
  function* rows(): Generator<Cell[]> {
    let number = 0;
    for (const cell of cellsOf(axes)) {
      const value = values[number]!;
      number += 1;
      if (Number.isNaN(value)) continue;
      const places = axes.flatMap(({ labels }, axis): Cell[] => {
        const entry = cell[axis]!;
        return labels.length > 0 ? [entry, labels[entry] ?? ""] : [entry];
      });
      yield [...places, value, ...(baseline === null ? [] : [value - baseline])];
    }
  }
  return csvOf([...head, "value", ...(baseline === null ? [] : ["difference"])], rows());
}

/** A lens: a row for each site and position. */
export function lensCsv({ sites, tokens, top }: LensGrid, probabilities: Float32Array): string {
  return csvOf(
    ["site", "position", "token", "top_token", "probability"],
    sites.flatMap((site, row) =>
      tokens.map((token, position) => [
        site,
        position,
        token,
        top[row]?.[position] ?? "",
        probabilities[row * tokens.length + position] ?? Number.NaN,
      ]),
    ),
  );
}
