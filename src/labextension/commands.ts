// What the extension's commands do. Each works on the current notebook and says what came of it.
import { InputDialog, Notification } from "@jupyterlab/apputils";
import type { INotebookTracker, NotebookPanel } from "@jupyterlab/notebook";
import type { TranslationBundle } from "@jupyterlab/translation";
import type { Connection } from "../common/connection";
import type { AskLab } from "../common/wire";
import { insertBelow } from "./cells";
import { conversationOf } from "./conversations";
import { messageOf } from "./tokens";

export const IDS = {
  openLab: "nnsight-lab:open-lab",
  insertCode: "nnsight-lab:insert-lab-code",
  runAgain: "nnsight-lab:run-again",
  clearSteps: "nnsight-lab:clear-steps",
  newNotebook: "nnsight-lab:new-notebook",
  showModels: "nnsight-lab:show-models",
} as const;

export class Actions {
  constructor(
    private readonly notebooks: INotebookTracker,
    private readonly words: TranslationBundle,
    private readonly runsInserted: () => boolean,
  ) {}

  /** Insert a cell that opens the Lab for a model of the kernel; which one is asked where there are several. */
  openLab(): Promise<void> {
    return this.#with(async (panel, connection) => {
      const { state } = conversationOf(panel);
      const models = state.state === "ready" ? state.models : [];
      if (models.length === 0) throw new Error(this.words.__("There is no model in this kernel."));
      let model = models[0]!.name;
      if (models.length > 1) {
        const chosen = await InputDialog.getItem({
          title: this.words.__("Open the Lab for which model?"),
          items: models.map(({ name }) => name),
        });
        if (!chosen.button.accept || chosen.value === null) return;
        model = chosen.value;
      }
      const { reply } = await connection.ask("code", { kind: "snippet", model, site: "", purpose: "lab" });
      await insertBelow(panel, reply.code, { run: this.runsInserted() });
    });
  }

  /** Insert the code of the Lab that was opened last. */
  insertCode(): Promise<void> {
    return this.#with(async (panel, connection) => {
      const { reply } = await connection.ask("told", { kind: "lab", to: "code" });
      await insertBelow(panel, reply.code);
    });
  }

  /** Have the Lab that was opened last do something. */
  lab(to: AskLab["to"]): Promise<void> {
    return this.#with(async (_, connection) => {
      const { reply } = await connection.ask("told", { kind: "lab", to });
      Notification.success(reply.message, { autoClose: 3000 });
    });
  }

  async #with(act: (panel: NotebookPanel, connection: Connection) => Promise<void>): Promise<void> {
    const panel = this.notebooks.currentWidget;
    try {
      if (panel === null) throw new Error(this.words.__("Open a notebook first."));
      const { state, connection } = conversationOf(panel);
      if (connection === null || state.state !== "ready") throw new Error(this.#why(state.state));
      await act(panel, connection);
    } catch (error) {
      Notification.error(messageOf(error), { autoClose: 6000 });
    }
  }

  #why(state: string): string {
    const { words } = this;
    switch (state) {
      case "missing":
        return words.__(
          "nnsight-lab is not installed in this kernel's environment: %pip install nnsight-lab",
        );
      case "installed":
        return words.__("Import the package first: import nnsight_lab");
      case "dead":
        return words.__("The kernel has died. Restart it to go on.");
      default:
        return words.__("The kernel cannot be asked now.");
    }
  }
}
