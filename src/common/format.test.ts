import { describe, expect, it } from "vitest";
import {
  count,
  counted,
  dtypeText,
  duration,
  fixed,
  probability,
  shapeText,
  signed,
  significant,
  visibleToken,
} from "./format";

const NUMBERS = [0, 1, -1, 0.5, 12.9, 1e-7, -3.25e-5, 99_999.5, 1e6, 123_456_789, -1.5e300, 5e-324];

describe("signed numbers", () => {
  it.each([
    [1.25, 2, "+1.25"],
    [-1.25, 2, "−1.25"],
    [0, 2, "0.00"],
    [-0.001, 2, "0.00"],
    [0.001, 2, "0.00"],
    [Number.NaN, 2, "NaN"],
    [Infinity, 2, "+inf"],
    [-Infinity, 2, "−inf"],
  ])("%f with %i digits is %s", (value, digits, text) => {
    expect(signed(value, digits)).toBe(text);
  });

  it("have no plus where none is asked for", () => {
    expect(fixed(3, 1)).toBe("3.0");
    expect(fixed(-3, 1)).toBe("−3.0");
  });
});

describe("significant digits", () => {
  it.each([
    [0, 4, "0"],
    [12.9, 4, "12.9"],
    [0.00123, 4, "0.00123"],
    [-0.00123, 4, "−0.00123"],
    [1.2e-7, 4, "1.2e−7"],
    [123_456, 4, "123500"],
    [1_234_567, 4, "1.235e6"],
    [99_999.96, 4, "100000"],
    [Number.NaN, 4, "NaN"],
  ])("%f to %i is %s", (value, digits, text) => {
    expect(significant(value, digits)).toBe(text);
  });

  it("read back are the number to within half a unit of the last digit", () => {
    for (const value of NUMBERS.filter((one) => one !== 0)) {
      const back = Number(significant(value, 4).replaceAll("−", "-"));
      expect(Math.abs(back - value) / Math.abs(value)).toBeLessThanOrEqual(5e-4);
    }
  });
});

describe("probabilities", () => {
  it.each([
    [0, "0"],
    [1, "1"],
    [0.98, "0.980"],
    [0.9985, "0.9985"],
    [0.999999, ">0.9999"],
    [0.0042, "0.0042"],
    [1.2e-7, "1.2e−7"],
    [Number.NaN, "NaN"],
  ])("%f is %s", (value, text) => {
    expect(probability(value)).toBe(text);
  });
});

describe("counts", () => {
  it.each([
    [0, "0"],
    [999, "999"],
    [1000, "1k"],
    [1_580_000, "1.58M"],
    [999_999, "1M"],
    [7_000_000_000, "7B"],
    [2.5e12, "2.5T"],
  ])("%i is %s", (value, text) => {
    expect(count(value)).toBe(text);
  });

  it("agree with their nouns", () => {
    expect([counted(1, "cell"), counted(0, "cell"), counted(20_000, "cell")]).toEqual([
      "1 cell",
      "0 cells",
      "20,000 cells",
    ]);
  });
});

describe("durations", () => {
  it.each([
    [0.0001, "<1 ms"],
    [0.0124, "12 ms"],
    [0.9999, "1.0 s"],
    [59.94, "59.9 s"],
    [59.96, "1 min 0 s"],
    [125, "2 min 5 s"],
  ])("%f s is %s", (value, text) => {
    expect(duration(value)).toBe(text);
  });
});

describe("tokens, shapes and dtypes", () => {
  it.each([
    [" Paris", "␣Paris"],
    ["a\n\tb", "a↵⇥b"],
    ["", "∅"],
    ["\u00a0", "⍽"],
    ["𝛼", "𝛼"],
  ])("the token %j is %s", (token, text) => {
    expect(visibleToken(token)).toBe(text);
  });

  it("shapes are lists, a number's is empty", () => {
    expect(shapeText([1, 8, 384])).toBe("[1,8,384]");
    expect(shapeText([])).toBe("[]");
  });

  it("a dtype without a short form keeps its name", () => {
    expect(dtypeText("bfloat16")).toBe("bf16");
    expect(dtypeText("quint4x2")).toBe("quint4x2");
  });
});
