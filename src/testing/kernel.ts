// A kernel's end of the wire for tests of the page: it keeps what was asked, and answers as it is told to.
import type { Channel } from "../common/connection";
import { Connection } from "../common/connection";
import { Lab } from "../common/lab";
import type { Action, Answer, AskTensor, AxisView, Picture, Reply, Request, View } from "../common/wire";

type Without<T> = T extends unknown ? Omit<T, "id"> : never;
export type Said = { reply: Without<Reply>; values?: Float32Array };
type Handler = (request: Request) => Said | null;

export class FakeKernel implements Channel {
  /** Every request, the oldest first. */
  readonly asked: Request[] = [];
  #listeners = new Set<(content: unknown, buffers: readonly DataView[]) => void>();
  #closed = new Set<() => void>();

  /** `answer` may return null for a request that is answered later, by `reply`. */
  constructor(private readonly answer: Handler = () => null) {}

  send(content: unknown): void {
    const request = content as Request;
    this.asked.push(request);
    queueMicrotask(() => {
      this.#tell({ kind: "accepted", id: request.id }, []);
      const said = this.answer(request);
      if (said !== null) this.reply(request.id, said);
    });
  }

  reply(id: string, { reply, values }: Said): void {
    const buffers =
      values === undefined ? [] : [new DataView(values.buffer, values.byteOffset, values.byteLength)];
    this.#tell({ ...reply, id }, buffers);
  }

  close(): void {
    for (const listener of this.#closed) listener();
  }

  onMessage(listener: (content: unknown, buffers: readonly DataView[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onClosed(listener: () => void): () => void {
    this.#closed.add(listener);
    return () => this.#closed.delete(listener);
  }

  /** The actions that were asked for, the oldest first. */
  get actions(): Action[] {
    return this.asked.flatMap((request) => (request.kind === "act" ? [request.action] : []));
  }

  #tell(content: unknown, buffers: readonly DataView[]): void {
    for (const listener of this.#listeners) listener(content, buffers);
  }
}

export function labWith(kernel: FakeKernel): Lab {
  return new Lab(new Connection(kernel));
}

/** A tensor of two dimensions, as a kernel would have it. */
export interface Matrix {
  values: Float32Array;
  rows: AxisView;
  columns: AxisView;
}

/** The picture of a matrix that an AskTensor asks for, each entry the one farthest from zero of those it stands for. */
export function pictureOf(matrix: Matrix, asked: AskTensor): Said {
  const { rows: rowAxis, columns: columnAxis } = matrix;
  const window = asked.window ?? { row: 0, row_end: rowAxis.size, column: 0, column_end: columnAxis.size };
  const rows = Math.min(window.row_end - window.row, asked.height);
  const columns = Math.min(window.column_end - window.column, asked.width);
  const values = new Float32Array(rows * columns).fill(0);
  const filled = new Uint8Array(rows * columns);
  const down = (window.row_end - window.row) / rows;
  const across = (window.column_end - window.column) / columns;
  for (let row = window.row; row < window.row_end; row += 1) {
    for (let column = window.column; column < window.column_end; column += 1) {
      const value = matrix.values[row * columnAxis.size + column]!;
      const at =
        Math.min(Math.floor((row - window.row + 1e-9) / down), rows - 1) * columns +
        Math.min(Math.floor((column - window.column + 1e-9) / across), columns - 1);
      if (filled[at] === 0 || Number.isNaN(value) || Math.abs(value) > Math.abs(values[at]!))
        values[at] = value;
      filled[at] = 1;
    }
  }
  let largest = 0;
  const odd = { nan: 0, positive_infinity: 0, negative_infinity: 0 };
  for (const value of matrix.values) {
    if (Number.isNaN(value)) odd.nan += 1;
    else if (value === Infinity) odd.positive_infinity += 1;
    else if (value === -Infinity) odd.negative_infinity += 1;
    else largest = Math.max(largest, Math.abs(value));
  }
  const reply: Omit<Picture, "id"> = {
    kind: "picture",
    run: asked.run,
    target: asked.target,
    which: asked.which,
    label: "self_act_0",
    dtype: "float32",
    shape: [1, rowAxis.size, columnAxis.size],
    axes: [{ name: "batch", size: 1, labels: [] }, rowAxis, columnAxis],
    slice: { row_axis: 1, column_axis: 2, index: [0] },
    window,
    rows,
    columns,
    pooling: asked.pooling,
    colours: { low: -largest, high: largest, beyond_low: 0, beyond_high: 0, smallest: -largest, largest },
    odd,
  };
  return { reply, values };
}

export const answerWith = (fields: Partial<Answer>): Answer => ({
  run: "run-1",
  headline: "",
  rows: [],
  kl: null,
  max_difference: null,
  edited: false,
  reports: [],
  captured: [],
  seconds: 0.011,
  notes: [],
  ...fields,
});

export const viewWith = (fields: Partial<View>): View => ({
  version: 1,
  revision: 1,
  model: null,
  base: { text: null, tokens: [], length: null, error: "" },
  source: { text: null, tokens: [], length: null, error: "" },
  alignment: { source_positions: [], message: "" },
  module: "",
  selection: null,
  opened: [],
  steps: [],
  active: null,
  scope: { positions: null, from_positions: null, heads: null, index: null },
  metric: null,
  can_undo: false,
  can_redo: false,
  shown_answer: null,
  shown_sweep: null,
  shown_lens: null,
  ...fields,
});
