import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { readSchema, wireTypes } from "../../scripts/wire-types.mjs";
import { ContractError, checked } from "./check";

describe("the wire contract", () => {
  it("has the types that its schema says", async () => {
    const committed = await readFile("src/common/wire.ts", "utf8");
    expect(await wireTypes(await readSchema())).toBe(committed);
  });

  it("takes what fits and names the place of what does not", () => {
    const failure = { message: "no", kind: "ValueError", traceback: "" };
    expect(checked("Failure", failure)).toEqual(failure);
    expect(() => checked("Failure", { ...failure, message: 3 })).toThrow(/#\/message/);
    expect(() => checked("Reply", { kind: "done", id: "a" })).toThrow(ContractError);
  });
});
