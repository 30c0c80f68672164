import { describe, expect, it } from "vitest";
import { ancestorsOf, childrenOf, filteredRows, rowsOf, type TreeRow, treeOf } from "./treemodel";

// A model of a list of five layers, each with an mlp, and a head:
//   "" > h > 0..4 > mlp, head
const NAMES = ["", "h", "0", "mlp", "1", "mlp", "2", "mlp", "3", "mlp", "4", "mlp", "head"];
const DEPTH = [0, 1, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 1];
const KINDS = [0, 1, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 4];
const STRUCTURE = [0, 1, 2, 3, 2, 3, 2, 3, 2, 3, 9, 3, 4];
const tree = treeOf(
  NAMES,
  ["Model", "ModuleList", "Block", "MLP", "Linear"],
  Float64Array.from([...DEPTH, ...KINDS, ...NAMES.map(() => 7), ...NAMES.map(() => -1), ...STRUCTURE]),
);

const none: ReadonlySet<string> = new Set();
const words = (rows: TreeRow[]) =>
  rows.map((row) =>
    row.row === "group"
      ? `${tree.names[row.first]}..${tree.names[row.last]} x${row.count}${row.open ? " open" : ""} @${row.depth}`
      : `${tree.paths[row.module]} @${row.depth}`,
  );

describe("a module tree", () => {
  it("has a path for every module, and knows what is below each", () => {
    expect(tree.paths).toEqual([
      "",
      "h",
      "h.0",
      "h.0.mlp",
      "h.1",
      "h.1.mlp",
      "h.2",
      "h.2.mlp",
      "h.3",
      "h.3.mlp",
      "h.4",
      "h.4.mlp",
      "head",
    ]);
    expect([...tree.end]).toEqual([13, 12, 4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 13]);
    expect(childrenOf(tree, 0)).toEqual([1, 12]);
    expect(childrenOf(tree, 1)).toEqual([2, 4, 6, 8, 10]);
    expect(tree.kinds[12]).toBe("Linear");
    expect(tree.parameters[0]).toBe(7);
  });

  it("shows what is open only", () => {
    expect(words(rowsOf(tree, { open: none, groups: none, current: "" }))).toEqual([" @0"]);
    expect(words(rowsOf(tree, { open: new Set([""]), groups: none, current: "" }))).toEqual([
      " @0",
      "h @1",
      "head @1",
    ]);
  });

  it("folds layers of equal structure, and not one that differs", () => {
    const rows = rowsOf(tree, { open: new Set(["", "h"]), groups: none, current: "" });
    expect(words(rows)).toEqual([" @0", "h @1", "0..3 x4 @2", "h.4 @2", "head @1"]);
  });

  it("opens a fold under its row, which closes it again", () => {
    const rows = rowsOf(tree, { open: new Set(["", "h"]), groups: new Set(["h.0"]), current: "" });
    expect(words(rows)).toEqual([
      " @0",
      "h @1",
      "0..3 x4 open @2",
      "h.0 @2",
      "h.1 @2",
      "h.2 @2",
      "h.3 @2",
      "h.4 @2",
      "head @1",
    ]);
  });

  it("leaves the layer that is shown out of the fold, on its own", () => {
    const rows = rowsOf(tree, { open: new Set(["", "h", "h.3"]), groups: none, current: "h.3.mlp" });
    expect(words(rows)).toEqual([" @0", "h @1", "0..2 x3 @2", "h.3 @2", "h.3.mlp @3", "h.4 @2", "head @1"]);
  });

  it("does not fold fewer than three", () => {
    const rows = rowsOf(tree, { open: new Set(["", "h"]), groups: none, current: "h.2" });
    expect(words(rows)).toEqual([" @0", "h @1", "h.0 @2", "h.1 @2", "h.2 @2", "h.3 @2", "h.4 @2", "head @1"]);
  });

  it("of no modules has no rows", () => {
    expect(rowsOf(treeOf([], [], new Float64Array(0)), { open: none, groups: none, current: "" })).toEqual(
      [],
    );
  });

  it("of 20,000 modules makes its rows", () => {
    const count = 20_000;
    const names = Array.from({ length: count }, (_, i) => (i === 0 ? "" : `m${i}`));
    const columns = new Float64Array(5 * count);
    columns.fill(1, 1, count);
    const large = treeOf(names, ["M"], columns);
    expect(rowsOf(large, { open: new Set([""]), groups: none, current: "" })).toHaveLength(count);
  });
});

describe("a filter of modules", () => {
  it("finds names and classes in any case, under their ancestors", () => {
    expect(words(filteredRows(tree, " LINEAR "))).toEqual([" @0", "head @1"]);
    expect(words(filteredRows(tree, "4"))).toEqual([" @0", "h @1", "h.4 @2"]);
  });

  it("finds paths where a point is in it", () => {
    expect(words(filteredRows(tree, "h.2.m"))).toEqual([" @0", "h @1", "h.2 @2", "h.2.mlp @3"]);
  });

  it("that nothing fits leaves nothing", () => {
    expect(filteredRows(tree, "xyz")).toEqual([]);
  });
});

describe("the way to a module", () => {
  it("goes over the model itself and all between", () => {
    expect(ancestorsOf("h.2.mlp")).toEqual(["", "h", "h.2"]);
    expect(ancestorsOf("h")).toEqual([""]);
    expect(ancestorsOf("")).toEqual([""]);
  });
});
