// Values to pixels, one pixel for each value: a pass over the array with a lookup table, and nothing else. The canvas
// then scales the pixels to cells.
import { lookupTable, packed, stopsFor, type Theme } from "./colours";

/** An RGBA image; what ImageData is, where there is no browser. */
export interface Pixels {
  width: number;
  height: number;
  data: Uint8ClampedArray<ArrayBuffer>;
}

export interface Range {
  low: number;
  high: number;
}

/** Packed pixels for what is no finite number. */
export interface OddPixels {
  nan: number;
  positiveInfinity: number;
  negativeInfinity: number;
}

/**
 * Paint `rows` x `columns` values. `low` gets the first entry of `table` and `high` the last, as does what lies beyond.
 */
export function paint(
  values: Float32Array,
  rows: number,
  columns: number,
  { low, high }: Range,
  table: Uint32Array,
  odd: OddPixels,
): Pixels {
  const cells = rows * columns;
  if (values.length !== cells) {
    throw new RangeError(`${values.length} values do not make ${rows} x ${columns} cells.`);
  }
  const pixels = new Uint32Array(cells);
  const last = table.length - 1;
  const scale = high > low ? last / (high - low) : 0;
  for (let cell = 0; cell < cells; cell += 1) {
    const value = values[cell]!;
    const entry = (value - low) * scale + 0.5;
    if (entry >= 0 && entry <= last) pixels[cell] = table[entry | 0]!;
    else if (Number.isNaN(value)) pixels[cell] = odd.nan;
    else if (value === Infinity) pixels[cell] = odd.positiveInfinity;
    else if (value === -Infinity) pixels[cell] = odd.negativeInfinity;
    else pixels[cell] = entry < 0 ? table[0]! : table[last]!;
  }
  return { width: columns, height: rows, data: new Uint8ClampedArray(pixels.buffer) };
}

/** Paint in the colours of a theme. */
export function paintIn(
  theme: Theme,
  values: Float32Array,
  rows: number,
  columns: number,
  range: Range,
): Pixels {
  return paint(values, rows, columns, range, lookupTable(stopsFor(theme, range.low)), {
    nan: packed(theme.nan),
    positiveInfinity: packed(theme.positiveInfinity),
    negativeInfinity: packed(theme.negativeInfinity),
  });
}

/** The array of a reply; copied where the host hands out a view that does not begin at a multiple of four bytes. */
export function floatsOf(buffer: DataView | null): Float32Array {
  if (buffer === null) return new Float32Array(0);
  if (buffer.byteOffset % 4 === 0) {
    return new Float32Array(buffer.buffer, buffer.byteOffset, buffer.byteLength >> 2);
  }
  const copy = buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.byteLength);
  return new Float32Array(copy);
}

/** The array of a snapshot. */
export function floatsOfBase64(text: string): Float32Array {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}
