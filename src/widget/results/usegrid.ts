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

interface Asked {
  run: string;
  progress: string;
}

// A page that asked at every cell would keep a fast kernel from computing.
const REST_MS = 150;

/** `progress` is anything that changes when there is more to see; `late` until what is shown is as far as that. */
export function useGrid<Kind extends GridKind>(
  lab: Lab,
  kind: Kind,
  run: string | null,
  progress: string,
): Shown<Kind> & { late: boolean } {
  const [state, setState] = useState<Shown<Kind> & { asked: Asked | null }>({
    shown: null,
    error: null,
    asked: null,
  });
  const queue = useRef<Latest<Asked, GridOf<Kind>> | null>(null);
  useEffect(() => {
    const latest = new Latest<Asked, GridOf<Kind>>(
      async (asked) => {
        const { reply, buffer } = await lab.connection.ask(kind, { kind: "grid", run: asked.run });
        return { grid: reply, values: floatsOf(buffer) };
      },
      (shown, asked) => setState({ shown, error: null, asked }),
      (error, asked) => {
        if (error.name !== "RequestDropped") setState((old) => ({ ...old, error, asked }));
      },
    );
    queue.current = latest;
    return () => latest.dispose();
  }, [lab, kind]);

  const known = useRef<string | null>(null);
  useEffect(() => {
    if (run === null) return;
    queue.current?.want({ run, progress }, run === known.current ? REST_MS : 0);
    known.current = run;
  }, [run, progress]);
  const { shown, error, asked } = state;
  return { shown, error, late: run !== null && (asked?.run !== run || asked.progress !== progress) };
}
