// Answers the Lab's request to insert a cell: the code goes below the cell that the Lab is shown in.
import { Notification } from "@jupyterlab/apputils";
import type { INotebookTracker } from "@jupyterlab/notebook";
import { INSERT_CODE, type InsertCode } from "../common/insertcode";
import { insertBelow } from "./cells";
import { messageOf } from "./tokens";

export function listenForCode(page: Document, notebooks: INotebookTracker): void {
  page.addEventListener(INSERT_CODE, (event) => {
    const { code } = (event as CustomEvent<InsertCode>).detail;
    const from = event.composedPath()[0];
    const panel = notebooks.find((one) => from instanceof Node && one.node.contains(hostOf(from)));
    if (panel === undefined || panel.content.model?.readOnly !== false) return;
    const cell = panel.content.widgets.findIndex(
      ({ node }) => from instanceof Node && node.contains(hostOf(from)),
    );
    event.preventDefault();
    insertBelow(panel, code, cell < 0 ? {} : { below: cell }).catch((error: unknown) =>
      Notification.error(messageOf(error)),
    );
  });
}

/** The node in the page's own tree: a node in a shadow tree stands for its host. */
function hostOf(node: Node): Node {
  const root = node.getRootNode();
  return root instanceof ShadowRoot ? hostOf(root.host) : node;
}
