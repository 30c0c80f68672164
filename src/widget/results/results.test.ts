// Numbers of runs, sweeps and lenses as rows, cells and files.
import { describe, expect, it } from "vitest";
import { THEMES } from "../../common/colours";
import { targetOf } from "../../common/steps";
import type { CapturedView, LensGrid, SweepGrid, TokenRow } from "../../common/wire";
import { answerWith } from "../../testing/kernel";
import { answerCsv, csvOf, lensCsv, sweepCsv } from "./csv";
import { sitePatterns, typedToken } from "./patterns";
import { chosenValue, otherAxes, pickOf, sliceOf, withAxis, withEntry } from "./picking";
import { bestCell, cellPlace, cellWords, headings, sweepCells, sweepPick, valueWords } from "./sweepcells";
import { answerRows, comparedRows, rankMove } from "./tokenrows";

const row = (token_id: number, clean: [number, number], edited: [number, number]): TokenRow => ({
  token_id,
  token: ` t${token_id}`,
  clean_logit: clean[0],
  clean_probability: 0.5,
  clean_rank: clean[1],
  edited_logit: edited[0],
  edited_probability: 0.25,
  edited_rank: edited[1],
});

describe("rows of the answer", () => {
  const rows = [row(1, [10, 0], [8, 4]), row(2, [9, 1], [13, 0]), row(3, [1, 60], [1, 2])];

  it("are ordered by the better rank of both runs, ranks counted from 1", () => {
    const made = answerRows(rows, "rank");
    expect(made.map(({ id, before, after }) => [id, before.rank, after.rank])).toEqual([
      [1, 1, 5],
      [2, 2, 1],
      [3, 61, 3],
    ]);
  });

  it("or by the size of the difference, which the longest bar stands for", () => {
    const made = answerRows(rows, "difference");
    expect(made.map(({ id, difference, bar }) => [id, difference, bar])).toEqual([
      [2, 4, 1],
      [1, -2, -0.5],
      [3, 0, 0],
    ]);
  });

  it("that are NaN come first by difference and have no bar", () => {
    const made = answerRows([...rows, row(4, [1, 3], [Number.NaN, 3])], "difference");
    expect(made[0]).toMatchObject({ id: 4, bar: 0 });
    expect(made[1]).toMatchObject({ id: 2, bar: 1 });
  });

  it("of two runs stand together by token, those of one run alone without a difference", () => {
    const made = comparedRows([rows[0]!, rows[1]!], [row(1, [0, 0], [11, 0]), rows[2]!]);
    expect(made.map(({ id, first, second }) => [id, first?.logit, second?.logit])).toEqual([
      [2, 13, undefined],
      [1, 8, 11],
      [3, undefined, 1],
    ]);
    expect(made.map(({ difference }) => difference)).toEqual([Number.NaN, 3, Number.NaN]);
    expect(made.map(({ bar }) => bar)).toEqual([0, 1, 0]);
  });

  it("move up to a smaller rank", () => {
    expect([rankMove(5, 1), rankMove(1, 5), rankMove(2, 2)]).toEqual(["up", "down", "same"]);
  });
});

describe("files", () => {
  it("quote what would be read as something else", () => {
    expect(
      csvOf(
        ["a", "b"],
        [
          ['x,"y"', ""],
          [" x", 0.1],
          ["line\nend", -0],
        ],
      ),
    ).toBe('a,b\r\n"x,""y""",""\r\n" x",0.1\r\n"line\nend",0\r\n');
  });

  it("of an answer have numbers in full and ranks from 1", () => {
    const lines = answerCsv(answerWith({ rows: [row(7, [0.1, 0], [0.30000000000000004, 2])] })).split("\r\n");
    expect(lines[1]).toBe('7," t7",0.1,0.30000000000000004,0.20000000000000004,0.5,0.25,1,3');
  });

  it("of a sweep have its computed cells", () => {
    const axes = [
      { name: "site", size: 2, labels: ["h.0", "h.1"] },
      { name: "head", size: 2, labels: [] },
    ];
    const values = Float32Array.of(1, Number.NaN, 3, 4);
    expect(sweepCsv(axes, values, 1)).toBe(
      "site,site_label,head,value,difference\r\n0,h.0,0,1,0\r\n1,h.1,0,3,2\r\n1,h.1,1,4,3\r\n",
    );
    expect(sweepCsv(axes, values, null).split("\r\n")[0]).toBe("site,site_label,head,value");
  });

  it("of a lens have each site and position", () => {
    const grid = { sites: ["h.0"], tokens: ["a", " b"], top: [["x", "y"]] } as unknown as LensGrid;
    expect(lensCsv(grid, Float32Array.of(0.5, 0.25))).toBe(
      'site,position,token,top_token,probability\r\nh.0,0,a,x,0.5\r\nh.0,1," b",y,0.25\r\n',
    );
  });
});

describe("sweeps", () => {
  const axes = [
    { name: "site", size: 2, labels: ["h.0.mlp", "h.1.mlp"] },
    { name: "step", size: 1, labels: [] },
    { name: "position", size: 3, labels: ["A", " b", " c"] },
  ];
  const grid: SweepGrid = {
    id: "1",
    kind: "sweep_grid",
    run: "sweep-1",
    title: "",
    metric: "",
    axes,
    baseline: 2,
    source_value: null,
    colours: { low: -4, high: 4, beyond_low: 0, beyond_high: 0, smallest: 0, largest: 0 },
    done: 5,
    total: 6,
    seconds: 1,
    notes: [],
  };
  const values = Float32Array.of(2, 3, -2, Number.NaN, 2, 2);

  it("put the axes with several entries on screen", () => {
    expect(sweepPick(axes)).toEqual({ row: 0, column: 2, entries: [0, 0, 0] });
    expect(sweepPick([axes[2]!])).toEqual({ row: 0, column: null, entries: [0] });
    expect(sweepPick([axes[1]!, axes[2]!])).toEqual({ row: 1, column: 0, entries: [0, 0] });
  });

  it("find the cell farthest from the clean run", () => {
    expect(bestCell(grid, values)).toEqual({ cell: [0, 0, 2], difference: -4 });
    expect(cellPlace(axes, [1, 0, 2])).toBe(5);
    expect(bestCell(grid, new Float32Array(6).fill(Number.NaN))).toBeNull();
  });

  it("say cells in words, and those that are not computed", () => {
    expect(cellWords(axes, [1, 0, 2])).toBe("h.1.mlp · step 0 · position 2 ␣c");
    expect(valueWords(-2, 2)).toBe("−4 (−2)");
    expect(valueWords(3, 2)).toBe("+1 (3)");
    expect(valueWords(3, null)).toBe("3");
    expect(valueWords(Number.NaN, 2)).toBe("not computed");
  });

  it("colour the differences, mark the largest in words as well, and leave what is not computed blank", () => {
    const cells = sweepCells(grid, values, sweepPick(axes), bestCell(grid, values), THEMES.light);
    expect(cells.map((line) => line.map(({ colour }) => colour))).toEqual([
      ["#ffffff", "#fdd0a2", "#08306b"],
      [null, "#ffffff", "#ffffff"],
    ]);
    expect(cells[0]![2]).toMatchObject({ marked: true, ink: "#ffffff" });
    expect(cells[0]![2]!.label).toBe("h.0.mlp · step 0 · position 2 ␣c: −4 (−2), largest effect");
    expect(cells[1]![0]!.label).toMatch(/not computed$/);
  });

  it("head rows with what differs, and columns with tokens", () => {
    expect(headings(axes[0])).toEqual({
      name: "h.*.mlp",
      headings: [
        { text: "0", title: "h.0.mlp" },
        { text: "1", title: "h.1.mlp" },
      ],
    });
    expect(headings(axes[2]).headings[1]).toEqual({ text: "␣b", title: "position 1 ␣b" });
    expect(headings(undefined).headings).toHaveLength(1);
  });

  it.each([
    [
      "transformer.h.11.mlp",
      "transformer.h.*",
      ["transformer.h.*.mlp", "transformer.h.*", "transformer.h.11.mlp"],
    ],
    ["lm_head", "transformer.h.*", ["transformer.h.*", "lm_head"]],
    ["fc", "", ["fc"]],
  ])("of %s go over sites of %s", (site, layers, patterns) => {
    expect(sitePatterns(site, layers).map(({ pattern }) => pattern)).toEqual(patterns);
  });

  it("take tokens as they are shown", () => {
    expect(typedToken("␣Paris↵⇥")).toBe(" Paris\n\t");
  });
});

describe("axes on screen", () => {
  it("ask for their slice with an entry of every other axis", () => {
    expect(sliceOf({ row: 3, column: 1, entries: [4, 9, 5] }, 4)).toEqual({
      row_axis: 3,
      column_axis: 1,
      index: [4, 5],
    });
    expect(sliceOf({ row: null, column: null, entries: [] }, 4).index).toEqual([]);
  });

  it("change places where one is put on the other", () => {
    const pick = { row: 1, column: 2, entries: [0, 0, 0] };
    expect(withAxis(pick, "row", 2)).toMatchObject({ row: 2, column: 1 });
    expect(withAxis(pick, "column", 0)).toMatchObject({ row: 1, column: 0 });
  });

  it("keep the entries of the others", () => {
    expect(withEntry({ row: 0, column: 1, entries: [] }, 2, 7).entries).toEqual([0, 0, 7]);
    const axes = [3, 1, 4, 5].map((size, number) => ({ name: `axis ${number}`, size, labels: [] }));
    expect(otherAxes(axes, { row: 2, column: 3, entries: [] }).map(({ number }) => number)).toEqual([0]);
    const slice = { row_axis: 2, column_axis: 3, index: [2, 0] };
    expect(pickOf({ axes, slice } as never)).toEqual({ row: 2, column: 3, entries: [2, 0, 0, 0] });
  });

  it("are of the value asked for, else of the selected place, else of the latest", () => {
    const value = (site: string, call: number | null): CapturedView => ({
      target: { ...targetOf(site), call },
      label: site,
      tensors: [],
    });
    const captured = [value("a", 0), value("b", null), value("c", null)];
    expect(chosenValue(captured, null, targetOf("b"))).toBe(captured[1]);
    expect(chosenValue(captured, null, targetOf("a"))).toBe(captured[0]);
    expect(chosenValue(captured, '["a","output",null,0,null]', targetOf("b"))).toBe(captured[0]);
    expect(chosenValue(captured, "gone", null)).toBe(captured[2]);
    expect(chosenValue([], null, null)).toBeNull();
  });
});
