// What pointer, wheel and keys do to the part of a heatmap that is on screen and to its cursor. Pure: the component
// keeps the state.
import type { Cell } from "./readout";
import { type Extent, panned, pointAt, type Region, showing, whole, zoomed } from "./region";

export interface Sight {
  region: Region;
  cursor: Cell | null;
}

export interface Screen {
  width: number;
  height: number;
}

const KEY_ZOOM = 1.6;

/** Factor of a turn of the wheel; a line is counted as 16 pixels. */
export function wheelFactor(delta: number, mode: number): number {
  const pixels = mode === 0 ? delta : delta * 16;
  return Math.exp(-Math.max(-240, Math.min(240, pixels)) / 240);
}

/** The cell under a point of the screen. */
export function cellAt(region: Region, extent: Extent, screen: Screen, x: number, y: number): Cell {
  const point = pointAt(region, { x: x / screen.width, y: y / screen.height });
  const within = (value: number, size: number) => Math.min(Math.max(Math.floor(value), 0), size - 1);
  return { row: within(point.row, extent.rows), column: within(point.column, extent.columns) };
}

const middle = ({ from, to }: { from: number; to: number }) => (from + to) / 2;

/**
 * What a key does; null for keys that mean nothing here. `step` is how many cells the cursor moves: those that share a
 * pixel are passed at once.
 */
export function keyed(
  key: string,
  shift: boolean,
  { region, cursor }: Sight,
  extent: Extent,
  screen: Screen,
  step: Extent,
): Sight | null {
  const spanOf = {
    rows: region.rows.to - region.rows.from,
    columns: region.columns.to - region.columns.from,
  };
  const start = cursor ?? {
    row: Math.min(Math.floor(middle(region.rows)), extent.rows - 1),
    column: Math.min(Math.floor(middle(region.columns)), extent.columns - 1),
  };
  const go = (rows: number, columns: number): Sight => {
    if (shift)
      return {
        region: panned(region, extent, (rows * spanOf.rows) / 8, (columns * spanOf.columns) / 8),
        cursor,
      };
    const to = {
      row: Math.min(Math.max(start.row + (cursor === null ? 0 : rows * step.rows), 0), extent.rows - 1),
      column: Math.min(
        Math.max(start.column + (cursor === null ? 0 : columns * step.columns), 0),
        extent.columns - 1,
      ),
    };
    return { region: showing(region, extent, to.row, to.column), cursor: to };
  };
  const jump = (cell: Cell): Sight => ({
    region: showing(region, extent, cell.row, cell.column),
    cursor: cell,
  });
  const zoom = (factor: number): Sight => {
    const at = { row: start.row + 0.5, column: start.column + 0.5 };
    return { region: zoomed(region, extent, at, factor, screen), cursor };
  };
  switch (key) {
    case "ArrowLeft":
      return go(0, -1);
    case "ArrowRight":
      return go(0, 1);
    case "ArrowUp":
      return go(-1, 0);
    case "ArrowDown":
      return go(1, 0);
    case "Home":
      return jump({ ...start, column: 0 });
    case "End":
      return jump({ ...start, column: extent.columns - 1 });
    case "PageUp":
      return jump({ ...start, row: 0 });
    case "PageDown":
      return jump({ ...start, row: extent.rows - 1 });
    case "+":
    case "=":
      return zoom(KEY_ZOOM);
    case "-":
    case "_":
      return zoom(1 / KEY_ZOOM);
    case "0":
      return { region: whole(extent), cursor };
    case "Escape":
      return cursor === null ? null : { region, cursor: null };
    default:
      return null;
  }
}
