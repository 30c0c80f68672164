// One conversation a notebook, made when first asked for and ended with the notebook.
import type { NotebookPanel } from "@jupyterlab/notebook";
import { Conversation } from "./conversation";

const known = new WeakMap<NotebookPanel, Conversation>();

export function conversationOf(panel: NotebookPanel): Conversation {
  let conversation = known.get(panel);
  if (conversation === undefined) {
    conversation = new Conversation(panel.sessionContext);
    known.set(panel, conversation);
    panel.disposed.connect(() => {
      conversation?.dispose();
      known.delete(panel);
    });
  }
  return conversation;
}
