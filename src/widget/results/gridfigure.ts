// A grid of cells as a figure for files, with its headings, its colour bar and its notes.
import type { Theme } from "../../common/colours";
import { type Figure, fitted, type Item, textWidth } from "../../common/figure";
import type { ColourRange } from "../../common/wire";
import type { CellLook, Heading } from "./cellgrid";
import { barItems } from "./heatmapfigure";

export interface GridPicture {
  title: string;
  notes: readonly string[];
  rows: readonly Heading[];
  columns: readonly Heading[];
  rowName: string;
  columnName: string;
  cells: ReadonlyArray<readonly CellLook[]>;
  colours: ColourRange;
}

const EDGE = 16;
const LINE = 18;
const BAR = 48;

export function gridFigure(picture: GridPicture, theme: Theme): Figure {
  const { rows, columns, cells } = picture;
  const texts = cells.flat().map(({ text }) => textWidth(text, 11));
  const heads = columns.map(({ text }) => textWidth(text, 11));
  const cell = {
    width: Math.min(Math.max(28, ...texts.map((width) => width + 6), ...heads.map((width) => width + 6)), 90),
    height: 20,
  };
  const aside = Math.min(Math.max(30, ...rows.map(({ text }) => textWidth(text))), 260) + 8;
  const left = EDGE + aside;
  const top = 36 + picture.notes.length * LINE + 10;
  const width = Math.max(cell.width * columns.length, 320);
  const foot = top + cell.height * rows.length;
  const items: Item[] = [
    {
      kind: "text",
      x: EDGE,
      y: 20,
      text: fitted(picture.title, aside + width, 14),
      size: 14,
      bold: true,
      fill: theme.ink,
    },
  ];
  picture.notes.forEach((note, number) => {
    const y = 40 + number * LINE;
    items.push({ kind: "text", x: EDGE, y, text: fitted(note, aside + width), fill: theme.faint });
  });
  cells.forEach((line, row) => {
    const y = foot - (row + 1) * cell.height;
    const middle = y + cell.height / 2;
    const heading = fitted(rows[row]?.text ?? "", aside - 8);
    items.push({ kind: "text", x: left - 6, y: middle, text: heading, anchor: "end", fill: theme.ink });
    line.forEach(({ colour, text, ink, marked }, column) => {
      const x = left + column * cell.width;
      const box = { x, y, width: cell.width, height: cell.height };
      items.push({
        kind: "rect",
        ...box,
        fill: colour ?? theme.missing,
        stroke: theme.page,
        strokeWidth: 0.5,
      });
      if (marked) {
        const inner = { x: x + 1.5, y: y + 1.5, width: cell.width - 3, height: cell.height - 3 };
        items.push({ kind: "rect", ...inner, stroke: theme.ink, strokeWidth: 2 });
      }
      if (text !== "") {
        items.push({
          kind: "text",
          x: x + cell.width / 2,
          y: middle,
          text: fitted(text, cell.width - 4, 11),
          size: 11,
          anchor: "middle",
          fill: ink,
        });
      }
    });
  });
  columns.forEach(({ text }, column) => {
    const x = left + (column + 0.5) * cell.width;
    const label = fitted(text, cell.width, 11);
    items.push({ kind: "text", x, y: foot + 12, text: label, size: 11, anchor: "middle", fill: theme.ink });
  });
  const names = `${picture.rowName} ↑   ${picture.columnName} →`;
  items.push({ kind: "text", x: left, y: foot + 30, text: names, fill: theme.faint });
  items.push(...barItems(picture.colours, null, theme, left, foot + 46, width));
  return { width: left + width + EDGE, height: foot + 46 + BAR, page: theme.page, items };
}
