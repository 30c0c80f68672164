import { describe, expect, it } from "vitest";
import { segments } from "./segments";
import type { Span, Variable } from "./wire";

const variable = (name: string, column: number, end_column: number): Variable => ({
  name,
  line: 0,
  column,
  end_column,
  target: { site: `source.${name}`, io: "output", argument: null, call: null, element: null },
});

describe("segments of a row", () => {
  const spans: Span[] = [
    { kind: "plain", text: "hidden = " },
    { kind: "function", text: "relu" },
    { kind: "plain", text: "(x)" },
  ];

  it("are the spans where there are no variables", () => {
    expect(segments(spans, []).map(({ text, kind }) => ({ text, kind }))).toEqual(
      spans.map(({ text, kind }) => ({ text, kind })),
    );
  });

  it("are cut at the ends of variables", () => {
    const found = segments(spans, [variable("hidden", 0, 6), variable("x", 14, 15)]);
    expect(found.map(({ text, variable: of }) => [text, of?.name ?? null])).toEqual([
      ["hidden", "hidden"],
      [" = ", null],
      ["relu", null],
      ["(", null],
      ["x", "x"],
      [")", null],
    ]);
  });

  it("count characters, of which some are two units of a JavaScript string", () => {
    const found = segments([{ kind: "plain", text: "𝛼 = 𝛽" }], [variable("𝛽", 4, 5)]);
    expect(found.map(({ text }) => text)).toEqual(["𝛼 = ", "𝛽"]);
    expect(found[1]!.variable?.name).toBe("𝛽");
  });

  it("keep a variable that goes over the end of a span", () => {
    const parts: Span[] = [
      { kind: "plain", text: "self" },
      { kind: "function", text: "act" },
    ];
    expect(
      segments(parts, [variable("both", 2, 6)]).map(({ text, variable: of }) => [text, of?.name]),
    ).toEqual([
      ["se", undefined],
      ["lf", "both"],
      ["ac", "both"],
      ["t", undefined],
    ]);
  });
});
