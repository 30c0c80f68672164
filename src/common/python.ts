// Colours for Python: enough of its lexical grammar to tell keywords, strings, numbers, comments and calls apart. What
// is not recognised stays plain, and nothing is ever lost: the pieces joined are the text.
import type { Span } from "./wire";

const KEYWORDS = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except finally for from " +
    "global if import in is lambda nonlocal not or pass raise return try while with yield"
  ).split(" "),
);

const TOKEN = new RegExp(
  [
    /(?<comment>#[^\n]*)/u,
    /(?<string>(?:(?<![\p{L}\p{N}_])[rbfuRBFU]{1,2})?(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\[\s\S]|[^"\\\n])*"?|'(?:\\[\s\S]|[^'\\\n])*'?))/u,
    /(?<number>\b(?:0[xXoObB][\da-fA-F_]+|\d[\d_]*(?:\.[\d_]*)?(?:[eE][+-]?\d+)?j?))/u,
    /(?<word>[\p{L}_][\p{L}\p{N}_]*)/u,
  ]
    .map(({ source }) => source)
    .join("|"),
  "gu",
);

/** The text in pieces with their kinds. */
export function pythonSpans(code: string): Span[] {
  const spans: Span[] = [];
  const add = (kind: Span["kind"], text: string) => {
    const last = spans.at(-1);
    if (text === "") return;
    if (last?.kind === kind) last.text += text;
    else spans.push({ kind, text });
  };
  let end = 0;
  for (const match of code.matchAll(TOKEN)) {
    add("plain", code.slice(end, match.index));
    end = match.index + match[0].length;
    add(kindOf(match, code, end), match[0]);
  }
  add("plain", code.slice(end));
  return spans;
}

function kindOf(match: RegExpMatchArray, code: string, end: number): Span["kind"] {
  const { comment, number, word } = match.groups!;
  if (comment !== undefined) return "comment";
  if (number !== undefined) return "number";
  if (word === undefined) return "string";
  if (KEYWORDS.has(word)) return "keyword";
  if (code[end] === "(") return "function";
  return "plain";
}
