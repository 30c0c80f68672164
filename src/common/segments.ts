// A row of a listing cut into pieces of one colour each, with the names whose values can be shown.
import type { Span, Variable } from "./wire";

export interface Segment {
  text: string;
  kind: Span["kind"];
  variable: Variable | null;
}

/** The pieces of a row. Columns count characters as Python does, which are not always one unit of a JavaScript string. */
export function segments(spans: readonly Span[], variables: readonly Variable[]): Segment[] {
  const found: Segment[] = [];
  let column = 0;
  const waiting = [...variables];
  for (const { kind, text } of spans) {
    let rest = [...text];
    while (rest.length > 0) {
      while (waiting.length > 0 && waiting[0]!.end_column <= column) waiting.shift();
      const next = waiting[0];
      const inside = next !== undefined && next.column <= column;
      const end = next === undefined ? Infinity : inside ? next.end_column : next.column;
      const length = Math.min(rest.length, end - column);
      found.push({ text: rest.slice(0, length).join(""), kind, variable: inside ? next : null });
      rest = rest.slice(length);
      column += length;
    }
  }
  return found;
}
