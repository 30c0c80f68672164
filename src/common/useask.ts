// A question whose answer a component shows: asked when its key changes, the latest wins, and what was there before
// stays until the new answer is there.
import { useEffect, useRef, useState } from "preact/hooks";

export interface Asking<Answer> {
  answer: Answer | null;
  /** Key of the question that `answer` belongs to. */
  key: string | null;
  error: Error | null;
  waiting: boolean;
}

/** `key` null asks nothing. A question that the kernel drops for a later one is left without answer. */
export function useAsk<Answer>(key: string | null, ask: () => Promise<Answer>): Asking<Answer> {
  const [state, setState] = useState<Asking<Answer>>({
    answer: null,
    key: null,
    error: null,
    waiting: false,
  });
  const latest = useRef(ask);
  latest.current = ask;
  // The key stands for the question.
  useEffect(() => {
    if (key === null) {
      setState({ answer: null, key: null, error: null, waiting: false });
      return;
    }
    let current = true;
    setState((old) => ({ ...old, error: null, waiting: true }));
    latest.current().then(
      (answer) => current && setState({ answer, key, error: null, waiting: false }),
      (error: Error) =>
        current &&
        setState((old) => ({
          ...old,
          error: error.name === "RequestDropped" ? null : error,
          waiting: false,
        })),
    );
    return () => {
      current = false;
    };
  }, [key]);
  return state;
}
