// The listing of a forward: chips of its operations, line numbers, coloured code, and what a run has shown of each. It
// takes data and callbacks and knows neither the Lab nor Jupyter. Listings that are stepped into stand under their row.
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { segments } from "./segments";
import { colourOf, isShown, type StepKind, stepAt } from "./steps";
import type { ListingBlock, ListingView, OperationView, StepView, Target, Variable } from "./wire";

export interface ListingProps {
  listing: ListingView;
  selection: Target | null;
  steps: readonly StepView[];
  everything: boolean;
  /** Whether a chip can be chosen; without a kernel the listing can still be read. */
  disabled: boolean;
  onSelect(operation: OperationView): void;
  /** A value that the pointer or the keyboard asks to see, and where it stands; null when it leaves. */
  onPeek(target: Target | null, at: Element | null): void;
}

interface Row {
  line: number;
  operations: OperationView[];
}

export function Listing(props: ListingProps) {
  const { listing, selection } = props;
  const root = useRef<HTMLDivElement>(null);
  const [focused, setFocused] = useState<string | null>(null);
  const [first, ...inner] = listing.blocks;
  if (first === undefined) return null;

  const chips = () => [...(root.current?.querySelectorAll<HTMLElement>(".nnsl-chip") ?? [])];
  const onKeyDown = (event: KeyboardEvent) => {
    const list = chips();
    const at = list.findIndex((chip) => chip.contains(event.target as Node));
    if (at < 0) return;
    const to = {
      ArrowDown: at + 1,
      ArrowRight: at + 1,
      ArrowUp: at - 1,
      ArrowLeft: at - 1,
      Home: 0,
      End: list.length - 1,
    }[event.key];
    if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const chip = list[Math.min(Math.max(to, 0), list.length - 1)];
    chip?.focus();
    chip?.scrollIntoView({ block: "nearest" });
  };
  // One tab stop: the chip that had the focus last, else the selected one, else the first.
  const shown = listing.blocks.flatMap((block) =>
    block.operations.filter((o) => isShown(o, props.everything, selection, props.steps)),
  );
  const stop =
    shown.find(({ site }) => site === focused) ??
    shown.find(({ site }) => site === selection?.site) ??
    shown[0];

  return (
    <div
      ref={root}
      class="nnsl-listing"
      role="group"
      aria-label={`Operations of ${first.title}`}
      onKeyDown={onKeyDown}
      onPointerOver={(event) => {
        const at = (event.target as Element).closest("[data-peek]");
        if (at !== null) props.onPeek(JSON.parse(at.getAttribute("data-peek")!) as Target, at);
        else props.onPeek(null, null);
      }}
      onPointerLeave={() => props.onPeek(null, null)}
      onPointerDown={() => props.onPeek(null, null)}
    >
      <Block {...props} block={first} inner={inner} stop={stop?.site ?? ""} onFocus={setFocused} depth={0} />
    </div>
  );
}

interface BlockProps extends ListingProps {
  block: ListingBlock;
  inner: ListingBlock[];
  stop: string;
  onFocus(site: string): void;
  depth: number;
}

function Block(props: BlockProps) {
  const { block, inner, depth } = props;
  if (block.error !== "") return <p class="nnsl-listing-error">{block.error}</p>;
  const rows = new Map<number, Row>();
  for (const operation of block.operations) {
    if (!isShown(operation, props.everything, props.selection, props.steps)) continue;
    const row = rows.get(operation.line) ?? { line: operation.line, operations: [] };
    row.operations.push(operation);
    rows.set(operation.line, row);
  }
  const variables = new Map<number, Variable[]>();
  for (const variable of block.variables) {
    const list = variables.get(variable.line) ?? [];
    list.push(variable);
    variables.set(variable.line, list);
  }
  const prefix = block.site === "" ? "source." : `${block.site}.source.`;
  const isDirect = (site: string) => site.startsWith(prefix) && !site.slice(prefix.length).includes(".");
  return (
    <div class="nnsl-source" data-depth={depth}>
      {block.rows.map((spans, number) => {
        const line = number - 1;
        const operations = rows.get(line)?.operations ?? [];
        const below = inner.filter(
          ({ site }) => isDirect(site) && block.operations.some((o) => o.site === site && o.line === line),
        );
        return (
          <>
            <RowView
              key={line}
              {...props}
              line={line}
              operations={operations}
              code={segments(spans, variables.get(line) ?? []).map((piece) => (
                <span
                  class={`nnsl-py-${piece.kind}`}
                  {...(piece.variable === null ? {} : { "data-peek": JSON.stringify(piece.variable.target) })}
                >
                  {piece.text}
                </span>
              ))}
            />
            {below.map((nested) => (
              <div class="nnsl-nested" key={nested.site} role="group" aria-label={`Inside ${nested.title}`}>
                <p class="nnsl-nested-title">
                  {nested.title} <span>· stepped into {nested.site.split(".").at(-1)}</span>
                </p>
                <Block
                  {...props}
                  block={nested}
                  inner={inner.filter(({ site }) => site !== nested.site)}
                  depth={depth + 1}
                />
              </div>
            ))}
          </>
        );
      })}
    </div>
  );
}

interface RowProps extends BlockProps {
  line: number;
  operations: OperationView[];
  code: ComponentChildren;
}

function RowView({ line, operations, code, block, ...props }: RowProps) {
  const edited = operations.map(({ site }) => stepAt(props.steps, site)).find((step) => step?.enabled);
  const selected = operations.some(({ site }) => site === props.selection?.site);
  const known = operations.filter(({ calls }) => calls !== null);
  const missed = known.length > 0 && known.every(({ calls }) => calls === 0);
  const never = block.calls === 0 || missed;
  const about = operations.find(({ summary }) => summary !== "") ?? operations[0];
  return (
    <div
      class="nnsl-source-row"
      data-kind={edited ? colourOf(edited.kind) : undefined}
      data-selected={selected}
      data-never={never}
    >
      <div class="nnsl-chips">
        {operations.map((operation) => (
          <Chip key={operation.site} operation={operation} {...props} />
        ))}
      </div>
      <span class="nnsl-line" aria-hidden="true">
        {line < 0 ? "*" : line}
      </span>
      <code class="nnsl-source-code">{code}</code>
      <span class="nnsl-summary" title={about?.reason}>
        {about === undefined ? "" : missed ? "not reached" : about.summary}
        {about !== undefined && (about.calls ?? 0) > 1 && ` ×${about.calls}`}
      </span>
    </div>
  );
}

interface ChipProps extends Omit<ListingProps, "listing"> {
  operation: OperationView;
  stop: string;
  onFocus(site: string): void;
}

function Chip({ operation, ...props }: ChipProps) {
  const step = stepAt(props.steps, operation.site);
  const selected = props.selection?.site === operation.site;
  const target: Target = { site: operation.site, io: "output", argument: null, call: null, element: null };
  const never = operation.calls === 0;
  return (
    <button
      type="button"
      class="nnsl-chip"
      aria-pressed={selected}
      aria-disabled={props.disabled}
      aria-label={`${operation.label}${step ? `, ${stateText(step)}` : ""}${never ? ", not reached" : ""}`}
      title={`${operation.label}${never ? `\nnot reached: ${operation.reason}` : operation.summary ? `\n${operation.summary}` : ""}`}
      tabIndex={props.stop === operation.site ? 0 : -1}
      data-kind={step ? colourOf(step.kind) : undefined}
      data-off={step !== null && !step.enabled}
      data-never={never}
      data-sort={operation.kind}
      data-site={operation.site}
      data-peek={JSON.stringify(target)}
      onFocus={() => props.onFocus(operation.site)}
      onClick={() => !props.disabled && props.onSelect(operation)}
    >
      {operation.label}
    </button>
  );
}

function stateText(step: { kind: StepKind; enabled: boolean }): string {
  return step.enabled ? step.kind : `${step.kind} switched off`;
}
