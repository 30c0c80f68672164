// One line that is always there: what the kernel is at, what went wrong, and what the page waits for. Details open below
// it without moving anything.
import { useEffect, useState } from "preact/hooks";
import { RequestFailed } from "../common/connection";
import { dtypeText, duration } from "../common/format";
import { type Lab, useLab } from "../common/lab";
import type { Status } from "../common/wire";

const WORKS: Record<NonNullable<Status["work"]>, string> = {
  load: "Loading the model",
  run: "Running",
  sweep: "Sweeping",
  lens: "Looking through the lens",
};
// Work shorter than this would only flicker.
const SHOWN_AFTER_MS = 300;

interface Trouble {
  message: string;
  kind: string;
  traceback: string;
  retry: boolean;
  dismiss(): void;
}

function troubleOf(lab: Lab, status: Status | null): Trouble | null {
  const { problem } = lab;
  if (problem !== null) {
    const failed = problem instanceof RequestFailed ? problem : null;
    return {
      message: problem.message,
      kind: failed?.kind ?? problem.name,
      traceback: failed?.traceback ?? "",
      retry: false,
      dismiss: () => lab.dismissProblem(),
    };
  }
  if (status?.failure) {
    return { ...status.failure, retry: true, dismiss: () => void lab.act({ do: "dismiss" }) };
  }
  return null;
}

export function StatusBar({ lab }: { lab: Lab }) {
  const { status, view, answer } = useLab(lab);
  const [long, setLong] = useState(false);
  const work = status?.work ?? null;
  useEffect(() => {
    setLong(false);
    if (work === null) return;
    const timer = setTimeout(() => setLong(true), SHOWN_AFTER_MS);
    return () => clearTimeout(timer);
  }, [work]);
  const trouble = troubleOf(lab, status);
  const model = view?.model;
  return (
    <div class="nnsl-status" role="status" data-trouble={trouble !== null}>
      {trouble !== null ? (
        <>
          <span class="nnsl-status-text nnsl-problem" title={trouble.message}>
            {trouble.message}
          </span>
          <details class="nnsl-details">
            <summary>Details</summary>
            <div class="nnsl-details-panel">
              <p>
                <b>{trouble.kind}</b> {trouble.message}
              </p>
              {trouble.traceback !== "" && <pre>{trouble.traceback}</pre>}
            </div>
          </details>
          {trouble.retry && (
            <button type="button" class="nnsl-button" onClick={() => void lab.act({ do: "retry" })}>
              Retry
            </button>
          )}
          <button type="button" class="nnsl-link" onClick={trouble.dismiss}>
            Dismiss
          </button>
        </>
      ) : (
        <Doing lab={lab} status={status} long={long} />
      )}
      {model && (
        <span class="nnsl-facts">
          {[
            model.name,
            dtypeText(model.dtype),
            model.loaded ? model.device : "not loaded",
            answer === null ? "" : duration(answer.seconds),
          ]
            .filter((fact) => fact !== "")
            .join(" · ")}
        </span>
      )}
    </div>
  );
}

function Doing({ lab, status, long }: { lab: Lab; status: Status | null; long: boolean }) {
  const link = lab.connection.state;
  if (link === "closed")
    return <span class="nnsl-status-text">No kernel: this is the last state, to be read only.</span>;
  if (status?.blocked || link === "busy")
    return (
      <span class="nnsl-status-text">
        A cell of yours is running; your click is kept and done afterwards.
      </span>
    );
  const work = status?.work ?? null;
  if (status === null || work === null || !long) return <span class="nnsl-status-text" />;
  const known = status.total > 0;
  return (
    <>
      <span class="nnsl-status-text">
        {WORKS[work]}
        {known && ` ${status.done} of ${status.total} ${status.unit}`}
        {status.waiting.length > 0 && `, ${status.waiting.length} waiting`}
      </span>
      <progress
        class="nnsl-progress"
        aria-label={WORKS[work]}
        {...(known ? { max: status.total, value: status.done } : {})}
      />
      <button type="button" class="nnsl-button" onClick={() => void lab.act({ do: "cancel", work })}>
        Cancel
      </button>
    </>
  );
}
