// The cells of a sweep or a lens as far as they are computed: asked for again while more are coming, one request at a
// time, and kept until newer ones are there.
import { useEffect, useRef, useState } from "preact/hooks";
import type { ReplyOf } from "../../common/connection";
import type { Lab } from "../../common/lab";
import { Latest } from "../../common/latest";
import { floatsOf } from "../../common/paint";

type GridKind = "sweep_grid" | "lens_grid";

export interface GridOf<Kind extends GridKind> {
  grid: ReplyOf<Kind>;
  values: Float32Array;
}

interface Shown<Kind extends GridKind> {
  shown: GridOf<Kind> | null;
  error: Error | null;
}

// A page that asked at every cell would keep a fast kernel from computing.
const REST_MS = 150;

/** `progress` is anything that changes when there is more to see. */
export function useGrid<Kind extends GridKind>(
  lab: Lab,
  kind: Kind,
  run: string | null,
  progress: string,
): Shown<Kind> {
  const [state, setState] = useState<Shown<Kind>>({ shown: null, error: null });
  const queue = useRef<Latest<string, GridOf<Kind>> | null>(null);
  useEffect(() => {
    const latest = new Latest<string, GridOf<Kind>>(
      async (wanted) => {
        const { reply, buffer } = await lab.connection.ask(kind, { kind: "grid", run: wanted });
        return { grid: reply, values: floatsOf(buffer) };
      },
      (shown) => setState({ shown, error: null }),
      (error) => {
        if (error.name !== "RequestDropped") setState((old) => ({ ...old, error }));
      },
    );
    queue.current = latest;
    return () => latest.dispose();
  }, [lab, kind]);

  const known = useRef<string | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: again whenever there is more to see.
  useEffect(() => {
    if (run === null) return;
    queue.current?.want(run, run === known.current ? REST_MS : 0);
    known.current = run;
  }, [run, progress]);
  return state;
}
