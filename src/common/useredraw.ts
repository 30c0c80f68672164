// Draws a component again when what it reads changes.
import { useLayoutEffect, useReducer } from "preact/hooks";

export interface Observable {
  subscribe(listener: () => void): () => void;
}

/** The subscription is made while the first drawing is committed: what comes after it is never missed. */
export function useRedraw(source: Observable): void {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useLayoutEffect(() => source.subscribe(() => redraw(undefined)), [source]);
}
