// Runs code as a notebook's cell does and puts its outputs on the page: text, errors, and views of widgets.
import type { Kernel, KernelMessage } from "@jupyterlab/services";
import type { PageManager } from "./manager";

const WIDGET = "application/vnd.jupyter.widget-view+json";

export interface Failure {
  name: string;
  value: string;
  traceback: string;
}

/** What a cell put out. `shown` are the ids of the widgets displayed. */
export interface Outcome {
  text: string;
  result: string | null;
  shown: string[];
  error: Failure | null;
}

export class Cells {
  constructor(
    private readonly root: HTMLElement,
    private readonly manager: PageManager,
  ) {}

  /** Ids of the widgets on the page, in order. */
  readonly shown: string[] = [];

  async execute(kernel: Kernel.IKernelConnection, code: string): Promise<Outcome> {
    const outcome: Outcome = { text: "", result: null, shown: [], error: null };
    const cell = this.#cell();
    const drawing: Promise<unknown>[] = [];
    const future = kernel.requestExecute({ code, stop_on_error: false });
    future.onIOPub = (message) => {
      drawing.push(this.#output(message, cell, outcome));
    };
    await future.done;
    await Promise.all(drawing);
    return outcome;
  }

  /** A view of a widget in a cell of its own. */
  async show(id: string): Promise<void> {
    this.shown.push(id);
    await this.manager.show(id, this.#output_area(this.#cell()));
  }

  async #output(message: KernelMessage.IIOPubMessage, cell: HTMLElement, outcome: Outcome): Promise<void> {
    const { content } = message;
    const type = message.header.msg_type;
    if (type === "stream") {
      const { text } = content as KernelMessage.IStreamMsg["content"];
      outcome.text += text;
      this.#print(cell, text);
    } else if (type === "error") {
      const { ename, evalue, traceback } = content as KernelMessage.IErrorMsg["content"];
      outcome.error = { name: ename, value: evalue, traceback: traceback.join("\n") };
      this.#print(cell, `${ename}: ${evalue}`).classList.add("is-error");
    } else if (type === "execute_result" || type === "display_data") {
      const { data } = content as KernelMessage.IDisplayDataMsg["content"];
      const view = data[WIDGET] as { model_id: string } | undefined;
      const text = data["text/plain"];
      if (type === "execute_result") outcome.result = String(text);
      if (view !== undefined) {
        outcome.shown.push(view.model_id);
        this.shown.push(view.model_id);
        await this.manager.show(view.model_id, this.#output_area(cell));
      } else {
        this.#print(cell, String(text));
      }
    }
  }

  #cell(): HTMLElement {
    const cell = document.createElement("div");
    cell.className = "jp-Cell jp-CodeCell";
    this.root.append(cell);
    return cell;
  }

  #output_area(cell: HTMLElement): HTMLElement {
    const area = document.createElement("div");
    area.className = "jp-OutputArea-output";
    cell.append(area);
    return area;
  }

  #print(cell: HTMLElement, text: string): HTMLElement {
    const area = this.#output_area(cell);
    const pre = document.createElement("pre");
    pre.textContent = text;
    area.append(pre);
    return area;
  }
}
