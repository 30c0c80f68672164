// The controls of the activation's picture: which value, before or after the edits, which axes, how it is pooled.
import { useId } from "preact/hooks";
import { dtypeText, shapeText, visibleToken } from "../../common/format";
import type { AxisView, Picture, TensorFacts } from "../../common/wire";
import { otherAxes, type Pick, withAxis, withEntry } from "./picking";

export type Which = Picture["which"];
export type Pooling = Picture["pooling"];

interface ChoiceProps<Value extends string> {
  label: string;
  values: ReadonlyArray<readonly [Value, string, string?]>;
  value: Value;
  onChange(value: Value): void;
}

/** A few exclusive values side by side: radio buttons that look like one switch. */
export function Choice<Value extends string>({ label, values, value, onChange }: ChoiceProps<Value>) {
  const name = useId();
  return (
    <fieldset class="nnsl-choice">
      <legend class="nnsl-hidden">{label}</legend>
      {values.map(([key, text, title]) => (
        <label key={key} title={title ?? ""}>
          <input type="radio" name={name} checked={key === value} onChange={() => onChange(key)} />
          <span>{text}</span>
        </label>
      ))}
    </fieldset>
  );
}

export function WhichChoice({ which, onChange }: { which: Which; onChange(which: Which): void }) {
  return (
    <Choice
      label="Run"
      value={which}
      onChange={onChange}
      values={[
        ["edited", "After", "in the edited run"],
        ["clean", "Before", "in the clean run"],
        ["difference", "Difference", "after minus before"],
      ]}
    />
  );
}

const POOLINGS: ReadonlyArray<readonly [Pooling, string]> = [
  ["extreme", "farthest from 0"],
  ["mean", "mean"],
  ["max", "largest"],
  ["min", "smallest"],
];

export function PoolingPicker({ pooling, onChange }: { pooling: Pooling; onChange(pooling: Pooling): void }) {
  return (
    <label class="nnsl-field" title="What a pixel shows where it stands for several entries">
      <span>pixel shows</span>
      <select
        value={pooling}
        onChange={(event) => onChange(event.currentTarget.value as Pooling)}
        aria-label="What a pixel shows where it stands for several entries"
      >
        {POOLINGS.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

export function ElementPicker(props: {
  tensors: readonly TensorFacts[];
  value: number;
  onChange(number: number): void;
}) {
  if (props.tensors.length < 2) return null;
  return (
    <label class="nnsl-field">
      <span>element</span>
      <select
        value={props.value}
        onChange={(event) => props.onChange(Number(event.currentTarget.value))}
        aria-label="Tensor in the value"
      >
        {props.tensors.map(({ element, shape, dtype }, number) => (
          <option key={element.join(".")} value={number}>
            {element.map((part) => `[${part}]`).join("")} {shapeText(shape)} {dtypeText(dtype)}
          </option>
        ))}
      </select>
    </label>
  );
}

interface AxesProps {
  axes: readonly AxisView[];
  pick: Pick;
  onChange(pick: Pick): void;
}

/** Rows and columns, where there is a choice, and a slider for each other axis. */
export function AxisPickers({ axes, pick, onChange }: AxesProps) {
  // With two axes there is nothing to choose: one of them is rows.
  const choosable = axes.filter(({ size }) => size > 1).length > 2;
  return (
    <>
      {choosable &&
        (["row", "column"] as const).map((place) => (
          <label class="nnsl-field" key={place}>
            <span>{place}s</span>
            <select
              value={pick[place] ?? 0}
              onChange={(event) => onChange(withAxis(pick, place, Number(event.currentTarget.value)))}
            >
              {axes.map(({ name, size }, number) => (
                <option key={`${number} ${name}`} value={number}>
                  {name} ({size.toLocaleString("en")})
                </option>
              ))}
            </select>
          </label>
        ))}
      {otherAxes(axes, pick).map(({ axis, number }) => (
        <EntrySlider
          key={`${number} ${axis.name}`}
          name={axis.name}
          size={axis.size}
          label={axis.labels[pick.entries[number] ?? 0]}
          value={pick.entries[number] ?? 0}
          onChange={(entry) => onChange(withEntry(pick, number, entry))}
        />
      ))}
    </>
  );
}

interface SliderProps {
  name: string;
  size: number;
  label?: string | undefined;
  value: number;
  onChange(entry: number): void;
}

/** One entry of an axis, by a slider and by its number. */
export function EntrySlider({ name, size, label, value, onChange }: SliderProps) {
  const within = (entry: number) => Math.min(Math.max(Math.round(entry) || 0, 0), size - 1);
  const set = (event: { currentTarget: HTMLInputElement }) =>
    onChange(within(Number(event.currentTarget.value)));
  return (
    <div class="nnsl-field">
      <span>{name}</span>
      <input type="range" min={0} max={size - 1} value={value} onInput={set} aria-label={`${name}, slider`} />
      <input
        type="number"
        min={0}
        max={size - 1}
        value={value}
        onChange={set}
        aria-label={`${name}, of ${size}`}
      />
      <span class="nnsl-dim">
        of {size}
        {label !== undefined && label !== String(value) ? ` ${visibleToken(label)}` : ""}
      </span>
    </div>
  );
}
