// What the plugins offer each other. Each is optional for the others, so that any plugin can be disabled.
import type { NotebookPanel } from "@jupyterlab/notebook";
import { LabIcon } from "@jupyterlab/ui-components";
import { Token } from "@lumino/coreutils";

export interface IListings {
  /** Show a module's listing beside the notebook. */
  open(panel: NotebookPanel, model: string, module: string): void;
}

export const IListings = new Token<IListings>(
  "nnsight-lab:IListings",
  "Shows the listing of a module of a notebook's kernel.",
);

export const icon = new LabIcon({
  name: "nnsight-lab:icon",
  svgstr:
    '<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16">' +
    '<g class="jp-icon3" fill="#616161"><rect x="1" y="2" width="5" height="3" rx="1.5"/><rect x="7" y="3" width="8" height="1"/>' +
    '<rect x="1" y="6.5" width="5" height="3" rx="1.5"/><rect x="7" y="7.5" width="6" height="1"/>' +
    '<rect x="1" y="11" width="5" height="3" rx="1.5"/><rect x="7" y="12" width="8" height="1"/></g></svg>',
});

/** A message of an error, for a notification. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
