import { describe, expect, it } from "vitest";
import {
  chosenPositions,
  colourOf,
  indicesText,
  isShown,
  positionsText,
  readIndices,
  readPositions,
  stepAt,
  stepFor,
  targetOf,
} from "./steps";
import type { AnyStep, OperationView, Scope, StepView } from "./wire";

const SITE = "transformer.h.11.mlp.source.self_act_0";
const NOWHERE: Scope = { positions: null, from_positions: null, heads: null, index: null };
const FULL: Scope = { positions: [-1], from_positions: [2], heads: "0:4", index: "7" };

const shown = (step: AnyStep): StepView => ({
  step,
  title: "",
  where: "",
  error: "",
  report: null,
  base_positions: null,
  source_positions: null,
});

const operation = (kind: OperationView["kind"], site: string): OperationView => ({
  label: "self_act_0",
  kind,
  line: 1,
  column: 0,
  end_line: 1,
  end_column: 4,
  site,
  calls: null,
  reason: "",
  summary: "",
  tensors: [],
  module: "",
  can_step_into: false,
});

describe("the step of a click", () => {
  it("says no more than what differs from the ordinary", () => {
    expect(stepFor("zero", targetOf(SITE), NOWHERE, true)).toEqual({ kind: "zero", site: SITE });
    expect(stepFor("scale", targetOf(SITE), NOWHERE, true)).toEqual({
      kind: "scale",
      site: SITE,
      factor: 0.5,
    });
  });

  it("is at the value that was clicked", () => {
    const target = { site: SITE, io: "input" as const, argument: null, call: 1, element: [0, "x"] };
    expect(stepFor("zero", target, NOWHERE, true)).toEqual({
      kind: "zero",
      site: SITE,
      io: "input",
      call: 1,
      element: [0, "x"],
    });
  });

  it("has the scope of its site, and of another one the positions alone", () => {
    expect(stepFor("patch", targetOf(SITE), FULL, true)).toEqual({
      kind: "patch",
      site: SITE,
      positions: [-1],
      from_positions: [2],
      heads: "0:4",
      index: "7",
    });
    expect(stepFor("patch", targetOf(SITE), FULL, false)).toEqual({
      kind: "patch",
      site: SITE,
      positions: [-1],
    });
    expect(stepFor("zero", targetOf(SITE), FULL, true)).not.toHaveProperty("from_positions");
  });

  it("has no scope where it captures", () => {
    expect(stepFor("capture", targetOf(SITE), FULL, true)).toEqual({ kind: "capture", site: SITE });
  });

  it("keeps the first call and the element at the root apart from none", () => {
    const target = { ...targetOf(SITE), call: 0, element: [] };
    expect(stepFor("zero", target, NOWHERE, true)).toEqual({
      kind: "zero",
      site: SITE,
      call: 0,
      element: [],
    });
  });
});

describe("the step that a chip shows", () => {
  it("is the last one that is on", () => {
    const steps = [
      shown({ kind: "zero", site: SITE }),
      shown({ kind: "scale", site: SITE, factor: 2 }),
      shown({ kind: "patch", site: SITE, enabled: false }),
    ];
    expect(stepAt(steps, SITE)).toEqual({ kind: "scale", enabled: true });
  });

  it("is one that is off where none is on, and none elsewhere", () => {
    const steps = [shown({ kind: "zero", site: SITE, enabled: false })];
    expect(stepAt(steps, SITE)).toEqual({ kind: "zero", enabled: false });
    expect(stepAt(steps, "lm_head")).toBeNull();
  });

  it("has a colour of its own where it is one that is clicked", () => {
    expect(
      ["capture", "zero", "patch", "scale", "noise", "mean"].map((kind) => colourOf(kind as "zero")),
    ).toEqual(["capture", "zero", "patch", "scale", "other", "other"]);
  });
});

describe("operations that are listed", () => {
  it("are calls, and others where all are wanted or they are in use", () => {
    const binary = operation("binary" as OperationView["kind"], SITE);
    expect(isShown(operation("call", SITE), false, null, [])).toBe(true);
    expect(isShown(binary, false, null, [])).toBe(false);
    expect(isShown(binary, true, null, [])).toBe(true);
    expect(isShown(binary, false, targetOf(SITE), [])).toBe(true);
    expect(isShown(binary, false, null, [shown({ kind: "zero", site: SITE })])).toBe(true);
  });
});

describe("positions in text", () => {
  it.each([
    ["-1", [-1]],
    ["−1", [-1]],
    ["0, 3", [0, 3]],
    ["2:5", ["2:5"]],
    ['" Tower"', [" Tower"]],
    ["␣Tower", [" Tower"]],
    ['" a, b", 2', [" a, b", 2]],
    ['"say \\"hi\\""', ['say "hi"']],
  ])("%s is read", (text, positions) => {
    expect(readPositions(text)).toEqual(positions);
  });

  it("of nothing are all", () => {
    expect(readPositions(" , ")).toBeNull();
    expect(readPositions("")).toBeNull();
    expect(positionsText(null)).toBe("");
  });

  it.each<[NonNullable<Scope["positions"]>]>([
    [[-1]],
    [[0, 3]],
    [["2:5", ":"]],
    [[" Tower"]],
    [["a, b", 2]],
    [['"', "a"]],
    [["1"]],
    [["\u2423"]],
    [[" "]],
    [[{ text: "2:5" }]],
    [[{ text: " the", occurrence: 1 }, 4]],
  ])("%j come back as they were written", (positions) => {
    expect(readPositions(positionsText(positions))).toEqual(positions);
  });

  it("name the second of equal tokens", () => {
    expect(positionsText([{ text: " the", occurrence: 1 }])).toBe('" the"#1');
  });

  it.each(['"open', '"bad \\q"'])("an unfinished or wrong quotation %s is text", (text) => {
    expect(readPositions(text)).toEqual([text]);
  });
});

describe("positions chosen on a strip", () => {
  it("are in order; the last alone is -1; none is all", () => {
    expect(chosenPositions([3, 1], 8)).toEqual([1, 3]);
    expect(chosenPositions([7], 8)).toEqual([-1]);
    expect(chosenPositions([6, 7], 8)).toEqual([6, 7]);
    expect(chosenPositions([], 8)).toBeNull();
  });
  it("count from the end where that is what the counterpart does", () => {
    const counterparts = [0, null, null, 2, 3, 4, 5, 6];
    expect(chosenPositions([0, 2, 4], 8, counterparts)).toEqual([0, 2, -4]);
  });
});

describe("indices in text", () => {
  it("are expressions as they are typed", () => {
    expect(indicesText([0, 4])).toBe("0, 4");
    expect(indicesText("0:4")).toBe("0:4");
    expect(indicesText(null)).toBe("");
    expect(readIndices(" −2: ")).toBe("-2:");
    expect(readIndices("  ")).toBeNull();
  });
});
