// What ticks, readouts, grids' keys and Python's colours say.
import { describe, expect, it } from "vitest";
import { pictureOf } from "../testing/kernel";
import { gridStep } from "./gridkeys";
import { pythonSpans } from "./python";
import { entryUnder, readout } from "./readout";
import { targetOf } from "./steps";
import { axisTicks, barTicks, entryText, niceStep, shortNames } from "./ticks";
import type { AskTensor, Picture } from "./wire";

const POSITIONS = { name: "position", size: 4, labels: ["The", " Tower", "\n", " of"] };
const NEURONS = { name: "neuron", size: 10, labels: [] };

describe("ticks", () => {
  it("are 1, 2, 5 and their tens apart", () => {
    expect([0.3, 1, 1.01, 3, 5.5, 11, 21, 999].map(niceStep)).toEqual([1, 1, 2, 5, 10, 20, 50, 1000]);
  });

  it("stand in the middle of their cells, in sight only", () => {
    // Ten cells on 100 pixels with 25 pixels for a tick: every fifth.
    expect(axisTicks(NEURONS, { from: 0, to: 10 }, 100, 25)).toEqual([
      { at: 5, entry: 0, text: "0" },
      { at: 55, entry: 5, text: "5" },
    ]);
    expect(axisTicks(NEURONS, { from: 3, to: 8 }, 100, 25).map(({ entry }) => entry)).toEqual([4, 6]);
  });

  it("say tokens with their positions", () => {
    expect(entryText(POSITIONS, 1)).toBe("1 ␣Tower");
    expect(entryText(NEURONS, 3)).toBe("3");
    expect(entryText({ name: "site", size: 1, labels: ["h.0"] }, 0)).toBe("h.0");
  });

  it("of a bar say where values lie beyond", () => {
    const range = { low: -2, high: 2, beyond_low: 0, beyond_high: 3, smallest: -2, largest: 9 };
    expect(barTicks(range).map(({ text }) => text)).toEqual(["−2", "−1", "0", "1", "≥ 2"]);
  });

  it.each([
    [["h.0.mlp", "h.1.mlp"], "h.*.mlp", ["0", "1"]],
    [["a.0.x.0", "a.1.x.0"], "a.*.x.0", ["0", "1"]],
    [["h.0", "h.0.mlp"], "", ["h.0", "h.0.mlp"]],
    [["h.0"], "", ["h.0"]],
    [["embed", "head"], "", ["embed", "head"]],
    [[], "", []],
  ])("shorten %j to what differs", (names, pattern, short) => {
    expect(shortNames(names)).toEqual({ pattern, short });
  });
});

describe("the readout of a cell", () => {
  const values = Float32Array.from({ length: 40 }, (_, i) => i);
  const ask: AskTensor = {
    id: "1",
    kind: "tensor",
    run: "run-1",
    target: targetOf("h.0"),
    which: "edited",
    slice: { row_axis: null, column_axis: null, index: [] },
    window: null,
    height: 4,
    width: 10,
    pooling: "extreme",
    trim: 0.995,
  };
  const shot = (height: number, width: number) => {
    const { reply, values: found } = pictureOf(
      { values, rows: POSITIONS, columns: NEURONS },
      { ...ask, height, width },
    );
    return { picture: { ...reply, id: "1" } as Picture, found: found! };
  };

  it("is the value with its places", () => {
    const { picture, found } = shot(4, 10);
    expect(readout(picture, found, { row: 1, column: 7 })).toEqual({
      value: "17",
      places: "position 1 ␣Tower · neuron 7",
      pooled: "",
    });
  });

  it("of a pooled picture says of how many entries it is which", () => {
    const { picture, found } = shot(2, 5);
    expect(readout(picture, found, { row: 3, column: 5 })).toEqual({
      value: "35",
      places: "position 2 ↵ to 3 ␣of · neuron 4 to 5",
      pooled: "farthest from zero of 4 entries",
    });
  });

  it("is nothing outside the window", () => {
    const { picture, found } = shot(4, 10);
    const window = { row: 1, row_end: 3, column: 0, column_end: 10 };
    expect(entryUnder({ ...picture, window }, { row: 3, column: 0 })).toBeNull();
    expect(readout({ ...picture, window }, found, { row: 0, column: 0 })).toBeNull();
  });
});

describe("keys in a grid", () => {
  const from = { row: 1, column: 1 };
  it.each([
    ["ArrowUp", false, 0, 1, 2, 1],
    ["ArrowDown", false, 2, 1, 0, 1],
    ["ArrowLeft", false, 1, 0, 1, 0],
    ["ArrowRight", false, 1, 2, 1, 2],
    ["Home", false, 1, 0, 1, 0],
    ["End", false, 1, 4, 1, 4],
    ["Home", true, 0, 0, 3, 0],
    ["End", true, 3, 4, 0, 4],
    ["PageUp", false, 0, 1, 3, 1],
    ["PageDown", false, 3, 1, 0, 1],
  ])(
    "%s (ctrl %s) leads to %i, %i, and with layers upwards to %i, %i",
    (key, ctrl, row, column, up, across) => {
      expect(gridStep(key, ctrl, from, 4, 5, false)).toEqual({ row, column });
      expect(gridStep(key, ctrl, from, 4, 5, true)).toEqual({ row: up, column: across });
    },
  );

  it("stay at the edge, and others mean nothing", () => {
    expect(gridStep("ArrowUp", false, { row: 0, column: 0 }, 4, 5, false)).toEqual({ row: 0, column: 0 });
    expect(gridStep("a", false, from, 4, 5, false)).toBeNull();
  });
});

describe("Python in colours", () => {
  it("tells keywords, calls, strings, numbers and comments apart", () => {
    expect(pythonSpans("with run('a', 1e-3):  # go")).toEqual([
      { kind: "keyword", text: "with" },
      { kind: "plain", text: " " },
      { kind: "function", text: "run" },
      { kind: "plain", text: "(" },
      { kind: "string", text: "'a'" },
      { kind: "plain", text: ", " },
      { kind: "number", text: "1e-3" },
      { kind: "plain", text: "):  " },
      { kind: "comment", text: "# go" },
    ]);
  });

  it.each([
    '"""open',
    "x = 'a\\'b' # c",
    "rf'{x}'",
    "größe = 1",
    "'unfinished\nnext",
    "",
    "\\ ` ?",
    "a1.b2(3)",
  ])("loses nothing of %j", (code) => {
    expect(
      pythonSpans(code)
        .map(({ text }) => text)
        .join(""),
    ).toBe(code);
  });
});
