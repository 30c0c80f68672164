// What the extension knows of one notebook's kernel. It asks over a comm that the Python package registers, and never
// runs a cell: whether the package is there is told by expressions of a silent request, which no output or number of a
// cell shows.
import type { ISessionContext } from "@jupyterlab/apputils";
import type { Kernel, KernelMessage } from "@jupyterlab/services";
import { type Channel, Connection } from "../common/connection";
import type { ModelEntry } from "../common/wire";

const TARGET = "nnsight-lab";
const MISSING = "not installed";
const INSTALLED = "not imported";
const IMPORTED = "imported";
const PROBE =
  `'${IMPORTED}' if 'nnsight_lab' in __import__('sys').modules else ` +
  `'${INSTALLED}' if __import__('importlib.util').util.find_spec('nnsight_lab') else '${MISSING}'`;

/**
 * none: no kernel. starting: not heard of yet. dead: it has died. foreign: no Python. missing: the package is not
 * installed. installed: it is not imported. failed: an error. ready: models are known.
 */
export type KernelState =
  | { state: "none" | "starting" | "dead" | "foreign" | "missing" | "installed" }
  | { state: "failed"; message: string }
  | { state: "ready"; models: readonly ModelEntry[] };

function viewOf(buffer: ArrayBuffer | ArrayBufferView): DataView {
  if (buffer instanceof ArrayBuffer) return new DataView(buffer);
  return new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}

function channelOf(comm: Kernel.IComm): Channel {
  return {
    send: (content) => void comm.send(content as never),
    onMessage(listener) {
      comm.onMsg = ({ content, buffers }) => listener(content.data, (buffers ?? []).map(viewOf));
      return () => {
        comm.onMsg = () => undefined;
      };
    },
    onClosed(listener) {
      comm.onClose = () => listener();
      return () => {
        comm.onClose = () => undefined;
      };
    },
  };
}

export class Conversation {
  #state: KernelState = { state: "none" };
  #connection: Connection | null = null;
  #comm: Kernel.IComm | null = null;
  #kernel: Kernel.IKernelConnection | null = null;
  #listeners = new Set<() => void>();
  /** Whether a cell has run since the kernel was last looked at. */
  #stale = true;
  #looking = false;
  #revision = 0;

  constructor(private readonly session: ISessionContext) {
    session.kernelChanged.connect(this.#onKernel, this);
    session.statusChanged.connect(this.#onStatus, this);
    session.iopubMessage.connect(this.#onMessage, this);
    session.disposed.connect(this.dispose, this);
    this.#onKernel();
  }

  get state(): KernelState {
    return this.#state;
  }

  /** Null where the kernel cannot be asked. */
  get connection(): Connection | null {
    return this.#connection;
  }

  /** Whether the kernel is at something else and has not taken a request. */
  get busy(): boolean {
    return this.#connection?.state === "busy";
  }

  /** Counts up each time that the kernel was looked at: what it said before may be old. */
  get revision(): number {
    return this.#revision;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Look again, as after a failure. */
  retry(): void {
    this.#stale = true;
    void this.#look();
  }

  dispose(): void {
    this.session.kernelChanged.disconnect(this.#onKernel, this);
    this.session.statusChanged.disconnect(this.#onStatus, this);
    this.session.iopubMessage.disconnect(this.#onMessage, this);
    this.#hangUp();
    this.#become({ state: "none" });
  }

  #onKernel(): void {
    this.#hangUp();
    this.#kernel = this.session.session?.kernel ?? null;
    this.#stale = true;
    this.#become({ state: this.#kernel === null ? "none" : "starting" });
    void this.#look();
  }

  #onStatus(_: ISessionContext, status: Kernel.Status): void {
    if (status === "restarting" || status === "autorestarting") {
      this.#hangUp();
      this.#stale = true;
      this.#become({ state: "starting" });
    } else if (status === "dead") {
      this.#hangUp();
      this.#become({ state: "dead" });
    } else if (status === "idle") {
      void this.#look();
    }
  }

  #onMessage(_: ISessionContext, message: KernelMessage.IMessage): void {
    if (message.header.msg_type === "execute_input") this.#stale = true;
  }

  #hangUp(): void {
    this.#connection?.dispose();
    this.#connection = null;
    if (this.#comm !== null && !this.#comm.isDisposed) this.#comm.dispose();
    this.#comm = null;
  }

  async #look(): Promise<void> {
    const kernel = this.#kernel;
    if (!this.#stale || this.#looking || kernel === null) return;
    if (kernel.status === "dead" || this.session.session === null) return;
    this.#looking = true;
    this.#stale = false;
    try {
      const found = await this.#ask(kernel);
      if (kernel === this.#kernel && found !== null) {
        this.#revision += 1;
        this.#become(found);
      }
    } catch (error) {
      // A request that was under way when its kernel went is no failure: the next kernel is looked at.
      const gone =
        kernel !== this.#kernel ||
        (error as Error).name === "RequestDropped" ||
        kernel.status === "restarting";
      if (!gone) this.#become({ state: "failed", message: (error as Error).message });
    } finally {
      this.#looking = false;
    }
    if (this.#stale && this.#kernel?.status === "idle") void this.#look();
  }

  async #ask(kernel: Kernel.IKernelConnection): Promise<KernelState | null> {
    if (this.#connection === null) {
      const info = await kernel.info;
      if (info.language_info.name !== "python") return { state: "foreign" };
      const found = await probe(kernel);
      if (kernel !== this.#kernel) return null;
      if (found === MISSING) return { state: "missing" };
      if (found === INSTALLED) return { state: "installed" };
      this.#comm = kernel.createComm(TARGET);
      this.#connection = new Connection(channelOf(this.#comm));
      this.#connection.subscribe(() => this.#changed());
      this.#comm.open();
    }
    const { reply } = await this.#connection.ask("alive", { kind: "alive" });
    return { state: "ready", models: reply.models };
  }

  #become(state: KernelState): void {
    this.#state = state;
    this.#changed();
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

/** What the package is to the kernel. */
async function probe(kernel: Kernel.IKernelConnection): Promise<string> {
  const future = kernel.requestExecute({
    code: "",
    silent: true,
    store_history: false,
    user_expressions: { found: PROBE },
    stop_on_error: false,
  });
  const { content } = await future.done;
  if (content.status !== "ok") throw new Error("The kernel could not be asked whether nnsight-lab is there.");
  const found = (content as KernelMessage.IExecuteReply).user_expressions?.found as
    | { status: string; data?: Record<string, string>; evalue?: string }
    | undefined;
  const text = found?.data?.["text/plain"];
  if (text === undefined) throw new Error(found?.evalue ?? "The kernel gave no answer.");
  return text.replaceAll("'", "");
}
