// What a view holds for itself and the kernel need not know: which result is in front, and which run of the history is
// compared with the present one.
import type { Lab } from "../common/lab";
import { useRedraw } from "../common/useredraw";

export const TABS = ["answer", "activation", "sweep", "lens"] as const;
export type Tab = (typeof TABS)[number];

export class Desk {
  tab: Tab = "answer";
  compared: string | null = null;
  #listeners = new Set<() => void>();

  show(tab: Tab): void {
    this.#set(() => {
      this.tab = tab;
    });
  }

  /** Compare with a run, or with none where it is that run already. */
  compare(run: string | null): void {
    this.#set(() => {
      this.compared = run === this.compared ? null : run;
      if (this.compared !== null) this.tab = "answer";
    });
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #set(change: () => void): void {
    change();
    for (const listener of [...this.#listeners]) listener();
  }
}

const desks = new WeakMap<Lab, Desk>();

/** The desk of a view; each view has a Lab of its own. */
export function deskOf(lab: Lab): Desk {
  let desk = desks.get(lab);
  if (desk === undefined) {
    desk = new Desk();
    desks.set(lab, desk);
  }
  return desk;
}

/** The desk, drawing the component again when it changes. */
export function useDesk(lab: Lab): Desk {
  const desk = deskOf(lab);
  useRedraw(desk);
  return desk;
}
