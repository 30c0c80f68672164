// Cells of a notebook: inserted below another one, and run where that was asked for.
import { NotebookActions, type NotebookPanel } from "@jupyterlab/notebook";

/** Insert a code cell below the active one, or below `below`, and make it the active one. */
export async function insertBelow(
  panel: NotebookPanel,
  code: string,
  { below, run = false }: { below?: number; run?: boolean } = {},
): Promise<void> {
  const notebook = panel.content;
  if (notebook.model === null || notebook.model.readOnly) throw new Error("This notebook cannot be changed.");
  if (below !== undefined) notebook.activeCellIndex = below;
  const active = notebook.activeCell;
  // A notebook of one empty cell is written into: an empty cell above the code helps nobody.
  const only = notebook.widgets.length === 1 && active?.model.sharedModel.getSource() === "";
  if (!only) NotebookActions.insertBelow(notebook);
  notebook.activeCell?.model.sharedModel.setSource(code);
  const inserted = notebook.activeCell;
  if (inserted !== null) await notebook.scrollToCell(inserted, "auto");
  if (run) await NotebookActions.run(notebook, panel.sessionContext);
}
