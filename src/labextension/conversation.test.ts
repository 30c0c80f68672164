// A conversation with kernels of every kind, on a session made by hand.
import { describe, expect, it, vi } from "vitest";
import { Conversation } from "./conversation";

class Signal<T> {
  #slots: Array<{ slot: (sender: unknown, value: T) => void; self: unknown }> = [];
  connect(slot: (sender: unknown, value: T) => void, self?: unknown) {
    this.#slots.push({ slot, self });
    return true;
  }
  disconnect(slot: (sender: unknown, value: T) => void, self?: unknown) {
    this.#slots = this.#slots.filter((one) => one.slot !== slot || one.self !== self);
    return true;
  }
  emit(value: T) {
    for (const { slot, self } of [...this.#slots]) slot.call(self, null, value);
  }
  get size() {
    return this.#slots.length;
  }
}

type Probe = "missing" | "installed" | "imported" | "refused";

class Kernel {
  status = "idle";
  /** What the page sent over comms, the oldest first. */
  asked: Array<{ kind: string; id: string }> = [];
  comms = 0;
  closed = 0;
  executed: Array<Record<string, unknown>> = [];
  silentOn: string[] = [];
  constructor(
    public found: Probe = "imported",
    private readonly language = "python",
  ) {}

  get info() {
    return Promise.resolve({ language_info: { name: this.language } });
  }

  requestExecute(content: Record<string, unknown>) {
    this.executed.push(content);
    const text = { missing: "not installed", installed: "not imported", imported: "imported", refused: "" };
    const found =
      this.found === "refused"
        ? { status: "error", evalue: "no imports here" }
        : { status: "ok", data: { "text/plain": `'${text[this.found]}'` } };
    return { done: Promise.resolve({ content: { status: "ok", user_expressions: { found } } }) };
  }

  createComm() {
    this.comms += 1;
    const comm = {
      isDisposed: false,
      onMsg: (_: unknown) => undefined as unknown,
      onClose: () => undefined,
      open: () => undefined,
      dispose: () => {
        comm.isDisposed = true;
        this.closed += 1;
      },
      send: (content: { kind: string; id: string }) => {
        this.asked.push(content);
        if (this.silentOn.includes(content.kind)) return;
        queueMicrotask(() => {
          comm.onMsg({ content: { data: { kind: "accepted", id: content.id } } });
          comm.onMsg({ content: { data: { kind: "alive", id: content.id, models: [] } } });
        });
      },
    };
    return comm;
  }
}

function sessionOn(kernel: Kernel | null) {
  const session = {
    kernelChanged: new Signal<void>(),
    statusChanged: new Signal<string>(),
    iopubMessage: new Signal<{ header: { msg_type: string } }>(),
    disposed: new Signal<void>(),
    session: kernel === null ? null : { kernel },
  };
  return {
    session,
    conversation: new Conversation(session as never),
    become(next: Kernel | null) {
      session.session = next === null ? null : { kernel: next };
      session.kernelChanged.emit();
    },
    runCell() {
      session.iopubMessage.emit({ header: { msg_type: "execute_input" } });
      session.statusChanged.emit("idle");
    },
  };
}

const state = (conversation: Conversation) => conversation.state.state;

describe("a conversation", () => {
  it.each([
    ["missing", new Kernel("missing")],
    ["installed", new Kernel("installed")],
    ["ready", new Kernel("imported")],
    ["foreign", new Kernel("imported", "julia")],
    ["none", null],
  ] as const)("knows a kernel that is %s", async (expected, kernel) => {
    const { conversation } = sessionOn(kernel);
    await vi.waitFor(() => expect(state(conversation)).toBe(expected));
  });

  it("asks silently and counts no execution", async () => {
    const kernel = new Kernel();
    const { conversation } = sessionOn(kernel);
    await vi.waitFor(() => expect(state(conversation)).toBe("ready"));
    expect(kernel.executed).toHaveLength(1);
    expect(kernel.executed[0]).toMatchObject({ code: "", silent: true, store_history: false });
  });

  it("asks again after each cell, over the same comm, and not when nothing ran", async () => {
    const kernel = new Kernel();
    const { conversation, runCell, session } = sessionOn(kernel);
    await vi.waitFor(() => expect(conversation.revision).toBe(1));
    runCell();
    await vi.waitFor(() => expect(conversation.revision).toBe(2));
    session.statusChanged.emit("idle");
    await Promise.resolve();
    expect(kernel.asked.map(({ kind }) => kind)).toEqual(["alive", "alive"]);
    expect([kernel.comms, kernel.executed.length]).toEqual([1, 1]);
  });

  it("notices the import of the package", async () => {
    const kernel = new Kernel("installed");
    const { conversation, runCell } = sessionOn(kernel);
    await vi.waitFor(() => expect(state(conversation)).toBe("installed"));
    kernel.found = "imported";
    runCell();
    await vi.waitFor(() => expect(state(conversation)).toBe("ready"));
  });

  it("hangs up at a restart and calls the kernel anew when it is idle", async () => {
    const kernel = new Kernel();
    const { conversation, session } = sessionOn(kernel);
    await vi.waitFor(() => expect(state(conversation)).toBe("ready"));
    session.statusChanged.emit("restarting");
    expect(state(conversation)).toBe("starting");
    expect([kernel.closed, conversation.connection]).toEqual([1, null]);
    kernel.found = "installed";
    session.statusChanged.emit("idle");
    await vi.waitFor(() => expect(state(conversation)).toBe("installed"));
  });

  it("forgets a question under way when its kernel goes, and no failure is shown", async () => {
    const old = new Kernel();
    old.silentOn = ["alive"];
    const { conversation, become } = sessionOn(old);
    await vi.waitFor(() => expect(old.asked).toHaveLength(1));
    const next = new Kernel();
    become(next);
    await vi.waitFor(() => expect(state(conversation)).toBe("ready"));
    expect(next.asked).toHaveLength(1);
    become(null);
    expect(state(conversation)).toBe("none");
  });

  it("says that the kernel has died", async () => {
    const { conversation, session } = sessionOn(new Kernel());
    await vi.waitFor(() => expect(state(conversation)).toBe("ready"));
    session.statusChanged.emit("dead");
    expect(state(conversation)).toBe("dead");
    expect(conversation.connection).toBeNull();
  });

  it("tells why it failed and tries again when asked", async () => {
    const kernel = new Kernel("refused");
    const { conversation } = sessionOn(kernel);
    await vi.waitFor(() =>
      expect(conversation.state).toEqual({ state: "failed", message: "no imports here" }),
    );
    kernel.found = "imported";
    conversation.retry();
    await vi.waitFor(() => expect(state(conversation)).toBe("ready"));
  });

  it("leaves nothing connected when its notebook is closed", async () => {
    const kernel = new Kernel();
    const { conversation, session } = sessionOn(kernel);
    await vi.waitFor(() => expect(state(conversation)).toBe("ready"));
    conversation.dispose();
    expect(kernel.closed).toBe(1);
    expect([session.kernelChanged.size, session.statusChanged.size, session.iopubMessage.size]).toEqual([
      0, 0, 0,
    ]);
  });
});
