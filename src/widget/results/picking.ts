// Which two axes of a value are on screen, and which entry of each other one. The entries are kept by axis, so that an
// axis that leaves the screen and comes back has what it had.
import type { AxisView, CapturedView, Picture, Slice, Target } from "../../common/wire";

export interface Pick {
  /** null lets the kernel choose. */
  row: number | null;
  column: number | null;
  /** Entry of every axis, by axis; 0 where left out. */
  entries: readonly number[];
}

export const NO_PICK: Pick = { row: null, column: null, entries: [] };

/** The slice that a pick asks for, of a value with `rank` axes. */
export function sliceOf(pick: Pick, rank: number): Slice {
  const index: number[] = [];
  if (pick.row !== null && pick.column !== null) {
    for (let axis = 0; axis < rank; axis += 1) {
      if (axis !== pick.row && axis !== pick.column) index.push(pick.entries[axis] ?? 0);
    }
  }
  return { row_axis: pick.row, column_axis: pick.column, index };
}

/** The pick that a picture shows. */
export function pickOf({ axes, slice }: Picture): Pick {
  const entries: number[] = [];
  let other = 0;
  axes.forEach((_, axis) => {
    if (axis === slice.row_axis || axis === slice.column_axis) entries.push(0);
    else entries.push(slice.index[other++] ?? 0);
  });
  return { row: slice.row_axis, column: slice.column_axis, entries };
}

/** Put an axis on screen as rows or columns; where it is the other one already, they change places. */
export function withAxis(pick: Pick, place: "row" | "column", axis: number): Pick {
  const other = place === "row" ? "column" : "row";
  return { ...pick, [place]: axis, [other]: pick[other] === axis ? pick[place] : pick[other] };
}

export function withEntry(pick: Pick, axis: number, entry: number): Pick {
  const entries = Array.from(
    { length: Math.max(pick.entries.length, axis + 1) },
    (_, at) => pick.entries[at] ?? 0,
  );
  entries[axis] = entry;
  return { ...pick, entries };
}

/** The axes that are not on screen and have something to choose. */
export function otherAxes(axes: readonly AxisView[], pick: Pick): Array<{ axis: AxisView; number: number }> {
  return axes
    .map((axis, number) => ({ axis, number }))
    .filter(({ axis, number }) => number !== pick.row && number !== pick.column && axis.size > 1);
}

const same = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

/** Whether a value is of the same place, whichever call or tensor of it. */
export function samePlace(one: Target, other: Target): boolean {
  return one.site === other.site && one.io === other.io && one.argument === other.argument;
}

/** Which captured value to show: the one asked for, else the selected one, else the latest. */
export function chosenValue(
  captured: readonly CapturedView[],
  wanted: string | null,
  selection: Target | null,
): CapturedView | null {
  const found =
    captured.find((value) => keyOf(value.target) === wanted) ??
    captured.find(({ target }) => selection !== null && same(target, selection)) ??
    captured.find(({ target }) => selection !== null && samePlace(target, selection));
  return found ?? captured.at(-1) ?? null;
}

export function keyOf(target: Target): string {
  return JSON.stringify([target.site, target.io, target.argument, target.call, target.element]);
}
