// A heatmap as a figure for files: what is on screen, with its axes, its colour bar and the counts of odd entries.
import { stopsFor, type Theme } from "../../common/colours";
import { type Figure, fitted, type Item, TEXT_SIZE, textWidth } from "../../common/figure";
import { significant } from "../../common/format";
import type { Shown } from "../../common/heatmap";
import { paintIn } from "../../common/paint";
import { axisOf } from "../../common/readout";
import { axisTicks, barTicks, entryText } from "../../common/ticks";
import type { ColourRange, Counts, Picture } from "../../common/wire";

const PLOT = { width: 640, height: 320 };
const EDGE = 16;
const TOP = 56;
// Height of what stands below the plot: ticks, the axis's name, the colour bar and its legend.
const BELOW = 116;

export function heatmapFigure({ shot, region }: Shown, title: string, theme: Theme): Figure {
  const { picture, values } = shot;
  const { window } = picture;
  const rowAxis = axisOf(picture, picture.slice.row_axis);
  const columnAxis = axisOf(picture, picture.slice.column_axis);
  const down = axisTicks(rowAxis, region.rows, PLOT.height, 16);
  const across = axisTicks(columnAxis, region.columns, PLOT.width, 64);
  const room = Math.min(Math.max(40, ...down.map(({ text }) => textWidth(text))), 160);
  const left = EDGE + 20 + room;
  const plot = { x: left, y: TOP, ...PLOT };
  const perRow = picture.rows / (window.row_end - window.row);
  const perColumn = picture.columns / (window.column_end - window.column);
  const faint = theme.faint;
  const items: Item[] = [
    {
      kind: "text",
      x: EDGE,
      y: 20,
      text: fitted(title, left + PLOT.width - EDGE, 14),
      size: 14,
      bold: true,
      fill: theme.ink,
    },
    { kind: "text", x: EDGE, y: 40, text: fitted(subtitle(picture), left + PLOT.width - EDGE), fill: faint },
    {
      kind: "image",
      ...plot,
      pixels: paintIn(theme, values, picture.rows, picture.columns, picture.colours),
      from: {
        x: (region.columns.from - window.column) * perColumn,
        y: (region.rows.from - window.row) * perRow,
        width: (region.columns.to - region.columns.from) * perColumn,
        height: (region.rows.to - region.rows.from) * perRow,
      },
    },
    { kind: "rect", ...plot, stroke: faint },
  ];
  for (const { at, text } of rowAxis.name === "" ? [] : down) {
    const y = plot.y + at;
    items.push({ kind: "line", x1: left - 4, y1: y, x2: left, y2: y, stroke: faint });
    items.push({ kind: "text", x: left - 7, y, text: fitted(text, room), anchor: "end", fill: theme.ink });
  }
  const foot = plot.y + plot.height;
  for (const { at, text } of columnAxis.name === "" ? [] : across) {
    const x = plot.x + at;
    items.push({ kind: "line", x1: x, y1: foot, x2: x, y2: foot + 4, stroke: faint });
    items.push({ kind: "text", x, y: foot + 13, text: fitted(text, 62), anchor: "middle", fill: theme.ink });
  }
  const names = [rowAxis.name && `${rowAxis.name} ↓`, columnAxis.name && `${columnAxis.name} →`];
  const name = names.filter((text) => text !== "").join("   ");
  items.push({ kind: "text", x: left, y: foot + 32, text: name, fill: faint });
  items.push(...barItems(picture.colours, picture.odd, theme, left, foot + 48, PLOT.width));
  return { width: left + PLOT.width + EDGE + 16, height: foot + BELOW, page: theme.page, items };
}

/** The run, the dtype, the whole shape, and the entries of the axes that are not on screen. */
function subtitle({ axes, slice, shape, dtype }: Picture): string {
  const others = axes
    .map((axis, number) => ({ axis, number }))
    .filter(({ number }) => number !== slice.row_axis && number !== slice.column_axis)
    .map(({ axis }, order) => `${axis.name} ${entryText(axis, slice.index[order] ?? 0)}`);
  return [`[${shape.join(", ")}] ${dtype}`, ...others].join(" · ");
}

/** A colour bar with its ticks, and below it what lies beyond and what is no number. */
export function barItems(
  colours: ColourRange,
  odd: Counts | null,
  theme: Theme,
  x: number,
  y: number,
  width: number,
): Item[] {
  const items: Item[] = [
    { kind: "gradient", x, y, width, height: 10, stops: stopsFor(theme, colours.low) },
    { kind: "rect", x, y, width, height: 10, stroke: theme.faint },
  ];
  for (const { share, text } of barTicks(colours)) {
    const anchor = share === 0 ? "start" : share === 1 ? "end" : "middle";
    items.push({ kind: "text", x: x + share * width, y: y + 20, text, anchor, fill: theme.ink });
  }
  let at = x;
  const beyond = colours.beyond_low + colours.beyond_high;
  const say = (text: string, colour?: string) => {
    if (colour !== undefined) {
      items.push({ kind: "rect", x: at, y: y + 35, width: 10, height: 10, fill: colour });
      at += 14;
    }
    items.push({ kind: "text", x: at, y: y + 40, text, fill: theme.ink });
    at += textWidth(text, TEXT_SIZE) + 16;
  };
  if (beyond > 0) {
    say(`${beyond} beyond, from ${significant(colours.smallest, 3)} to ${significant(colours.largest, 3)}`);
  }
  if (odd !== null && odd.nan > 0) say(`NaN ${odd.nan}`, theme.nan);
  if (odd !== null && odd.positive_infinity > 0) say(`+inf ${odd.positive_infinity}`, theme.positiveInfinity);
  if (odd !== null && odd.negative_infinity > 0) say(`−inf ${odd.negative_infinity}`, theme.negativeInfinity);
  return items;
}
