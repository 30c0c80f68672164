// The activation: a captured value of the latest run as a heatmap. The kernel reduces it to what the screen can show.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { dtypeText, shapeText } from "../../common/format";
import { Heatmap, type Shown } from "../../common/heatmap";
import { type Lab, useLab } from "../../common/lab";
import { floatsOf } from "../../common/paint";
import type { PictureSource } from "../../common/shots";
import type { Answer, CapturedView, ListingView, OperationView, Picture, Target } from "../../common/wire";
import { ExportButtons } from "./export";
import { heatmapFigure } from "./heatmapfigure";
import { chosenValue, keyOf, NO_PICK, type Pick, pickOf, sliceOf } from "./picking";
import { SavedPicture } from "./saved";
import {
  AxisPickers,
  ElementPicker,
  EntrySlider,
  type Pooling,
  PoolingPicker,
  type Which,
  WhichChoice,
} from "./valuecontrols";

// Share of the entries that the colours reach over, where outliers are trimmed.
const TRIM = 0.995;

export function ActivationTab({ lab }: { lab: Lab }) {
  const { answer, view, status, snapshot, listing } = useLab(lab);
  const [wanted, setWanted] = useState<string | null>(null);
  const selection = view?.selection ?? null;
  const selected = selection === null ? "" : keyOf(selection);
  // A new selection is what the reader wants to see now.
  // biome-ignore lint/correctness/useExhaustiveDependencies: when the selection changes.
  useEffect(() => setWanted(null), [selected]);

  // Without a kernel nothing can be asked for. What is drawn already when the kernel goes stays.
  const [alone] = useState(lab.connection.state === "closed");
  const captured = answer?.captured ?? [];
  const value = alone ? null : chosenValue(captured, wanted, selection);
  const nothing = wanted === null ? whyNothing(listing, selection) : "";
  if (nothing !== "") return <p class="nnsl-empty">{nothing}</p>;
  if (answer === null || value === null) {
    if (snapshot !== null) return <SavedPicture snapshot={snapshot} />;
    return (
      <p class="nnsl-empty">
        {selection === null
          ? "Select an operation in the listing, and its activation is drawn here."
          : alone
            ? "The saved state has no picture of the selected operation."
            : "The latest run has no value of the selected operation."}
      </p>
    );
  }
  return (
    <>
      {captured.length > 1 && (
        <label class="nnsl-field nnsl-field-wide">
          <span>value</span>
          <select
            value={keyOf(value.target)}
            onChange={(event) => setWanted(event.currentTarget.value)}
            aria-label="Captured value"
          >
            {captured.map(({ target, label }) => (
              <option key={keyOf(target)} value={keyOf(target)}>
                {label}
              </option>
            ))}
          </select>
        </label>
      )}
      <Activation
        // Choices of axes belong to one place in the model.
        key={`${value.target.site} ${value.target.io} ${value.target.argument}`}
        lab={lab}
        answer={answer}
        value={value}
        calls={callsOf(listing, value.target)}
        stale={status?.stale === true}
      />
    </>
  );
}

function operationAt(listing: ListingView | null, { site }: Target): OperationView | undefined {
  return listing?.blocks.flatMap(({ operations }) => operations).find((one) => one.site === site);
}

/** How often the latest run computed a value, as far as the listing on screen knows. */
function callsOf(listing: ListingView | null, target: Target): number {
  return operationAt(listing, target)?.calls ?? 1;
}

/** Why the selected value can have no picture, as far as the listing on screen knows; else empty. */
function whyNothing(listing: ListingView | null, selection: Target | null): string {
  if (selection === null || selection.argument !== null) return "";
  const operation = operationAt(listing, selection);
  if (operation === undefined || operation.calls === null) return "";
  if (operation.calls === 0) return `${operation.label} was not reached: ${operation.reason}`;
  if (selection.io === "input" || operation.tensors.length > 0 || operation.summary === "") return "";
  return `${operation.label} gave no tensor to draw: ${operation.summary}`;
}

interface Props {
  lab: Lab;
  answer: Answer;
  value: CapturedView;
  calls: number;
  stale: boolean;
}

function Activation({ lab, answer, value, calls, stale }: Props) {
  const [which, setWhich] = useState<Which>("edited");
  const [pooling, setPooling] = useState<Pooling>("extreme");
  const [trim, setTrim] = useState(true);
  const [element, setElement] = useState(() => elementOf(value));
  const [call, setCall] = useState(value.target.call);
  const [pick, setPick] = useState<Pick>(NO_PICK);
  const [shown, setShown] = useState<Picture | null>(null);
  const onScreen = useRef<Shown | null>(null);

  const facts = value.tensors[element] ?? value.tensors[0];
  const rank = facts?.shape.length ?? 0;
  const run = answer.edited ? which : "edited";
  // A tensor that is the whole value has no path in it.
  const inside = facts === undefined || facts.element.length === 0 ? value.target.element : facts.element;
  const target: Target = { ...value.target, call, element: inside };
  const slice = sliceOf(pick, rank);
  const question = { run: answer.run, target, which: run, slice };
  const key = JSON.stringify([question, pooling, trim]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key holds all that the question is made of.
  const source = useMemo<PictureSource | null>(
    () =>
      facts === undefined
        ? null
        : {
            key,
            async ask(window, height, width) {
              const { reply, buffer } = await lab.connection.ask("picture", {
                kind: "tensor",
                ...question,
                window,
                height,
                width,
                pooling,
                trim: trim ? TRIM : null,
              });
              return { picture: reply, values: floatsOf(buffer) };
            },
          },
    [lab, key],
  );
  const onShown = useCallback((now: Shown | null) => {
    onScreen.current = now;
    setShown(now?.shot.picture ?? null);
  }, []);

  if (facts === undefined) return <p class="nnsl-empty">{value.label} holds no tensor to draw.</p>;
  const picked = shown === null || pick.row !== null ? pick : pickOf(shown);
  const name = [lab.state.view?.model?.name ?? "", value.target.site, value.target.io, run].join(" ");
  return (
    <div class="nnsl-activation">
      <div class="nnsl-row">
        <span class="nnsl-value-name" title={value.target.site}>
          <b>{value.label}</b>{" "}
          <span class="nnsl-dim">{`${shapeText(facts.shape)} ${dtypeText(facts.dtype)}`}</span>
        </span>
        <ExportButtons
          name={name}
          figure={(theme) =>
            onScreen.current === null
              ? null
              : heatmapFigure(onScreen.current, `${value.label}, ${WORDS[run]}`, theme)
          }
          csv={async () => (await lab.connection.ask("table", { kind: "table", ...question })).reply.csv}
        />
      </div>
      <div class="nnsl-row nnsl-controls">
        {answer.edited && <WhichChoice which={which} onChange={setWhich} />}
        <ElementPicker tensors={value.tensors} value={element} onChange={setElement} />
        {shown !== null && <AxisPickers axes={shown.axes} pick={picked} onChange={setPick} />}
        {calls > 1 && <EntrySlider name="call" size={calls} value={call ?? calls - 1} onChange={setCall} />}
      </div>
      <Heatmap source={source} label={`${value.label}, ${WORDS[run]}`} onShown={onShown} dimmed={stale} />
      <div class="nnsl-row nnsl-controls">
        <PoolingPicker pooling={pooling} onChange={setPooling} />
        <label
          class="nnsl-check"
          title="Let the colours end where 99.5 % of the entries are, if a few lie far beyond"
        >
          <input type="checkbox" checked={trim} onChange={(event) => setTrim(event.currentTarget.checked)} />
          <span>trim outliers</span>
        </label>
      </div>
    </div>
  );
}

const WORDS: Record<Which, string> = { edited: "after", clean: "before", difference: "after minus before" };

/** Number of the tensor that the target names, the first where it names none. */
function elementOf({ target, tensors }: CapturedView): number {
  if (target.element === null) return 0;
  const wanted = JSON.stringify(target.element);
  return Math.max(
    tensors.findIndex(({ element }) => JSON.stringify(element) === wanted),
    0,
  );
}
