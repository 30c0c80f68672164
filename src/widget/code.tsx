// The Python code of the present state, to copy or to insert as a cell. Inserting is the host's: an event asks for it,
// and where nobody takes the event the code is copied instead, and the page says so.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { copyText } from "../common/clipboard";
import { requestInsertion } from "../common/insertcode";
import { type Lab, useLab } from "../common/lab";
import { pythonSpans } from "../common/python";

const SAID_MS = 2500;

export function CodePane({ lab }: { lab: Lab }) {
  const { code: shown } = useLab(lab);
  const root = useRef<HTMLElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [said, setSaid] = useState("");
  const code = shown?.code ?? "";
  const spans = useMemo(() => pythonSpans(code), [code]);

  useEffect(() => {
    if (said === "") return;
    const timer = setTimeout(() => setSaid(""), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);

  // What the reader looks for is the trace, not the imports above it.
  const trace = code.split("\n").findLastIndex((line) => line.startsWith("with "));
  useLayoutEffect(() => {
    const pane = box.current;
    if (pane === null || trace < 0) return;
    const lines = code.split("\n").length;
    pane.scrollTop = (pane.scrollHeight / lines) * trace;
  }, [code, trace]);

  const copy = async (success: string) => {
    const copied = await copyText(code, root.current!);
    setSaid(copied ? success : "This page may not copy: select the code and copy it by hand");
  };
  const insert = async () => {
    const widget = root.current!.closest(".nnsl") ?? root.current!;
    if (requestInsertion(widget, code)) setSaid("Inserted below");
    else await copy("Copied: paste it into a cell");
  };

  return (
    <section class="nnsl-codepane" aria-label="Code" ref={root}>
      <div class="nnsl-codepane-head">
        <h2 class="nnsl-title">Code</h2>
        <span class="nnsl-said" role="status">
          {said}
        </span>
        <button type="button" class="nnsl-link" disabled={code === ""} onClick={() => void copy("Copied")}>
          Copy
        </button>
        <button type="button" class="nnsl-link" disabled={code === ""} onClick={() => void insert()}>
          Insert cell
        </button>
      </div>
      {shown !== null && shown.error !== "" && <p class="nnsl-problem">{shown.error}</p>}
      <div
        ref={box}
        class="nnsl-code"
        role="textbox"
        aria-readonly="true"
        aria-multiline="true"
        tabIndex={0}
        aria-label="Python code of the present state"
      >
        <code>
          {spans.map(({ kind, text }, number) => (
            <span key={number} class={kind === "plain" ? undefined : `nnsl-py-${kind}`}>
              {text}
            </span>
          ))}
        </code>
      </div>
    </section>
  );
}
