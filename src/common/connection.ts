// The page's end of the wire. Every request gets an id and is answered by exactly one reply other than `Accepted`.
//
// A kernel that computes handles no message, so `Accepted` tells more than that the request arrived: as long as it is
// out, the kernel is busy with a cell of the user's. Requests are kept by the host until the kernel takes them.
import { checked } from "./check";
import type { Action, PanelRequest, Reply, Request } from "./wire";

/** What the connection needs of an anywidget model. */
export interface Channel {
  send(content: unknown): void;
  onMessage(listener: (content: unknown, buffers: readonly DataView[]) => void): () => void;
  /** Called when the kernel's end is closed, at once where it is already; never where the host cannot tell. */
  onClosed(listener: () => void): () => void;
}

/** live: requests are accepted. busy: one has waited too long for that. closed: there is no kernel. */
export type LinkState = "live" | "busy" | "closed";

type WithoutId<T> = T extends unknown ? Omit<T, "id"> : never;
export type Question = WithoutId<Request | PanelRequest>;
export type ReplyOf<Kind extends Reply["kind"]> = Extract<Reply, { kind: Kind }>;

/** A reply with its array, if it has one. */
export interface Answered<Kind extends Reply["kind"]> {
  reply: ReplyOf<Kind>;
  buffer: DataView | null;
}

/** The kernel's error reply. */
export class RequestFailed extends Error {
  override readonly name = "RequestFailed";
  constructor(
    message: string,
    readonly kind: string,
    readonly traceback: string,
  ) {
    super(message);
  }
}

/** The request was replaced by a later one, or the kernel went away: nothing to show. */
export class RequestDropped extends Error {
  override readonly name = "RequestDropped";
}

interface Waiting {
  sent: number;
  accepted: boolean;
  resolve(answer: { reply: Reply; buffer: DataView | null }): void;
  reject(error: Error): void;
}

// Below this a click feels immediate; a kernel that is idle accepts in a few milliseconds.
const BUSY_AFTER_MS = 600;

export class Connection {
  #waiting = new Map<string, Waiting>();
  #listeners = new Set<() => void>();
  #stop: Array<() => void>;
  #prefix = crypto.randomUUID();
  #count = 0;
  #state: LinkState = "live";

  constructor(private readonly channel: Channel) {
    this.#stop = [
      channel.onMessage((content, buffers) => this.#receive(content, buffers)),
      channel.onClosed(() => this.#close()),
    ];
  }

  get state(): LinkState {
    return this.#state;
  }

  /** Number of requests that the kernel has not taken yet. */
  get unaccepted(): number {
    let count = 0;
    for (const waiting of this.#waiting.values()) if (!waiting.accepted) count += 1;
    return count;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  act(action: Action): Promise<Answered<"done">> {
    return this.ask("done", { kind: "act", action });
  }

  /** Ask, and wait for a reply of the kind `expected`. Rejects with RequestFailed or RequestDropped. */
  async ask<Kind extends Reply["kind"]>(expected: Kind, question: Question): Promise<Answered<Kind>> {
    if (this.#state === "closed") throw new RequestDropped("There is no kernel.");
    this.#count += 1;
    const id = `${this.#prefix}:${this.#count}`;
    const answer = new Promise<{ reply: Reply; buffer: DataView | null }>((resolve, reject) => {
      this.#waiting.set(id, { sent: performance.now(), accepted: false, resolve, reject });
    });
    this.channel.send({ ...question, id });
    setTimeout(() => this.#look(), BUSY_AFTER_MS + 1);
    const { reply, buffer } = await answer;
    if (reply.kind !== expected) throw new Error(`${question.kind} was answered by ${reply.kind}.`);
    return { reply: reply as ReplyOf<Kind>, buffer };
  }

  dispose(): void {
    for (const stop of this.#stop) stop();
    this.#drop("The view was closed.");
    this.#listeners.clear();
  }

  #receive(content: unknown, buffers: readonly DataView[]): void {
    // Views of one widget share the channel: what is not for this page is not even looked at.
    const id = (content as { id?: unknown } | null)?.id;
    const waiting = typeof id === "string" ? this.#waiting.get(id) : undefined;
    if (waiting === undefined || typeof id !== "string") return;
    let reply: Reply;
    try {
      reply = checked("Reply", content);
    } catch (error) {
      this.#waiting.delete(id);
      waiting.reject(error as Error);
      return;
    }
    waiting.accepted = true;
    if (reply.kind !== "accepted") {
      this.#waiting.delete(id);
      if (reply.kind === "failed") {
        const { message, kind, traceback } = reply.failure;
        waiting.reject(new RequestFailed(message, kind, traceback));
      } else if (reply.kind === "superseded") {
        waiting.reject(new RequestDropped("A later request took its place."));
      } else {
        waiting.resolve({ reply, buffer: buffers[0] ?? null });
      }
    }
    this.#look();
  }

  #look(): void {
    if (this.#state === "closed") return;
    // Younger requests look again by their own timer.
    const limit = performance.now() - BUSY_AFTER_MS;
    const busy = [...this.#waiting.values()].some(({ accepted, sent }) => !accepted && sent <= limit);
    this.#setState(busy ? "busy" : "live");
  }

  #close(): void {
    this.#setState("closed");
    this.#drop("The kernel has stopped.");
  }

  #drop(reason: string): void {
    for (const waiting of this.#waiting.values()) waiting.reject(new RequestDropped(reason));
    this.#waiting.clear();
  }

  #setState(state: LinkState): void {
    if (state === this.#state) return;
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}
