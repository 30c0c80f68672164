// Which entries of an axis, and which values of a colour bar, get a label. The page and the exported figures use the
// same.
import { significant, visibleToken } from "./format";
import type { Span } from "./region";
import type { AxisView, ColourRange } from "./wire";

export interface Tick {
  /** Centre of the entry, in pixels from the axis's beginning. */
  at: number;
  entry: number;
  text: string;
}

/** What an entry of an axis is called: its number, and its token or name where it has one. */
export function entryText(axis: AxisView, entry: number): string {
  const label = axis.labels[entry];
  if (label === undefined || label === String(entry)) return String(entry);
  return axis.name === "position" ? `${entry} ${visibleToken(label)}` : label;
}

/** The smallest of 1, 2, 5, 10, 20, ... that is at least `least`. */
export function niceStep(least: number): number {
  for (let unit = 1; ; unit *= 10) {
    for (const factor of [1, 2, 5]) if (unit * factor >= least) return unit * factor;
  }
}

/** Ticks for the entries in sight, at least `room` pixels apart. */
export function axisTicks(axis: AxisView, span: Span, pixels: number, room: number): Tick[] {
  const cell = pixels / (span.to - span.from);
  const step = niceStep(room / cell);
  const ticks: Tick[] = [];
  for (let entry = Math.ceil(span.from / step) * step; entry < span.to && entry < axis.size; entry += step) {
    const at = (entry + 0.5 - span.from) * cell;
    if (at >= 0 && at <= pixels) ticks.push({ at, entry, text: entryText(axis, entry) });
  }
  return ticks;
}

export interface BarTick {
  /** From 0 at the low end to 1 at the high end. */
  share: number;
  text: string;
}

/** Five ticks of a colour bar; an end beyond which cells lie says so. */
export function barTicks(range: ColourRange, digits = 3): BarTick[] {
  return [0, 0.25, 0.5, 0.75, 1].map((share) => {
    let text = significant(range.low + (range.high - range.low) * share, digits);
    if (share === 0 && range.beyond_low > 0) text = `≤ ${text}`;
    if (share === 1 && range.beyond_high > 0) text = `≥ ${text}`;
    return { share, text };
  });
}

/** Parts of dotted names that differ, and the whole as a pattern: `h.0.mlp`, `h.1.mlp` as `0`, `1` of `h.*.mlp`. */
export function shortNames(names: readonly string[]): { pattern: string; short: string[] } {
  const parted = names.map((name) => name.split("."));
  const least = Math.min(...parted.map((parts) => parts.length));
  const first = parted[0] ?? [];
  const shared = (part: (parts: string[], number: number) => string | undefined) => {
    let number = 0;
    while (number < least && parted.every((parts) => part(parts, number) === part(first, number)))
      number += 1;
    return number;
  };
  if (names.length < 2) return { pattern: "", short: [...names] };
  const before = shared((parts, number) => parts[number]);
  if (before === least) return { pattern: "", short: [...names] };
  const after = Math.min(
    shared((parts, number) => parts[parts.length - 1 - number]),
    least - before - 1,
  );
  if (before + after === 0) return { pattern: "", short: [...names] };
  const end = (parts: string[]) => parts.length - after;
  const pattern = [...first.slice(0, before), "*", ...first.slice(end(first))].join(".");
  return { pattern, short: parted.map((parts) => parts.slice(before, end(parts)).join(".")) };
}
