// A sweep: what to sweep, how far it is, and its cells, each of which is a step that can be taken over.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ColourBar } from "../../common/colourbar";
import type { Theme } from "../../common/colours";
import { duration, significant } from "../../common/format";
import type { GridCell } from "../../common/gridkeys";
import { type Lab, useLab } from "../../common/lab";
import { shortNames } from "../../common/ticks";
import { useTheme } from "../../common/usetheme";
import type { SweepGrid } from "../../common/wire";
import { CellGrid } from "./cellgrid";
import { sweepCsv } from "./csv";
import { ExportButtons } from "./export";
import { gridFigure } from "./gridfigure";
import type { Pick } from "./picking";
import {
  bestCell,
  cellNumbers,
  cellPlace,
  cellWords,
  headings,
  sweepCells,
  sweepPick,
  valueWords,
} from "./sweepcells";
import { SweepControls } from "./sweepcontrols";
import { useGrid } from "./usegrid";
import { AxisPickers } from "./valuecontrols";

export function SweepTab({ lab }: { lab: Lab }) {
  const { view, status } = useLab(lab);
  const run = view?.shown_sweep ?? null;
  const running = status?.work === "sweep";
  const progress = running ? `${status.done} of ${status.total}` : "at rest";
  const { shown, error, late } = useGrid(lab, "sweep_grid", run, progress);
  return (
    <div class="nnsl-sweep">
      <SweepControls lab={lab} />
      <div class="nnsl-progress">
        {running && (
          <>
            <progress
              value={status.total > 0 ? status.done : undefined}
              max={status.total || undefined}
              aria-label="Sweep"
            />
            <span>{status.total > 0 ? `${status.done} of ${status.total} ${status.unit}` : "beginning"}</span>
          </>
        )}
      </div>
      {error !== null && (
        <p class="nnsl-problem" role="alert">
          {error.message}
        </p>
      )}
      {run !== null && shown !== null && (
        <Grid
          lab={lab}
          grid={shown.grid}
          values={shown.values}
          busy={running || late}
          current={shown.grid.run === run}
        />
      )}
      {run === null && !running && (
        <p class="nnsl-empty">A cell for each place, coloured by what the step does to the answer there.</p>
      )}
    </div>
  );
}

interface Props {
  lab: Lab;
  grid: SweepGrid;
  values: Float32Array;
  /** Whether more cells are coming. */
  busy: boolean;
  /** False while another sweep's cells are on their way. */
  current: boolean;
}

function Grid({ lab, grid, values, busy, current }: Props) {
  const root = useRef<HTMLDivElement>(null);
  const theme = useTheme(root);
  const [pick, setPick] = useState<Pick>(() => sweepPick(grid.axes));
  const [at, setAt] = useState<GridCell | null>(null);
  const shape = grid.axes.map(({ name, size }) => `${name} ${size}`).join();
  // biome-ignore lint/correctness/useExhaustiveDependencies: when the grid has other axes.
  useEffect(() => setPick(sweepPick(grid.axes)), [shape]);

  // A new grid is brought to the top of the pane, whose controls would leave it little room.
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each sweep.
  useLayoutEffect(() => {
    const block = root.current;
    const pane = block?.closest(".nnsl-side");
    if (!block || !pane) return;
    pane.scrollTop += block.getBoundingClientRect().top - pane.getBoundingClientRect().top - 8;
  }, [grid.run]);

  const { axes, baseline, source_value } = grid;
  const best = useMemo(() => bestCell(grid, values), [grid, values]);
  const cells = useMemo(() => sweepCells(grid, values, pick, best, theme), [grid, values, pick, best, theme]);
  const rows = headings(axes[pick.row ?? 0]);
  const columns = headings(pick.column === null ? undefined : axes[pick.column]);
  const take = (cell: number[]) => void lab.act({ do: "take_cell", run: grid.run, cell });
  const shown = at === null ? (best?.cell ?? null) : cellNumbers(axes, pick, at.row, at.column);
  const value = shown === null ? Number.NaN : (values[cellPlace(axes, shown)] ?? Number.NaN);
  const placeWords = (cell: number[]) => {
    const site = axes.findIndex(({ name }) => name === "site");
    const { short, pattern } = shortNames(axes[site]?.labels ?? []);
    if (pattern === "") return cellWords(axes, cell);
    const layer = pattern.split(".").at(pattern.split(".").indexOf("*") - 1) ?? "";
    const named = axes.map((axis, number) =>
      number === site
        ? { ...axis, labels: short.map((text) => (layer === "*" ? text : `${layer}.${text}`)) }
        : axis,
    );
    return cellWords(named, cell);
  };
  const metricLine = [
    grid.metric,
    baseline === null ? "" : `clean ${significant(baseline)}`,
    source_value === null ? "" : `source ${significant(source_value)}`,
  ].filter((text) => text !== "");
  const figure = (look: Theme) =>
    gridFigure(
      {
        title: grid.title,
        notes: [metricLine.join(" · "), ...grid.notes],
        rows: rows.headings,
        columns: columns.headings,
        rowName: rows.name,
        columnName: columns.name,
        cells: sweepCells(grid, values, pick, best, look),
        colours: grid.colours,
      },
      look,
    );

  return (
    <div ref={root} data-dimmed={!current} class="nnsl-grid-block">
      <div class="nnsl-row">
        <b class="nnsl-grid-title" title={grid.title}>
          {grid.title}
        </b>
        <ExportButtons
          name={`${lab.state.view?.model?.name ?? ""} sweep ${grid.title}`}
          figure={figure}
          csv={async () => sweepCsv(axes, values, baseline)}
        />
      </div>
      <div class="nnsl-row nnsl-dim nnsl-small">
        <span>{metricLine.join(" · ")}</span>
        <span>
          {grid.done < grid.total ? `${grid.done} of ${grid.total} cells · ` : ""}
          {duration(grid.seconds)}
        </span>
      </div>
      {axes.filter(({ size }) => size > 1).length > 2 && (
        <div class="nnsl-row">
          <AxisPickers axes={axes} pick={pick} onChange={setPick} />
        </div>
      )}
      <CellGrid
        label={`${grid.title}. Enter makes a cell the active step.`}
        rows={rows.headings}
        columns={columns.headings}
        rowName={rows.name}
        columnName={columns.name}
        cells={cells}
        least={22}
        busy={busy}
        onCell={setAt}
        onTake={(cell) => take(cellNumbers(axes, pick, cell.row, cell.column))}
      />
      <div class="nnsl-grid-foot">
        <output class="nnsl-readout" aria-live="polite">
          {shown !== null && (
            <>
              <span>
                {at === null && <span class="nnsl-dim">largest </span>}
                <b>{valueWords(value, baseline)}</b>
              </span>
              <span class="nnsl-dim" title={cellWords(axes, shown)}>
                {placeWords(shown)}
              </span>
            </>
          )}
        </output>
        {best !== null && (
          <button
            type="button"
            class="nnsl-link"
            title={`Make the cell of the largest effect the active step: ${cellWords(axes, best.cell)}`}
            onClick={() => take(best.cell)}
          >
            Take largest
          </button>
        )}
      </div>
      <ColourBar colours={grid.colours} odd={null} theme={theme} />
      {grid.notes.length > 0 && (
        <ul class="nnsl-notes" aria-label="Notes">
          {grid.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
    </div>
  );
}
