import { describe, expect, it } from "vitest";
import { answerWith, FakeKernel, labWith, type Said, viewWith } from "../testing/kernel";
import { targetOf } from "./steps";

const done: Said = { reply: { kind: "done", revision: 2 } as Said["reply"] };
const failed = (message: string): Said => ({
  reply: { kind: "failed", failure: { message, kind: "LabError", traceback: "" } } as Said["reply"],
});

describe("the synced state", () => {
  it("is nothing before the kernel has set it, and nothing again where it is empty", () => {
    const lab = labWith(new FakeKernel());
    expect(Object.values(lab.state)).toEqual([null, null, null, null, null, null, null]);
    lab.receive("answer", answerWith({ headline: "Paris" }));
    expect(lab.state.answer!.headline).toBe("Paris");
    lab.receive("answer", {});
    expect(lab.state.answer).toBeNull();
  });

  it("tells its listeners of each change, until they leave", () => {
    const lab = labWith(new FakeKernel());
    let drawn = 0;
    const leave = lab.subscribe(() => {
      drawn += 1;
    });
    lab.receive("view", viewWith({}));
    lab.receive("code", { code: "x", error: "" });
    leave();
    lab.receive("view", viewWith({ revision: 2 }));
    expect(drawn).toBe(2);
  });

  it("that does not fit the contract is a problem and is not shown", () => {
    const lab = labWith(new FakeKernel());
    lab.receive("code", { code: "good", error: "" });
    lab.receive("code", { code: 3, error: "" });
    expect(lab.state.code!.code).toBe("good");
    expect(lab.problem).toMatchObject({ name: "ContractError" });
    expect(lab.problem!.message).toMatch(/Restart the kernel and reload/);
    lab.dismissProblem();
    expect(lab.problem).toBeNull();
  });
});

describe("actions", () => {
  it("that fail are a problem until the next one", async () => {
    const kernel = new FakeKernel((request) =>
      request.kind === "act" && request.action.do === "undo" ? failed("There is nothing to undo.") : done,
    );
    const lab = labWith(kernel);
    expect(await lab.act({ do: "undo" })).toBe(false);
    expect(lab.problem!.message).toBe("There is nothing to undo.");
    expect(await lab.act({ do: "clear_steps" })).toBe(true);
    expect(lab.problem).toBeNull();
    expect(kernel.actions.map((action) => action.do)).toEqual(["undo", "clear_steps"]);
  });

  it("of a lost kernel are no problem of their own: the page says that it is lost", async () => {
    const kernel = new FakeKernel();
    const lab = labWith(kernel);
    const acting = lab.act({ do: "undo" });
    kernel.close();
    expect(await acting).toBe(false);
    expect(lab.problem).toBeNull();
    expect(lab.connection.state).toBe("closed");
  });
});

describe("a selection", () => {
  const mlp = targetOf("h.0.mlp");
  const attention = targetOf("h.0.attn");

  it("holds from the moment it is made, over views that do not know of it yet", async () => {
    const kernel = new FakeKernel();
    const lab = labWith(kernel);
    lab.receive("view", viewWith({}));
    const acting = lab.act({ do: "select", target: mlp });
    expect(lab.state.view!.selection).toEqual(mlp);
    lab.receive("view", viewWith({ revision: 2 }));
    expect(lab.state.view!.selection).toEqual(mlp);
    lab.receive("view", viewWith({ revision: 3, selection: mlp }));
    kernel.reply(kernel.asked[0]!.id, done);
    await acting;
    expect(lab.state.view!.selection).toEqual(mlp);
  });

  it("goes back to the kernel's where it is refused", async () => {
    const lab = labWith(new FakeKernel(() => failed("no such site")));
    lab.receive("view", viewWith({ selection: attention }));
    await lab.act({ do: "select", target: mlp });
    expect(lab.state.view!.selection).toEqual(attention);
  });

  it("is the latest where two are under way", async () => {
    const kernel = new FakeKernel();
    const lab = labWith(kernel);
    lab.receive("view", viewWith({}));
    const first = lab.act({ do: "select", target: mlp });
    const second = lab.act({ do: "select", target: attention });
    kernel.reply(kernel.asked[0]!.id, done);
    await first;
    expect(lab.state.view!.selection).toEqual(attention);
    lab.receive("view", viewWith({ selection: attention }));
    kernel.reply(kernel.asked[1]!.id, done);
    await second;
    expect(lab.state.view!.selection).toEqual(attention);
  });

  it("can be taken away", async () => {
    const lab = labWith(new FakeKernel());
    lab.receive("view", viewWith({ selection: mlp }));
    void lab.act({ do: "select", target: null });
    expect(lab.state.view!.selection).toBeNull();
  });
});
