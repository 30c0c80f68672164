// A Lumino widget whose content is drawn by Preact, in nnsight-lab's colours and in JupyterLab's theme.

import type { Message } from "@lumino/messaging";
import { Widget } from "@lumino/widgets";
import { type ComponentChildren, render, type VNode } from "preact";
import { useRef } from "preact/hooks";
import { useHostTheme } from "../common/hosttheme";

export abstract class Page extends Widget {
  constructor() {
    super();
    this.addClass("nnsl-page");
  }

  /** What is shown; drawn anew on each `update()`. */
  protected abstract view(): VNode;

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this.update();
  }

  protected override onUpdateRequest(message: Message): void {
    super.onUpdateRequest(message);
    if (this.isAttached) render(<Themed>{this.view()}</Themed>, this.node);
  }

  protected override onBeforeDetach(message: Message): void {
    render(null, this.node);
    super.onBeforeDetach(message);
  }
}

/** The root that every style of nnsight-lab stands under. */
export function Themed({ children }: { children: ComponentChildren }) {
  const root = useRef<HTMLDivElement>(null);
  const theme = useHostTheme(root);
  return (
    <div ref={root} class="nnsl nnsl-hosted" data-theme={theme}>
      {children}
    </div>
  );
}
