// The part of a picture that is on screen, in cells and fractions of cells: zooming about a point, panning, and which
// whole cells to ask the kernel for. Each axis is treated on its own, by the same function.
import type { Window } from "./wire";

/** From inclusive to exclusive, in cells. */
export interface Span {
  from: number;
  to: number;
}

export interface Region {
  rows: Span;
  columns: Span;
}

export interface Extent {
  rows: number;
  columns: number;
}

// Cells of this many CSS pixels are easily hit and read: zooming in ends here, so that an axis with few cells (the
// positions) stays in sight while the other one is magnified.
const LARGE_CELL = 28;

export function whole({ rows, columns }: Extent): Region {
  return { rows: { from: 0, to: rows }, columns: { from: 0, to: columns } };
}

const lengthOf = ({ from, to }: Span) => to - from;

/** `span` moved so that it lies inside 0 to `size`. */
function inside({ from, to }: Span, size: number): Span {
  const length = Math.min(to - from, size);
  const start = Math.min(Math.max(from, 0), size - length);
  return { from: start, to: start + length };
}

function zoomedSpan(span: Span, size: number, at: number, factor: number, pixels: number): Span {
  const least = Math.min(size, Math.max(pixels / LARGE_CELL, 1), lengthOf(span));
  const length = Math.min(Math.max(lengthOf(span) / factor, least), size);
  const share = (at - span.from) / lengthOf(span);
  return inside({ from: at - share * length, to: at + (1 - share) * length }, size);
}

/** Zoomed in by `factor` (out where below 1) about a point, which stays where it is unless an edge is met. */
export function zoomed(
  region: Region,
  extent: Extent,
  at: { row: number; column: number },
  factor: number,
  pixels: { width: number; height: number },
): Region {
  return {
    rows: zoomedSpan(region.rows, extent.rows, at.row, factor, pixels.height),
    columns: zoomedSpan(region.columns, extent.columns, at.column, factor, pixels.width),
  };
}

/** Moved by cells; it stops at the edges. */
export function panned(region: Region, extent: Extent, rows: number, columns: number): Region {
  const moved = ({ from, to }: Span, by: number) => ({ from: from + by, to: to + by });
  return {
    rows: inside(moved(region.rows, rows), extent.rows),
    columns: inside(moved(region.columns, columns), extent.columns),
  };
}

/** Moved as little as needed to have a cell in sight. */
export function showing(region: Region, extent: Extent, row: number, column: number): Region {
  const by = ({ from, to }: Span, cell: number) => Math.min(cell - from, 0) + Math.max(cell + 1 - to, 0);
  return panned(region, extent, by(region.rows, row), by(region.columns, column));
}

/** The point of the picture under a point of the screen. */
export function pointAt(region: Region, share: { x: number; y: number }): { row: number; column: number } {
  return {
    row: region.rows.from + share.y * lengthOf(region.rows),
    column: region.columns.from + share.x * lengthOf(region.columns),
  };
}

function askedSpan({ from, to }: Span, size: number, pixels: number): [number, number, number] {
  if (from <= 0 && to >= size) return [0, size, pixels];
  // Half as much again on each side, so that a drag has something sharp to show.
  const margin = (to - from) / 2;
  const first = Math.max(Math.floor(from - margin), 0);
  const end = Math.min(Math.ceil(to + margin), size);
  return [first, end, Math.ceil((pixels * (end - first)) / (to - from))];
}

export interface Asked {
  window: Window;
  height: number;
  width: number;
}

/** What to ask for so that each device pixel on screen has a value, with a margin around. */
export function asked(region: Region, extent: Extent, device: { width: number; height: number }): Asked {
  const [row, row_end, height] = askedSpan(region.rows, extent.rows, device.height);
  const [column, column_end, width] = askedSpan(region.columns, extent.columns, device.width);
  return { window: { row, row_end, column, column_end }, height, width };
}

/** Whether a picture of `window` with so many rows and columns shows `region` as sharply as `device` can. */
export function sharpEnough(
  region: Region,
  window: Window,
  picture: Extent,
  device: { width: number; height: number },
): boolean {
  const axis = (span: Span, from: number, to: number, cells: number, pixels: number) => {
    const contained = from <= Math.floor(span.from) && to >= Math.ceil(span.to);
    const exact = cells === to - from;
    return contained && (exact || (cells * lengthOf(span)) / (to - from) >= pixels * 0.9);
  };
  return (
    axis(region.rows, window.row, window.row_end, picture.rows, device.height) &&
    axis(region.columns, window.column, window.column_end, picture.columns, device.width)
  );
}

/** The cells of the whole picture that entry `number` of `entries` stands for, from inclusive to exclusive. */
export function pooledCells(from: number, to: number, entries: number, number: number): [number, number] {
  const size = to - from;
  return [from + Math.floor((number * size) / entries), from + Math.floor(((number + 1) * size) / entries)];
}

/** The entry of a pooled picture that stands for a cell of the whole picture. */
export function entryOf(from: number, to: number, entries: number, cell: number): number {
  return Math.ceil(((cell - from + 1) * entries) / (to - from)) - 1;
}
