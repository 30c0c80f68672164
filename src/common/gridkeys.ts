// Where arrow keys lead in a grid of cells. The first row may stand at the bottom, as layers do.

export interface GridCell {
  row: number;
  column: number;
}

/** The cell that a key leads to; null for keys that mean nothing here. Cells at an edge stay. */
export function gridStep(
  key: string,
  ctrl: boolean,
  { row, column }: GridCell,
  rows: number,
  columns: number,
  upwards: boolean,
): GridCell | null {
  const up = upwards ? 1 : -1;
  const to = (nextRow: number, nextColumn: number): GridCell => ({
    row: Math.min(Math.max(nextRow, 0), rows - 1),
    column: Math.min(Math.max(nextColumn, 0), columns - 1),
  });
  const top = upwards ? rows - 1 : 0;
  switch (key) {
    case "ArrowUp":
      return to(row + up, column);
    case "ArrowDown":
      return to(row - up, column);
    case "ArrowLeft":
      return to(row, column - 1);
    case "ArrowRight":
      return to(row, column + 1);
    case "Home":
      return ctrl ? to(top, 0) : to(row, 0);
    case "End":
      return ctrl ? to(rows - 1 - top, columns - 1) : to(row, columns - 1);
    case "PageUp":
      return to(top, column);
    case "PageDown":
      return to(rows - 1 - top, column);
    default:
      return null;
  }
}
