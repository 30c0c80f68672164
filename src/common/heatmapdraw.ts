// Draws pictures into a canvas: each is an image of one pixel for each value, stretched to the place where its cells
// are on screen. Cells that hold no finite number get a mark beside their colour as soon as they are large enough.
import type { Theme } from "./colours";
import { paintIn } from "./paint";
import type { Cell } from "./readout";
import { entryUnder } from "./readout";
import type { Region } from "./region";
import type { Shot } from "./shots";

// Below this a mark would fill the cell.
const MARKED_CELL = 6;

const images = new WeakMap<Shot, { theme: Theme; canvas: HTMLCanvasElement }>();

/** The shot as an image, painted once for each theme. */
export function imageOf(shot: Shot, theme: Theme, make: () => HTMLCanvasElement): HTMLCanvasElement {
  const known = images.get(shot);
  if (known?.theme === theme) return known.canvas;
  const { picture, values } = shot;
  const pixels = paintIn(theme, values, picture.rows, picture.columns, picture.colours);
  const canvas = make();
  canvas.width = pixels.width;
  canvas.height = pixels.height;
  canvas.getContext("2d")?.putImageData(new ImageData(pixels.data, pixels.width, pixels.height), 0, 0);
  images.set(shot, { theme, canvas });
  return canvas;
}

export interface Place {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Where cells, from inclusive to exclusive, are on a screen that shows `region`. */
export function placeOf(
  region: Region,
  screen: { width: number; height: number },
  rows: readonly [number, number],
  columns: readonly [number, number],
): Place {
  const down = screen.height / (region.rows.to - region.rows.from);
  const across = screen.width / (region.columns.to - region.columns.from);
  return {
    x: (columns[0] - region.columns.from) * across,
    y: (rows[0] - region.rows.from) * down,
    width: (columns[1] - columns[0]) * across,
    height: (rows[1] - rows[0]) * down,
  };
}

/** Draw the shots over each other, the sharpest last. `screen` is in device pixels. */
export function drawShots(
  context: CanvasRenderingContext2D,
  shots: readonly Shot[],
  region: Region,
  theme: Theme,
  screen: { width: number; height: number },
  make: () => HTMLCanvasElement,
): void {
  context.fillStyle = theme.page;
  context.fillRect(0, 0, screen.width, screen.height);
  context.imageSmoothingEnabled = false;
  for (const shot of shots) {
    const { window } = shot.picture;
    const place = placeOf(region, screen, [window.row, window.row_end], [window.column, window.column_end]);
    context.drawImage(imageOf(shot, theme, make), place.x, place.y, place.width, place.height);
    markOdd(context, shot, region, screen);
  }
}

/** Marks on odd cells: a cross for NaN, an arrow's head up for +inf and down for -inf. */
function markOdd(
  context: CanvasRenderingContext2D,
  { picture, values }: Shot,
  region: Region,
  screen: { width: number; height: number },
): void {
  const { odd, window, rows, columns } = picture;
  if (odd.nan + odd.positive_infinity + odd.negative_infinity === 0) return;
  const down = (window.row_end - window.row) / rows;
  const across = (window.column_end - window.column) / columns;
  const size = placeOf(region, screen, [0, down], [0, across]);
  if (Math.min(size.width, size.height) < MARKED_CELL) return;
  const first = {
    row: Math.max(Math.floor((region.rows.from - window.row) / down), 0),
    column: Math.max(Math.floor((region.columns.from - window.column) / across), 0),
  };
  const end = {
    row: Math.min(Math.ceil((region.rows.to - window.row) / down), rows),
    column: Math.min(Math.ceil((region.columns.to - window.column) / across), columns),
  };
  context.strokeStyle = "#000";
  context.lineWidth = Math.max(Math.min(size.width, size.height) / 12, 1);
  context.beginPath();
  for (let row = first.row; row < end.row; row += 1) {
    for (let column = first.column; column < end.column; column += 1) {
      const value = values[row * columns + column]!;
      if (Number.isFinite(value)) continue;
      const place = placeOf(
        region,
        screen,
        [window.row + row * down, window.row + (row + 1) * down],
        [window.column + column * across, window.column + (column + 1) * across],
      );
      mark(context, value, place);
    }
  }
  context.stroke();
}

function mark(context: CanvasRenderingContext2D, value: number, place: Place): void {
  const reach = Math.min(place.width, place.height) * 0.28;
  const x = place.x + place.width / 2;
  const y = place.y + place.height / 2;
  if (Number.isNaN(value)) {
    context.moveTo(x - reach, y - reach);
    context.lineTo(x + reach, y + reach);
    context.moveTo(x + reach, y - reach);
    context.lineTo(x - reach, y + reach);
  } else {
    const tip = value > 0 ? -reach : reach;
    context.moveTo(x - reach, y - tip);
    context.lineTo(x, y + tip);
    context.lineTo(x + reach, y - tip);
  }
}

/** A frame around the cursor's cell, visible on every colour. */
export function drawCursor(
  context: CanvasRenderingContext2D,
  shot: Shot,
  cell: Cell,
  region: Region,
  screen: { width: number; height: number },
  ratio: number,
): void {
  const found = entryUnder(shot.picture, cell);
  if (found === null) return;
  const place = placeOf(region, screen, found.rows, found.columns);
  const least = 5 * ratio;
  const wider = Math.max(least - place.width, 0) / 2;
  const taller = Math.max(least - place.height, 0) / 2;
  for (const [colour, width] of [
    ["#fff", 3 * ratio],
    ["#000", ratio],
  ] as const) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.strokeRect(place.x - wider, place.y - taller, place.width + 2 * wider, place.height + 2 * taller);
  }
}
