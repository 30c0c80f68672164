// A grid of coloured cells that keys walk through: sweeps and lenses. The first row stands at the bottom, so that layers
// run upwards. Rows are drawn anew only where their cells or the focus changed, so that a sweep can grow cell by cell.
import { Component } from "preact";
import { useRef, useState } from "preact/hooks";
import { type GridCell, gridStep } from "../../common/gridkeys";
import { useSize } from "../../common/usetheme";

export interface Heading {
  text: string;
  title: string;
}

export interface CellLook {
  /** Background; null for a cell without value. */
  colour: string | null;
  ink: string;
  text: string;
  /** What a screen reader says. */
  label: string;
  marked: boolean;
}

interface Props {
  label: string;
  rows: readonly Heading[];
  columns: readonly Heading[];
  rowName: string;
  columnName: string;
  /** By row, then by column. */
  cells: ReadonlyArray<readonly CellLook[]>;
  /** Least width of a cell in pixels. */
  least: number;
  busy?: boolean;
  /** The cell under the pointer or the focus. */
  onCell(cell: GridCell | null): void;
  onTake?: (cell: GridCell) => void;
}

// Width of a letter of the headings in pixels, and of the rows' headings.
const LETTER = 6.6;
const WIDEST_HEADING = 130;

export function CellGrid(props: Props) {
  const { rows, columns, cells, onCell, onTake } = props;
  const frame = useRef<HTMLDivElement>(null);
  const { width } = useSize(frame);
  const [stop, setStop] = useState<GridCell>({ row: Math.max(rows.length - 1, 0), column: 0 });
  const focus = {
    row: Math.min(stop.row, rows.length - 1),
    column: Math.min(stop.column, columns.length - 1),
  };
  const longest = (headings: readonly Heading[]) =>
    Math.max(0, ...headings.map(({ text }) => [...text].length));
  const aside = Math.min(longest(rows) * LETTER + 10, WIDEST_HEADING);
  const cellWidth = Math.max((width - aside) / Math.max(columns.length, 1), props.least);
  const upright = longest(columns) * LETTER + 4 > cellWidth;

  const cellOf = (target: EventTarget | null): GridCell | null => {
    const cell = target instanceof Element ? target.closest<HTMLElement>("[data-cell]") : null;
    if (!cell) return null;
    const [row, column] = cell.dataset.cell!.split(" ").map(Number) as [number, number];
    return { row, column };
  };
  const goTo = (cell: GridCell) => {
    setStop(cell);
    const selector = `[data-cell="${cell.row} ${cell.column}"]`;
    frame.current?.querySelector<HTMLElement>(selector)?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const at = cellOf(event.target);
    if (at === null || event.altKey || event.metaKey) return;
    if ((event.key === "Enter" || event.key === " ") && onTake !== undefined) {
      event.preventDefault();
      onTake(at);
      return;
    }
    const to = gridStep(event.key, event.ctrlKey, at, rows.length, columns.length, true);
    if (to === null) return;
    event.preventDefault();
    goTo(to);
  };

  const order = rows.map((_, number) => rows.length - 1 - number);
  return (
    <div class="nnsl-grid-frame" ref={frame}>
      <table
        class="nnsl-grid"
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: an ARIA grid of a table's elements.
        role="grid"
        aria-label={props.label}
        aria-busy={props.busy === true}
        data-upright={upright}
        data-takes={onTake !== undefined}
        style={{ "--nnsl-aside": `${aside}px`, minWidth: `${aside + columns.length * props.least}px` }}
        onKeyDown={onKeyDown}
        onPointerOver={(event) => onCell(cellOf(event.target))}
        onPointerLeave={() => onCell(null)}
        onFocusCapture={(event) => {
          const cell = cellOf(event.target);
          if (cell !== null) setStop(cell);
          onCell(cell);
        }}
        onBlurCapture={() => onCell(null)}
        onClick={(event) => {
          const cell = cellOf(event.target);
          if (cell === null) return;
          goTo(cell);
          onTake?.(cell);
        }}
      >
        <colgroup>
          <col class="nnsl-grid-aside" />
          {columns.map(({ title }, column) => (
            <col key={`${column} ${title}`} />
          ))}
        </colgroup>
        <tbody>
          {order.map((row) => (
            <Row
              key={rows[row]!.title}
              number={row}
              heading={rows[row]!}
              cells={cells[row]!}
              stop={focus.row === row ? focus.column : null}
            />
          ))}
        </tbody>
        <tfoot>
          <tr>
            <td />
            {columns.map(({ text, title }, column) => (
              <th key={`${column} ${title}`} scope="col" title={title}>
                <span>{text}</span>
              </th>
            ))}
          </tr>
        </tfoot>
      </table>
      <p class="nnsl-grid-axes" title={`rows: ${props.rowName}, columns: ${props.columnName}`}>
        {props.rowName} ↑ · {props.columnName} →
      </p>
    </div>
  );
}

interface RowProps {
  number: number;
  heading: Heading;
  cells: readonly CellLook[];
  /** Column of the grid's tab stop, where it is in this row. */
  stop: number | null;
}

class Row extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    const { cells, stop, heading, number } = this.props;
    return (
      next.cells !== cells ||
      next.stop !== stop ||
      next.number !== number ||
      next.heading.text !== heading.text
    );
  }

  override render({ number, heading, cells, stop }: RowProps) {
    return (
      <tr>
        <th scope="row" title={heading.title}>
          {heading.text}
        </th>
        {cells.map(({ colour, ink, text, label, marked }, column) => (
          <td
            key={column}
            // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: as above.
            role="gridcell"
            data-cell={`${number} ${column}`}
            data-marked={marked}
            data-missing={colour === null}
            tabIndex={column === stop ? 0 : -1}
            aria-label={label}
            style={colour === null ? undefined : { background: colour, color: ink }}
          >
            {text}
          </td>
        ))}
      </tr>
    );
  }
}
