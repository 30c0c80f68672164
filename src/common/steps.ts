// Steps on the page: which kinds there are, how a click makes one, and how scopes are written and read.
import type { AnyStep, OperationView, Scope, StepView, Target } from "./wire";

export type StepKind = AnyStep["kind"];

/** The kinds that a click makes, with their keys. */
export const CLICKS = [
  { kind: "capture", name: "Capture", key: "1" },
  { kind: "zero", name: "Zero", key: "2" },
  { kind: "patch", name: "Patch", key: "3" },
  { kind: "scale", name: "Scale", key: "4" },
] as const;
export type ClickKind = (typeof CLICKS)[number]["kind"];

/** The colour group of a kind: the four that are clicked have one each. */
export function colourOf(kind: StepKind): string {
  return CLICKS.some((click) => click.kind === kind) ? kind : "other";
}

// Half is a change that is seen and that is no zero; the inspector changes it.
const FIRST_FACTOR = 0.5;

/**
 * The step that a click on `target` makes. Positions go over from the scope as it is; heads and neurons only where it
 * belongs to the same site, since another has others.
 */
export function stepFor(kind: ClickKind, target: Target, scope: Scope, sameSite: boolean): AnyStep {
  const where = {
    site: target.site,
    ...(target.io === "input" ? { io: "input" as const } : {}),
    ...(target.element !== null ? { element: target.element } : {}),
    ...(target.call !== null ? { call: target.call } : {}),
  };
  if (kind === "capture") return { kind, ...where };
  const limits = {
    ...(scope.positions !== null ? { positions: scope.positions } : {}),
    ...(sameSite && scope.heads !== null ? { heads: scope.heads } : {}),
    ...(sameSite && scope.index !== null ? { index: scope.index } : {}),
  };
  if (kind === "scale") return { kind, factor: FIRST_FACTOR, ...where, ...limits };
  if (kind === "patch") {
    const from = sameSite && scope.from_positions !== null ? { from_positions: scope.from_positions } : {};
    return { kind, ...where, ...limits, ...from };
  }
  return { kind, ...where, ...limits };
}

/** What a chip shows of the steps at its site: the last one that is on, else the last one that is off. */
export function stepAt(
  steps: readonly StepView[],
  site: string,
): { kind: StepKind; enabled: boolean } | null {
  const here = steps.filter(({ step }) => step.site === site);
  const shown = here.filter(({ step }) => step.enabled !== false).at(-1) ?? here.at(-1);
  return shown === undefined ? null : { kind: shown.step.kind, enabled: shown.step.enabled !== false };
}

export function sameTarget(one: Target | null, other: Target | null): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

export function targetOf(site: string): Target {
  return { site, io: "output", argument: null, call: null, element: null };
}

/** Whether an operation is listed when only calls are: calls, and what is in use. */
export function isShown(
  operation: OperationView,
  everything: boolean,
  selection: Target | null,
  steps: readonly StepView[],
): boolean {
  if (everything || operation.kind === "call") return true;
  return selection?.site === operation.site || steps.some(({ step }) => step.site === operation.site);
}

type Positions = NonNullable<Scope["positions"]>;

// As the kernel tells a slice from the text of a token.
const SLICE = /^\s*(-?\d+)?\s*:\s*(-?\d+)?\s*(:\s*(-?\d+)?\s*)?$/;
const QUOTED = /^("(?:[^"\\]|\\.)*")(?:#(\d+))?$/;

/** Positions as one types them: `-1`, `0, 3`, `2:5`, `" Tower"`, `" the"#1` for the second of them; empty for all. */
export function positionsText(positions: Positions | null): string {
  if (positions === null) return "";
  return positions
    .map((one) => {
      if (typeof one === "number") return String(one);
      if (typeof one === "string") return SLICE.test(one) ? one.trim() : JSON.stringify(one);
      const { text, occurrence = null } = one;
      return occurrence === null ? JSON.stringify(text) : `${JSON.stringify(text)}#${occurrence}`;
    })
    .join(", ");
}

/** What `positionsText` writes, read. Text without quotes that is no number and no slice is the text of a token. */
export function readPositions(text: string): Positions | null {
  const parts = text.match(/\s*"(?:[^"\\]|\\.)*"(?:#\d+)?\s*(?=,|$)|[^,]+/g) ?? [];
  const found = parts
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map((part) => {
      if (/^[-\u2212]?\d+$/.test(part)) return Number(part.replace("\u2212", "-"));
      return quoted(part) ?? part.replaceAll("\u2423", " ");
    });
  return found.length === 0 ? null : found;
}

/** The token that a text in quotes names; null where the quotes are no JSON, as while they are typed. */
function quoted(part: string): Positions[number] | null {
  const [, literal, occurrence] = QUOTED.exec(part) ?? [];
  if (literal === undefined) return null;
  let text: string;
  try {
    text = JSON.parse(literal) as string;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
  if (occurrence !== undefined) return { text, occurrence: Number(occurrence) };
  return SLICE.test(text) ? { text } : text;
}

/**
 * Positions chosen on a token strip; the last one alone is -1, which stays the last in another prompt. One whose
 * counterpart in a source prompt of another length has another number is counted from the end, as both prompts do.
 */
export function chosenPositions(
  chosen: readonly number[],
  length: number,
  counterparts: readonly (number | null)[] = [],
): Positions | null {
  if (chosen.length === 0) return null;
  const sorted = [...chosen].sort((a, b) => a - b);
  if (sorted.length === 1 && sorted[0] === length - 1) return [-1];
  return sorted.map((position) => {
    const other = counterparts[position] ?? position;
    return other === position ? position : position - length;
  });
}

export function indicesText(indices: number[] | string | null | undefined): string {
  if (indices === null || indices === undefined) return "";
  return typeof indices === "string" ? indices : indices.join(", ");
}

/** Heads or neurons as one types them: an expression such as `0:4, 7`; empty for all. */
export function readIndices(text: string): string | null {
  const trimmed = text.replaceAll("\u2212", "-").trim();
  return trimmed === "" ? null : trimmed;
}
