import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FakeKernel, type Said } from "../testing/kernel";
import { Connection, RequestDropped, RequestFailed } from "./connection";
import type { Request } from "./wire";

const code = (text: string): Said => ({ reply: { kind: "code", code: text } as Said["reply"] });
const idOf = (request: Request | undefined) => request!.id;
const ask = (connection: Connection, run: string) => connection.ask("code", { kind: "code", run });
/** What a promise was rejected with; fails where it was not. */
const rejection = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.unreachable("it was answered"),
    (error: unknown) => error,
  );

describe("requests", () => {
  it("have ids of their own, unlike those of another page", async () => {
    const kernel = new FakeKernel(() => code("x"));
    await Promise.all([ask(new Connection(kernel), "a"), ask(new Connection(kernel), "b")]);
    const connection = new Connection(kernel);
    await Promise.all([ask(connection, "c"), ask(connection, "d")]);
    expect(new Set(kernel.asked.map(idOf)).size).toBe(4);
    const [page, , other, same] = kernel.asked.map((request) => request.id.split(":")[0]);
    expect(page).not.toBe(other);
    expect(other).toBe(same);
  });

  it("get the reply of their id, in whichever order replies come", async () => {
    const kernel = new FakeKernel();
    const connection = new Connection(kernel);
    const both = [ask(connection, "first"), ask(connection, "second")];
    kernel.reply(idOf(kernel.asked[1]), code("2"));
    kernel.reply(idOf(kernel.asked[0]), code("1"));
    expect((await Promise.all(both)).map(({ reply }) => reply.code)).toEqual(["1", "2"]);
  });

  it("are told apart from those of other pages on the channel", async () => {
    const kernel = new FakeKernel();
    const [mine, other] = [new Connection(kernel), new Connection(kernel)];
    const answers = [ask(mine, "a"), ask(other, "b")];
    let answered = false;
    void answers[1]!.then(() => {
      answered = true;
    });
    kernel.reply(idOf(kernel.asked[0]), code("for a"));
    expect((await answers[0])!.reply.code).toBe("for a");
    kernel.reply("nobody:1", code("x"));
    await new Promise((resolve) => setTimeout(resolve));
    expect(answered).toBe(false);
    kernel.reply(idOf(kernel.asked[1]), code("for b"));
    expect((await answers[1])!.reply.code).toBe("for b");
  });

  it("come with the array of the reply", async () => {
    const values = Float32Array.of(1, Number.NaN);
    const kernel = new FakeKernel(() => ({ ...code("x"), values }));
    const { buffer } = await ask(new Connection(kernel), "a");
    expect(buffer!.byteLength).toBe(8);
    expect(buffer!.getFloat32(0, true)).toBe(1);
  });

  it("fail with what the kernel says of its error", async () => {
    const failure = { message: "There is no run.", kind: "LabError", traceback: "Traceback ..." };
    const kernel = new FakeKernel(() => ({ reply: { kind: "failed", failure } as Said["reply"] }));
    const error = (await rejection(ask(new Connection(kernel), "a"))) as RequestFailed;
    expect(error).toBeInstanceOf(RequestFailed);
    expect([error.message, error.kind, error.traceback]).toEqual(Object.values(failure));
  });

  it("that a later one replaces are dropped", async () => {
    const kernel = new FakeKernel(() => ({ reply: { kind: "superseded" } as Said["reply"] }));
    expect(await rejection(ask(new Connection(kernel), "a"))).toBeInstanceOf(RequestDropped);
  });

  it("fail where the answer does not fit the contract, or is of another kind", async () => {
    const wrong = new FakeKernel(() => ({ reply: { kind: "code", code: 3 } as unknown as Said["reply"] }));
    expect(await rejection(ask(new Connection(wrong), "a"))).toMatchObject({ name: "ContractError" });
    const other = new FakeKernel(() => ({ reply: { kind: "done", revision: 1 } as Said["reply"] }));
    expect(await rejection(ask(new Connection(other), "a"))).toMatchObject({
      message: "code was answered by done.",
    });
  });

  it("hold out against messages that are none", async () => {
    let tell: (content: unknown, buffers: readonly DataView[]) => void = () => undefined;
    const sent: Request[] = [];
    const connection = new Connection({
      send: (content) => void sent.push(content as Request),
      onMessage: (listener) => {
        tell = listener;
        return () => undefined;
      },
      onClosed: () => () => undefined,
    });
    const answer = ask(connection, "a");
    for (const junk of [null, undefined, 3, "done", [], {}, { id: 7 }, { id: null, kind: "done" }])
      tell(junk, []);
    tell({ kind: "code", id: sent[0]!.id, code: "still here" }, []);
    expect((await answer).reply.code).toBe("still here");
  });
});

describe("the state of the link", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const silent = () => {
    const kernel = new FakeKernel();
    const sent: Request[] = [];
    let tell: (content: unknown, buffers: readonly DataView[]) => void = () => undefined;
    const connection = new Connection({
      send: (content) => void sent.push(content as Request),
      onMessage: (listener) => {
        tell = listener;
        return () => undefined;
      },
      onClosed: (listener) => kernel.onClosed(listener),
    });
    return { kernel, sent, connection, tell: (content: unknown) => tell(content, []) };
  };

  it("is busy while a request waits too long to be taken, and live again when it is", async () => {
    const { connection, sent, tell } = silent();
    const states: string[] = [];
    connection.subscribe(() => states.push(connection.state));
    const answer = ask(connection, "a");
    vi.advanceTimersByTime(500);
    expect(connection.state).toBe("live");
    vi.advanceTimersByTime(200);
    expect(connection.state).toBe("busy");
    expect(connection.unaccepted).toBe(1);
    tell({ kind: "accepted", id: sent[0]!.id });
    expect(connection.state).toBe("live");
    expect(connection.unaccepted).toBe(0);
    vi.advanceTimersByTime(60_000);
    expect(connection.state).toBe("live");
    tell({ kind: "code", id: sent[0]!.id, code: "late" });
    expect((await answer).reply.code).toBe("late");
    expect(states).toEqual(["busy", "live"]);
  });

  it("is closed when the kernel dies: what waits is dropped, and nothing is sent any more", async () => {
    const { connection, kernel, sent } = silent();
    const waiting = rejection(ask(connection, "a"));
    kernel.close();
    expect(connection.state).toBe("closed");
    expect(await waiting).toMatchObject({ name: "RequestDropped", message: "The kernel has stopped." });
    expect(await rejection(ask(connection, "b"))).toBeInstanceOf(RequestDropped);
    expect(sent).toHaveLength(1);
    vi.advanceTimersByTime(10_000);
    expect(connection.state).toBe("closed");
  });

  it("is told to nobody after the view is closed", async () => {
    const { connection, kernel } = silent();
    const states: string[] = [];
    connection.subscribe(() => states.push(connection.state));
    const waiting = rejection(ask(connection, "a"));
    connection.dispose();
    expect(await waiting).toBeInstanceOf(RequestDropped);
    kernel.close();
    expect(states).toEqual([]);
  });
});
