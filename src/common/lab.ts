// What every view of the Lab reads: the kernel's state as it was last synced, and the connection to ask for more.
// Views hold no copy of it; they are drawn again when it changes.
import { ContractError, checked } from "./check";
import type { Connection } from "./connection";
import { useRedraw } from "./useredraw";
import type { Action, Answer, CodeView, History, ListingView, Snapshot, Status, Target, View } from "./wire";

/** The synced traits; null before the kernel has set them. */
export interface LabState {
  view: View | null;
  listing: ListingView | null;
  answer: Answer | null;
  history: History | null;
  status: Status | null;
  code: CodeView | null;
  snapshot: Snapshot | null;
}

const TYPES = {
  view: "View",
  listing: "ListingView",
  answer: "Answer",
  history: "History",
  status: "Status",
  code: "CodeView",
  snapshot: "Snapshot",
} as const;

export const TRAITS = Object.keys(TYPES) as Array<keyof LabState>;

export class Lab {
  state: LabState = {
    view: null,
    listing: null,
    answer: null,
    history: null,
    status: null,
    code: null,
    snapshot: null,
  };
  /** The latest thing that went wrong with an action of this page; views show it until the next action. */
  problem: Error | null = null;
  #view: View | null = null;
  #selecting: { target: Target | null } | null = null;
  #listeners = new Set<() => void>();

  constructor(readonly connection: Connection) {
    connection.subscribe(() => this.#changed());
  }

  /** Take a trait's value as it came. What does not fit the contract becomes the problem. */
  receive(name: keyof LabState, value: unknown): void {
    const empty = value === null || value === undefined || Object.keys(value).length === 0;
    try {
      const taken = empty ? null : checked(TYPES[name], value);
      if (name === "view") this.#show(taken as View | null);
      else this.state = { ...this.state, [name]: taken };
    } catch (error) {
      if (!(error instanceof ContractError)) throw error;
      this.problem = error;
    }
    this.#changed();
  }

  /**
   * Send an action; what goes wrong is kept as the problem. Resolves when the kernel's state has changed. A selection
   * holds from the moment it is made, so that the next key or click means it; the kernel's word replaces it.
   */
  async act(action: Action): Promise<boolean> {
    this.problem = null;
    const selecting = action.do === "select" ? { target: action.target } : null;
    if (selecting !== null) {
      this.#selecting = selecting;
      this.#show(this.#view);
    }
    this.#changed();
    try {
      await this.connection.act(action);
      return true;
    } catch (error) {
      if ((error as Error).name !== "RequestDropped") {
        this.problem = error as Error;
        this.#changed();
      }
      return false;
    } finally {
      if (selecting !== null && this.#selecting === selecting) {
        this.#selecting = null;
        this.#show(this.#view);
        this.#changed();
      }
    }
  }

  #show(view: View | null): void {
    this.#view = view;
    const shown = view && this.#selecting ? { ...view, selection: this.#selecting.target } : view;
    this.state = { ...this.state, view: shown };
  }

  dismissProblem(): void {
    this.problem = null;
    this.#changed();
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

/** The lab's state, drawing the component again when it changes. */
export function useLab(lab: Lab): LabState {
  useRedraw(lab);
  return lab.state;
}
