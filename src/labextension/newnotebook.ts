// The launcher's notebook: the embedded model and the Lab on it, in two cells that are not run yet.
import type { NotebookPanel } from "@jupyterlab/notebook";
import { NotebookActions } from "@jupyterlab/notebook";
import type { KernelSpec } from "@jupyterlab/services";
import type { CommandRegistry } from "@lumino/commands";

const CELLS = [
  "from nnsight_lab import demo\n\nmodel = demo.load()  # a small GPT-2 that ships with nnsight-lab",
  'lab = model.lab(\n    demo.EIFFEL,\n    source=demo.BRANDENBURG,\n    module="transformer.h.11.mlp",\n)\nlab',
];

export async function newNotebook(commands: CommandRegistry, kernels: KernelSpec.IManager): Promise<void> {
  await kernels.ready;
  // Python, the server's own kernel where that is one; where there is none JupyterLab asks.
  const { specs } = kernels;
  const names = [specs?.default ?? "", ...Object.keys(specs?.kernelspecs ?? {})];
  const kernelName = names.find((name) => specs?.kernelspecs[name]?.language === "python");
  const panel = (await commands.execute("notebook:create-new", {
    activate: true,
    ...(kernelName === undefined ? {} : { kernelName }),
  })) as NotebookPanel;
  await panel.context.ready;
  const notebook = panel.content;
  for (const [number, code] of CELLS.entries()) {
    if (number > 0) NotebookActions.insertBelow(notebook);
    notebook.activeCell?.model.sharedModel.setSource(code);
  }
  notebook.activeCellIndex = 0;
}
