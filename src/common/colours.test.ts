import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { colourAt, inkOn, lookupTable, packed, stopsFor, THEMES, valueColour } from "./colours";
import { floatsOf, floatsOfBase64, paint, paintIn } from "./paint";

const ODD = { nan: 0xff000001, positiveInfinity: 0xff000002, negativeInfinity: 0xff000003 };
const TABLE = Uint32Array.of(0xff0000aa, 0xff0000bb, 0xff0000cc);
const numbersOf = (pixels: { data: Uint8ClampedArray }) => [...new Uint32Array(pixels.data.buffer)];

describe("colours", () => {
  it("are those of the Python plots", async () => {
    const source = await readFile("nnsight_lab/plots/themes.py", "utf8");
    for (const [name, theme] of Object.entries(THEMES)) {
      const text = source.split(`${name.toUpperCase()} = Theme(`)[1]!.split("\n)\n")[0]!;
      expect(text.match(/#[0-9a-f]{6}/g)).toEqual([
        theme.page,
        theme.ink,
        theme.faint,
        ...theme.diverging,
        ...theme.sequential,
        theme.nan,
        theme.positiveInfinity,
        theme.negativeInfinity,
        theme.missing,
      ]);
    }
  });

  it("are mixed between stops, and hold at the ends", () => {
    const stops = ["#000000", "#646464", "#ffffff"];
    expect(colourAt(stops, 0.25)).toBe("#323232");
    expect(colourAt(stops, 0.5)).toBe("#646464");
    expect([colourAt(stops, -1), colourAt(stops, 2)]).toEqual(["#000000", "#ffffff"]);
  });

  it("are packed red first, opaque", () => {
    expect([...new Uint8Array(Uint32Array.of(packed("#0a14ff")).buffer)]).toEqual([10, 20, 255, 255]);
  });

  it.each(["light", "dark"] as const)("put zero of a signed scale into the %s page", (name) => {
    const theme = THEMES[name];
    const table = lookupTable(theme.diverging);
    expect(table.length % 2).toBe(1);
    expect(table[(table.length - 1) / 2]).toBe(packed(theme.page));
    expect([table[0], table.at(-1)]).toEqual([packed(theme.diverging[0]!), packed(theme.diverging.at(-1)!)]);
  });

  it("are signed where the range goes below zero", () => {
    expect(stopsFor(THEMES.light, -1)).toBe(THEMES.light.diverging);
    expect(stopsFor(THEMES.light, 0)).toBe(THEMES.light.sequential);
  });

  it("of values that are no finite number are their own; NaN is left to the caller", () => {
    const { light } = THEMES;
    expect(valueColour(light, Number.NaN, -1, 1)).toBeNull();
    expect(valueColour(light, Infinity, -1, 1)).toBe(light.positiveInfinity);
    expect(valueColour(light, -Infinity, -1, 1)).toBe(light.negativeInfinity);
    expect(valueColour(light, 0, -1, 1)).toBe("#ffffff");
    expect(valueColour(light, 5, -1, 1)).toBe("#7f2704");
    expect(valueColour(light, 0, 0, 0)).toBe("#ffffff");
  });

  it("bear text that stands out", () => {
    expect(inkOn("#ffffff")).toBe("#000000");
    expect(inkOn("#08306b")).toBe("#ffffff");
    expect(inkOn("#f0d500")).toBe("#000000");
  });
});

describe("painting", () => {
  it("takes the nearest entry, the ends for what lies beyond, and marks what is odd", () => {
    const values = Float32Array.of(-1, 0, 1, -0.51, -0.49, 9, -9, Number.NaN, Infinity, -Infinity);
    const pixels = paint(values, 2, 5, { low: -1, high: 1 }, TABLE, ODD);
    const [low, middle, high] = TABLE;
    expect([pixels.width, pixels.height]).toEqual([5, 2]);
    expect(numbersOf(pixels)).toEqual([
      low,
      middle,
      high,
      low,
      middle,
      high,
      low,
      ODD.nan,
      ODD.positiveInfinity,
      ODD.negativeInfinity,
    ]);
  });

  it("of a range of no width still tells odd values apart", () => {
    const pixels = paint(
      Float32Array.of(3, Infinity, -Infinity, Number.NaN),
      1,
      4,
      { low: 3, high: 3 },
      TABLE,
      ODD,
    );
    expect(numbersOf(pixels)).toEqual([TABLE[0], ODD.positiveInfinity, ODD.negativeInfinity, ODD.nan]);
  });

  it("refuses values that do not make the cells", () => {
    expect(() => paint(new Float32Array(5), 2, 3, { low: 0, high: 1 }, TABLE, ODD)).toThrow(
      /5 values .* 2 x 3/,
    );
  });

  it("in a theme puts zero into its page", () => {
    const pixels = paintIn(THEMES.dark, Float32Array.of(0, Number.NaN), 1, 2, { low: -2, high: 2 });
    expect(numbersOf(pixels)).toEqual([packed("#14161a"), packed(THEMES.dark.nan)]);
  });
});

describe("arrays of replies", () => {
  it("are read where they begin, at any byte", () => {
    const bytes = new Uint8Array(11);
    bytes.set(new Uint8Array(Float32Array.of(1.5, -2).buffer), 3);
    expect([...floatsOf(new DataView(bytes.buffer, 3, 8))]).toEqual([1.5, -2]);
    const aligned = Float32Array.of(0, 7);
    expect([...floatsOf(new DataView(aligned.buffer, 4, 4))]).toEqual([7]);
    expect(floatsOf(null)).toHaveLength(0);
  });

  it("of snapshots are base64", () => {
    expect([...floatsOfBase64("AACAPwAAAMA=")]).toEqual([1, -2]);
  });
});
