import { describe, expect, it } from "vitest";
import { cellAt, keyed, wheelFactor } from "./heatmapinput";
import { asked, entryOf, panned, pointAt, pooledCells, sharpEnough, showing, whole, zoomed } from "./region";

const EXTENT = { rows: 100, columns: 400 };
const SCREEN = { width: 560, height: 280 };
const part = (row: number, rowEnd: number, column: number, columnEnd: number) => ({
  rows: { from: row, to: rowEnd },
  columns: { from: column, to: columnEnd },
});

describe("zooming", () => {
  it("keeps the point under the pointer", () => {
    const region = zoomed(whole(EXTENT), EXTENT, { row: 25, column: 300 }, 2, SCREEN);
    expect(region).toEqual(part(12.5, 62.5, 150, 350));
    expect(pointAt(region, { x: 0.75, y: 0.25 })).toEqual({ row: 25, column: 300 });
  });

  it("ends where cells are 28 pixels large", () => {
    const region = zoomed(whole(EXTENT), EXTENT, { row: 50, column: 200 }, 1e6, SCREEN);
    expect(region).toEqual(part(45, 55, 190, 210));
  });

  it("leaves an axis of few cells whole", () => {
    const extent = { rows: 8, columns: 400 };
    const region = zoomed(whole(extent), extent, { row: 4, column: 200 }, 2, SCREEN);
    expect(region.rows).toEqual({ from: 0, to: 8 });
    expect(region.columns).toEqual({ from: 100, to: 300 });
  });

  it("out ends at the whole, inside the edges", () => {
    const region = zoomed(part(90, 100, 0, 20), EXTENT, { row: 95, column: 10 }, 0.5, SCREEN);
    expect(region).toEqual(part(80, 100, 0, 40));
    expect(zoomed(region, EXTENT, { row: 90, column: 10 }, 1e-6, SCREEN)).toEqual(whole(EXTENT));
  });

  it("by the wheel is as much out as in, and no turn is more than e", () => {
    expect(wheelFactor(120, 0) * wheelFactor(-120, 0)).toBeCloseTo(1, 12);
    expect(wheelFactor(-1e5, 0)).toBeCloseTo(Math.E, 12);
    expect(wheelFactor(3, 1)).toBe(wheelFactor(48, 0));
    expect(wheelFactor(1, 0)).toBeLessThan(1);
  });
});

describe("panning", () => {
  it("stops at the edges with the same size", () => {
    expect(panned(part(10, 20, 30, 50), EXTENT, -50, 1000)).toEqual(part(0, 10, 380, 400));
  });

  it("to a cell moves as little as needed", () => {
    expect(showing(part(10, 20, 30, 50), EXTENT, 15, 50)).toEqual(part(10, 20, 31, 51));
    expect(showing(part(10, 20, 30, 50), EXTENT, 3, 40)).toEqual(part(3, 13, 30, 50));
  });
});

describe("what is asked of the kernel", () => {
  it("is the whole at the screen's pixels", () => {
    expect(asked(whole(EXTENT), EXTENT, SCREEN)).toEqual({
      window: { row: 0, row_end: 100, column: 0, column_end: 400 },
      height: 280,
      width: 560,
    });
  });

  it("is whole cells with half as much on each side, a value for each pixel", () => {
    // Rows 40.5 to 60.5: ten cells on each side, 30 to 71; 41 cells of 14 pixels. Columns stop at the edge.
    expect(asked(part(40.5, 60.5, 0, 100), EXTENT, SCREEN)).toEqual({
      window: { row: 30, row_end: 71, column: 0, column_end: 150 },
      height: 574,
      width: 840,
    });
  });

  it("is nothing where the picture is exact or has a value for each pixel", () => {
    const window = { row: 0, row_end: 100, column: 0, column_end: 400 };
    const device = { width: 200, height: 50 };
    expect(sharpEnough(whole(EXTENT), window, { rows: 100, columns: 400 }, SCREEN)).toBe(true);
    expect(sharpEnough(whole(EXTENT), window, { rows: 50, columns: 200 }, device)).toBe(true);
    expect(sharpEnough(part(0, 50, 0, 400), window, { rows: 50, columns: 200 }, device)).toBe(false);
    const outside = { ...window, row: 10 };
    expect(sharpEnough(whole(EXTENT), outside, { rows: 90, columns: 400 }, device)).toBe(false);
  });
});

describe("pooled entries", () => {
  it("stand for the cells that the kernel pooled", () => {
    const cells = [0, 1, 2, 3].map((entry) => pooledCells(0, 10, 4, entry));
    expect(cells).toEqual([
      [0, 2],
      [2, 5],
      [5, 7],
      [7, 10],
    ]);
    const entries = Array.from({ length: 10 }, (_, cell) => entryOf(100, 110, 4, 100 + cell));
    expect(entries).toEqual([0, 0, 1, 1, 1, 2, 2, 3, 3, 3]);
  });

  it("are found from every cell of theirs", () => {
    const wrong: string[] = [];
    for (let size = 1; size <= 60; size += 1) {
      for (let entries = 1; entries <= size; entries += 1) {
        for (let entry = 0; entry < entries; entry += 1) {
          const [from, to] = pooledCells(7, 7 + size, entries, entry);
          for (let cell = from; cell < to; cell += 1)
            if (entryOf(7, 7 + size, entries, cell) !== entry) wrong.push(`${size} ${entries} ${cell}`);
        }
      }
    }
    expect(wrong).toEqual([]);
  });
});

describe("the cursor", () => {
  const sight = { region: whole(EXTENT), cursor: { row: 50, column: 200 } };
  const press = (key: string, shift = false, from: Parameters<typeof keyed>[2] = sight) =>
    keyed(key, shift, from, EXTENT, SCREEN, { rows: 1, columns: 3 });

  it("is in the cell under a point, at the edge too", () => {
    expect(cellAt(whole(EXTENT), EXTENT, SCREEN, 1.5, 2.9)).toEqual({ row: 1, column: 1 });
    expect(cellAt(whole(EXTENT), EXTENT, SCREEN, 560, 280)).toEqual({ row: 99, column: 399 });
  });

  it.each([
    ["ArrowUp", 49, 200],
    ["ArrowDown", 51, 200],
    ["ArrowLeft", 50, 197],
    ["ArrowRight", 50, 203],
    ["Home", 50, 0],
    ["End", 50, 399],
    ["PageUp", 0, 200],
    ["PageDown", 99, 200],
  ])("goes with %s to row %i, column %i", (key, row, column) => {
    expect(press(key)!.cursor).toEqual({ row, column });
  });

  it("begins in the middle, and ends with Escape", () => {
    expect(press("ArrowUp", false, { ...sight, cursor: null })!.cursor).toEqual({ row: 50, column: 200 });
    expect(press("Escape")).toEqual({ region: sight.region, cursor: null });
    expect(press("Escape", false, { ...sight, cursor: null })).toBeNull();
    expect(press("a")).toBeNull();
  });

  it("stays and takes what is on screen along", () => {
    const region = part(0, 10, 0, 20);
    const down = press("ArrowDown", false, { region, cursor: { row: 9, column: 0 } })!;
    expect(down).toEqual({ region: part(1, 11, 0, 20), cursor: { row: 10, column: 0 } });
    expect(press("ArrowUp", false, { region, cursor: { row: 0, column: 0 } })!.cursor!.row).toBe(0);
  });

  it("with shift pans an eighth, with + zooms about the cursor, with 0 shows all", () => {
    const region = part(40, 80, 0, 80);
    expect(press("ArrowRight", true, { region, cursor: null })!.region).toEqual(part(40, 80, 10, 90));
    const zoomedIn = press("+")!;
    expect(pointAt(zoomedIn.region, { x: 200.5 / 400, y: 0.505 }).column).toBeCloseTo(200.5, 9);
    expect(zoomedIn.region.columns.to - zoomedIn.region.columns.from).toBeCloseTo(250, 9);
    expect(press("0", false, { region, cursor: null })!.region).toEqual(whole(EXTENT));
  });
});
