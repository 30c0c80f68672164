// A figure for a file: a list of shapes, which is written as SVG here and drawn on a canvas for PNG
// (`figurecanvas.ts`), so that both are the same picture.
import type { Pixels } from "./paint";

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface TextItem {
  kind: "text";
  x: number;
  /** Of the middle of the line. */
  y: number;
  text: string;
  fill: string;
  size?: number;
  anchor?: "start" | "middle" | "end";
  bold?: boolean;
  mono?: boolean;
}

/** An image of one pixel for each value, of which the part `from` fills the box. */
export interface ImageItem extends Box {
  kind: "image";
  pixels: Pixels;
  from: Box;
}

export type Item =
  | (Box & { kind: "rect"; fill?: string; stroke?: string; strokeWidth?: number })
  | (Box & { kind: "gradient"; stops: readonly string[] })
  | { kind: "line"; x1: number; y1: number; x2: number; y2: number; stroke: string }
  | TextItem
  | ImageItem;

export interface Figure {
  width: number;
  height: number;
  page: string;
  items: Item[];
}

export const SANS = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";
export const MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
export const TEXT_SIZE = 12;

/** Width of a text in pixels, on the large side: letters are about this wide in every font above. */
export function textWidth(text: string, size = TEXT_SIZE): number {
  return [...text].length * size * 0.62;
}

/** A text cut with an ellipsis where it is wider than `width`. */
export function fitted(text: string, width: number, size = TEXT_SIZE): string {
  const letters = [...text];
  const room = Math.max(Math.floor(width / (size * 0.62)), 1);
  return letters.length <= room ? text : `${letters.slice(0, room - 1).join("")}…`;
}

// What XML 1.0 cannot hold, not even as a reference; tokens of a byte-level vocabulary contain such.
const UNSPEAKABLE = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

function escaped(text: string): string {
  return text
    .replace(UNSPEAKABLE, "\ufffd")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

type Value = string | number | undefined;

function element(name: string, attributes: Record<string, Value>, content = ""): string {
  const written = Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(
      ([key, value]) => ` ${key}="${typeof value === "number" ? Number(value.toFixed(3)) : escaped(value!)}"`,
    )
    .join("");
  return content === "" ? `<${name}${written}/>` : `<${name}${written}>${content}</${name}>`;
}

const boxOf = ({ x, y, width, height }: Box) => ({ x, y, width, height });

function drawn(item: Item, number: number, encode: (pixels: Pixels) => string): string {
  switch (item.kind) {
    case "rect":
      return element("rect", {
        ...boxOf(item),
        fill: item.fill ?? "none",
        stroke: item.stroke,
        "stroke-width": item.strokeWidth,
      });
    case "gradient": {
      const stops = item.stops.map((colour, stop) =>
        element("stop", { offset: stop / (item.stops.length - 1), "stop-color": colour }),
      );
      return (
        element("linearGradient", { id: `scale${number}` }, stops.join("")) +
        element("rect", { ...boxOf(item), fill: `url(#scale${number})` })
      );
    }
    case "line":
      return element("line", { x1: item.x1, y1: item.y1, x2: item.x2, y2: item.y2, stroke: item.stroke });
    case "text":
      return element(
        "text",
        {
          x: item.x,
          y: item.y,
          dy: "0.35em",
          fill: item.fill,
          "font-size": item.size ?? TEXT_SIZE,
          "text-anchor": item.anchor === "start" ? undefined : item.anchor,
          "font-weight": item.bold ? "600" : undefined,
          "font-family": item.mono ? MONO : undefined,
          "xml:space": "preserve",
        },
        escaped(item.text),
      );
    case "image": {
      const { x, y, width, height } = item.from;
      const image = element("image", {
        width: item.pixels.width,
        height: item.pixels.height,
        preserveAspectRatio: "none",
        style: "image-rendering: pixelated",
        href: encode(item.pixels),
      });
      const viewBox = [x, y, width, height].join(" ");
      return element("svg", { ...boxOf(item), viewBox, preserveAspectRatio: "none" }, image);
    }
  }
}

/**
 * The figure as an SVG document.
 *
 * @param encode makes a data address of an image, such as a canvas does.
 */
export function toSvg(figure: Figure, encode: (pixels: Pixels) => string): string {
  const { width, height, page } = figure;
  const items = figure.items.map((item, number) => drawn(item, number, encode));
  const attributes = {
    xmlns: "http://www.w3.org/2000/svg",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
  };
  const content = [element("rect", { width, height, fill: page }), ...items].join("\n");
  return `${element("svg", { ...attributes, "font-family": SANS }, `\n${content}\n`)}\n`;
}
