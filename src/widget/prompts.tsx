// The two prompts as token strips. Choosing positions limits the active step; looking at a position of one prompt marks
// its counterpart in the other.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Lab, useLab } from "../common/lab";
import { chosenPositions, colourOf } from "../common/steps";
import { TokenStrip } from "../common/tokens";
import type { PromptView, View } from "../common/wire";
import { whyNot } from "./reach";

type Field = "base" | "source";
const NAMES: Record<Field, string> = { base: "Base", source: "Source" };

export function Prompts({ lab }: { lab: Lab }) {
  const { view } = useLab(lab);
  const [look, setLook] = useState<{ field: Field; position: number } | null>(null);
  if (view === null) return <div class="nnsl-prompts" />;
  const linked = (field: Field): number | null => {
    if (look === null) return null;
    if (look.field === field) return look.position;
    const pairs = view.alignment.source_positions;
    if (field === "source") return pairs[look.position] ?? null;
    const at = pairs.indexOf(look.position);
    return at < 0 ? null : at;
  };
  return (
    <div class="nnsl-prompts">
      {(["base", "source"] as const).map((field) => (
        <PromptRow
          key={field}
          lab={lab}
          view={view}
          field={field}
          linked={linked(field)}
          onLook={(position) => setLook(position === null ? null : { field, position })}
        />
      ))}
    </div>
  );
}

interface RowProps {
  lab: Lab;
  view: View;
  field: Field;
  linked: number | null;
  onLook(position: number | null): void;
}

function PromptRow({ lab, view, field, linked, onLook }: RowProps) {
  const prompt: PromptView = view[field];
  const [editing, setEditing] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const active = view.active === null ? undefined : view.steps[view.active];
  const patching = active?.step.kind === "patch";
  const why = whyNot(lab);
  const takesText = view.model?.takes_text ?? true;
  const missing = prompt.text === null && prompt.length === null;
  const chosen = field === "base" ? (active?.base_positions ?? null) : (active?.source_positions ?? null);
  const scopeChosen = active === undefined && field === "base" ? numbers(view) : chosen;
  const unmatched = view.alignment.source_positions.flatMap((to, at) => (to === null ? [at] : []));

  const choose = (positions: number[]) => {
    const counterparts = field === "base" ? view.alignment.source_positions : [];
    const found = chosenPositions(positions, prompt.length ?? 0, counterparts);
    const scope =
      field === "base"
        ? { ...view.scope, positions: found, from_positions: null }
        : { ...view.scope, from_positions: found };
    void lab.act({ do: "set_scope", scope });
  };
  const stop = () => {
    setEditing(false);
    requestAnimationFrame(() => button.current?.focus());
  };
  return (
    <div class="nnsl-prompt" data-field={field}>
      <span class="nnsl-prompt-name" id={`nnsl-${field}`}>
        {NAMES[field]}
      </span>
      {editing ? (
        <PromptEditor
          name={`${NAMES[field]} prompt`}
          text={prompt.text ?? (field === "source" ? (view.base.text ?? "") : "")}
          onApply={(text) => {
            stop();
            const texts = field === "base" ? { base: text, source: null } : { base: null, source: text };
            void lab.act({ do: "set_prompts", ...texts });
          }}
          onCancel={stop}
        />
      ) : missing ? (
        <span class="nnsl-dim nnsl-prompt-none">
          {field === "base"
            ? takesText
              ? "No prompt yet"
              : "Inputs given in Python"
            : "None. A patch takes its values from it."}
        </span>
      ) : prompt.tokens.length > 0 ? (
        // biome-ignore lint/a11y/noStaticElementInteractions: the button beside it does the same.
        <div class="nnsl-prompt-strip" onDblClick={() => takesText && why === "" && setEditing(true)}>
          <TokenStrip
            name={`${NAMES[field]} tokens`}
            tokens={prompt.tokens}
            chosen={scopeChosen}
            unmatched={field === "base" ? unmatched : []}
            unmatchedReason={view.alignment.message}
            linked={linked}
            kind={active ? colourOf(active.step.kind) : null}
            disabled={why !== "" || (field === "source" && !patching)}
            onChoose={choose}
            onLook={onLook}
          />
        </div>
      ) : (
        <span class="nnsl-dim">{prompt.length === 0 ? "Empty" : `${prompt.length ?? ""} positions`}</span>
      )}
      {prompt.error !== "" && !editing && <span class="nnsl-problem nnsl-prompt-error">{prompt.error}</span>}
      {field === "source" && view.alignment.message !== "" && !editing && (
        <span class="nnsl-prompt-note" title={view.alignment.message}>
          {unmatched.length} of {view.base.length} without counterpart
        </span>
      )}
      {!editing && takesText && (
        <button
          ref={button}
          type="button"
          class="nnsl-link"
          disabled={why !== ""}
          title={why}
          onClick={() => setEditing(true)}
          aria-label={`${missing ? "Add" : "Edit"} ${field} prompt`}
        >
          {missing ? (field === "source" ? "Add source prompt" : "Add prompt") : "Edit"}
        </button>
      )}
      {field === "source" && !missing && !editing && (
        <button
          type="button"
          class="nnsl-link"
          disabled={why !== ""}
          aria-label="Remove source prompt"
          onClick={() => void lab.act({ do: "set_prompts", base: null, source: "" })}
        >
          Remove
        </button>
      )}
    </div>
  );
}

/** The scope's positions, when no step has worked them out: numbers only. */
function numbers(view: View): number[] | null {
  const { positions } = view.scope;
  const length = view.base.length ?? 0;
  if (positions === null) return null;
  return positions.flatMap((one) => (typeof one === "number" ? [one < 0 ? one + length : one] : []));
}

interface EditorProps {
  name: string;
  text: string;
  onApply(text: string): void;
  onCancel(): void;
}

function PromptEditor({ name, text, onApply, onCancel }: EditorProps) {
  const input = useRef<HTMLInputElement>(null);
  const [value, setValue] = useState(text);
  useEffect(() => input.current?.select(), []);
  return (
    <form
      class="nnsl-prompt-form"
      onSubmit={(event) => {
        event.preventDefault();
        onApply(value);
      }}
    >
      <input
        ref={input}
        class="nnsl-field nnsl-prompt-input"
        aria-label={name}
        value={value}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => setValue(event.currentTarget.value)}
        onKeyDown={(event) => {
          event.stopPropagation();
          if (event.key === "Escape") onCancel();
        }}
      />
      <button type="submit" class="nnsl-button">
        Apply
      </button>
      <button type="button" class="nnsl-link" onClick={onCancel}>
        Cancel
      </button>
    </form>
  );
}
