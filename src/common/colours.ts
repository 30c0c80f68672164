// Colours of values, the same as those of nnsight_lab.plots. Signed values run from blue over the page's colour to
// orange, so that zero disappears into the page; what is no finite number has a colour that no scale contains.
//
// A scale is used through a lookup table of packed pixels. Its length is odd, so that zero in the middle of a symmetric
// range has an entry of its own.

export type ThemeName = "light" | "dark";

export interface Theme {
  page: string;
  ink: string;
  faint: string;
  diverging: readonly string[];
  sequential: readonly string[];
  nan: string;
  positiveInfinity: string;
  negativeInfinity: string;
  missing: string;
}

export const THEMES: Record<ThemeName, Theme> = {
  light: {
    page: "#ffffff",
    ink: "#1f2430",
    faint: "#5b6270",
    diverging: [
      "#08306b",
      "#2171b5",
      "#6baed6",
      "#c6dbef",
      "#ffffff",
      "#fdd0a2",
      "#fd8d3c",
      "#d94801",
      "#7f2704",
    ],
    sequential: ["#ffffff", "#c6dbef", "#6baed6", "#2171b5", "#08306b"],
    nan: "#8a8a8a",
    positiveInfinity: "#f0d500",
    negativeInfinity: "#009e73",
    missing: "#e4e4e8",
  },
  dark: {
    page: "#14161a",
    ink: "#e8eaee",
    faint: "#a5abb8",
    diverging: [
      "#d6ebff",
      "#7cbcf5",
      "#3a86cc",
      "#1d4672",
      "#14161a",
      "#6e3310",
      "#cc5f16",
      "#f9a25c",
      "#ffe6cf",
    ],
    sequential: ["#14161a", "#1d4672", "#3a86cc", "#7cbcf5", "#d6ebff"],
    nan: "#8a8a8a",
    positiveInfinity: "#f0d500",
    negativeInfinity: "#009e73",
    missing: "#30343c",
  },
};

const ENTRIES = 513;

type Rgb = readonly [number, number, number];

function rgbOf(colour: string): Rgb {
  const number = Number.parseInt(colour.slice(1), 16);
  return [(number >> 16) & 255, (number >> 8) & 255, number & 255];
}

/** An opaque pixel of an RGBA image as one number; browsers run on little-endian machines only. */
export function packed(colour: string): number {
  const [red, green, blue] = rgbOf(colour);
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

function between(stops: readonly string[], share: number): Rgb {
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const below = Math.min(Math.floor(place), stops.length - 2);
  const rest = place - below;
  const from = rgbOf(stops[below]!);
  const to = rgbOf(stops[below + 1]!);
  const mix = (channel: 0 | 1 | 2) => Math.round(from[channel] + (to[channel] - from[channel]) * rest);
  return [mix(0), mix(1), mix(2)];
}

const hex = (channel: number) => channel.toString(16).padStart(2, "0");

/** The colour at `share`, from 0 to 1, of a scale with its stops at equal distances. */
export function colourAt(stops: readonly string[], share: number): string {
  return `#${between(stops, share).map(hex).join("")}`;
}

const tables = new Map<readonly string[], Uint32Array>();

/** The scale as packed pixels, from its low end to its high end. */
export function lookupTable(stops: readonly string[]): Uint32Array {
  let table = tables.get(stops);
  if (table === undefined) {
    table = Uint32Array.from({ length: ENTRIES }, (_, entry) =>
      packed(colourAt(stops, entry / (ENTRIES - 1))),
    );
    tables.set(stops, table);
  }
  return table;
}

/** The stops of the scale for a range: signed ones are symmetric around zero, others begin at zero. */
export function stopsFor(theme: Theme, low: number): readonly string[] {
  return low < 0 ? theme.diverging : theme.sequential;
}

/** The scale as a CSS gradient from left to right. */
export function gradient(stops: readonly string[]): string {
  return `linear-gradient(to right, ${stops.join(", ")})`;
}

/** Relative luminance after WCAG 2. */
function luminance(colour: string): number {
  const [red, green, blue] = rgbOf(colour).map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Black or white, whichever stands out more on `colour`. */
export function inkOn(colour: string): "#000000" | "#ffffff" {
  const light = luminance(colour);
  return (light + 0.05) / 0.05 >= 1.05 / (light + 0.05) ? "#000000" : "#ffffff";
}

/** Colour of a value in a range; null for NaN, whose meaning the caller knows. */
export function valueColour(theme: Theme, value: number, low: number, high: number): string | null {
  if (Number.isNaN(value)) return null;
  if (value === Infinity) return theme.positiveInfinity;
  if (value === -Infinity) return theme.negativeInfinity;
  return colourAt(stopsFor(theme, low), (value - low) / (high - low || 1));
}
