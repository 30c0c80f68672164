// The rows of the answer's table: their order, their differences, and the length of their bars on one shared scale.
import type { TokenRow } from "../../common/wire";

export type Order = "rank" | "difference";

export interface AnswerRow {
  id: number;
  token: string;
  before: { logit: number; probability: number; rank: number };
  after: { logit: number; probability: number; rank: number };
  /** After minus before. */
  difference: number;
  /** Length of the bar from the zero line, from -1 to 1, where 1 is the table's largest difference. */
  bar: number;
}

/** Ranks count from 1 here, as people do. */
export function answerRows(rows: readonly TokenRow[], order: Order): AnswerRow[] {
  const made = rows.map((row) => ({
    id: row.token_id,
    token: row.token,
    before: { logit: row.clean_logit, probability: row.clean_probability, rank: row.clean_rank + 1 },
    after: { logit: row.edited_logit, probability: row.edited_probability, rank: row.edited_rank + 1 },
    difference: row.edited_logit - row.clean_logit,
  }));
  return ordered(withBars(made), order);
}

/** Give rows their bars; what is not finite has none and does not count for the scale. */
function withBars<Row extends { difference: number }>(rows: Row[]): Array<Row & { bar: number }> {
  const sizes = rows.map(({ difference }) => Math.abs(difference)).filter(Number.isFinite);
  const largest = Math.max(0, ...sizes);
  return rows.map((row) => ({
    ...row,
    bar: largest > 0 && Number.isFinite(row.difference) ? row.difference / largest : 0,
  }));
}

function ordered(rows: AnswerRow[], order: Order): AnswerRow[] {
  const size = ({ difference }: AnswerRow) => (Number.isNaN(difference) ? Infinity : Math.abs(difference));
  return rows.sort((one, other) => {
    if (order === "difference" && size(one) !== size(other)) return size(other) - size(one);
    return (
      Math.min(one.before.rank, one.after.rank) - Math.min(other.before.rank, other.after.rank) ||
      one.before.rank - other.before.rank
    );
  });
}

/** A token in two runs; a side is null where the token is not in that run's table. */
export interface ComparedRow {
  id: number;
  token: string;
  first: AnswerRow["after"] | null;
  second: AnswerRow["after"] | null;
  /** Second minus first; NaN where a side is missing. */
  difference: number;
  bar: number;
}

/** Rows of two runs by token: those of the first in its order after its edits, then those that only the second has. */
export function comparedRows(first: readonly TokenRow[], second: readonly TokenRow[]): ComparedRow[] {
  const after = (row: TokenRow | undefined) =>
    row === undefined
      ? null
      : { logit: row.edited_logit, probability: row.edited_probability, rank: row.edited_rank + 1 };
  const byRank = (rows: readonly TokenRow[]) =>
    [...rows].sort((one, other) => one.edited_rank - other.edited_rank);
  const firsts = new Map(byRank(first).map((row) => [row.token_id, row]));
  const seconds = new Map(byRank(second).map((row) => [row.token_id, row]));
  const rows = [...new Set([...firsts.keys(), ...seconds.keys()])].map((id) => {
    const one = firsts.get(id);
    const other = seconds.get(id);
    return {
      id,
      token: (one ?? other)!.token,
      first: after(one),
      second: after(other),
      difference:
        one === undefined || other === undefined ? Number.NaN : other.edited_logit - one.edited_logit,
    };
  });
  return withBars(rows);
}

export type Move = "up" | "down" | "same";

/** Which way a token moved in the ranking: a smaller rank is up. */
export function rankMove(before: number, after: number): Move {
  if (after === before) return "same";
  return after < before ? "up" : "down";
}
