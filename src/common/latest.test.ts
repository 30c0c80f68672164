import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Latest } from "./latest";

interface Out {
  question: string;
  answer(value: string): void;
  fail(error: Error): void;
}

function bench() {
  const out: Out[] = [];
  const taken: string[] = [];
  const latest = new Latest<string, string>(
    (question) =>
      new Promise((answer, fail) => {
        out.push({ question, answer, fail });
      }),
    (answer, question) => void taken.push(`${question}=${answer}`),
    (error, question) => void taken.push(`${question}!${error.message}`),
  );
  return { out, taken, latest, asked: () => out.map(({ question }) => question) };
}

const settled = () => new Promise<void>((resolve) => queueMicrotask(() => queueMicrotask(resolve)));

describe("requests of which the newest matters", () => {
  it("go out one at a time, and those between are left out", async () => {
    const { out, taken, latest, asked } = bench();
    for (const question of ["a", "b", "c"]) latest.want(question);
    expect(asked()).toEqual(["a"]);
    out[0]!.answer("1");
    await settled();
    expect(asked()).toEqual(["a", "c"]);
    out[1]!.answer("3");
    await settled();
    expect(taken).toEqual(["a=1", "c=3"]);
    expect(latest.busy).toBe(false);
  });

  it("go on after one that failed", async () => {
    const { out, taken, latest } = bench();
    latest.want("a");
    latest.want("b");
    out[0]!.fail(new Error("no"));
    await settled();
    out[1]!.answer("2");
    await settled();
    expect(taken).toEqual(["a!no", "b=2"]);
  });

  it("are not taken after the end", async () => {
    const { out, taken, latest, asked } = bench();
    latest.want("a");
    latest.want("b");
    latest.dispose();
    out[0]!.answer("1");
    latest.want("c");
    await settled();
    expect(taken).toEqual([]);
    expect(asked()).toEqual(["a"]);
  });
});

describe("a rest", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("begins again with each wish", () => {
    const { latest, asked } = bench();
    latest.want("a", 70);
    vi.advanceTimersByTime(60);
    latest.want("b", 70);
    vi.advanceTimersByTime(60);
    expect(asked()).toEqual([]);
    expect(latest.busy).toBe(true);
    vi.advanceTimersByTime(20);
    expect(asked()).toEqual(["b"]);
  });

  it("is left out by a wish without one", () => {
    const { latest, asked } = bench();
    latest.want("a", 70);
    latest.want("b");
    expect(asked()).toEqual(["b"]);
    vi.advanceTimersByTime(200);
    expect(asked()).toEqual(["b"]);
  });
});
