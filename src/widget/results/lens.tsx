// The lens: what the model would answer if it ended after each layer, at each position. The colour is the probability
// of the token that is written in the cell.
import { useMemo, useRef, useState } from "preact/hooks";
import { ColourBar } from "../../common/colourbar";
import { inkOn, type Theme, valueColour } from "../../common/colours";
import { duration, probability, visibleToken } from "../../common/format";
import type { GridCell } from "../../common/gridkeys";
import { type Lab, useLab } from "../../common/lab";
import { useTheme } from "../../common/usetheme";
import type { ColourRange, LensGrid, StartLens } from "../../common/wire";
import { CellGrid, type CellLook } from "./cellgrid";
import { lensCsv } from "./csv";
import { ExportButtons } from "./export";
import { gridFigure } from "./gridfigure";
import { headings } from "./sweepcells";
import { useGrid } from "./usegrid";
import { Choice } from "./valuecontrols";

const SHARES: ColourRange = { low: 0, high: 1, beyond_low: 0, beyond_high: 0, smallest: 0, largest: 1 };

export function LensTab({ lab }: { lab: Lab }) {
  const { view, status } = useLab(lab);
  const [stream, setStream] = useState<StartLens["stream"]>("residual");
  const run = view?.shown_lens ?? null;
  const running = status?.work === "lens" || status?.waiting.includes("lens") === true;
  const progress = status?.work === "lens" ? String(status.done) : "at rest";
  const { shown, error } = useGrid(lab, "lens_grid", run, progress);
  return (
    <div class="nnsl-lens">
      <div class="nnsl-row">
        <Choice
          label="Stream"
          value={stream}
          onChange={(chosen) => setStream(chosen)}
          values={[
            ["residual", "residual stream", "what each layer hands on"],
            ["attention", "attention", "what each layer's attention adds"],
            ["mlp", "MLP", "what each layer's MLP adds"],
          ]}
        />
        {running ? (
          <button
            type="button"
            class="nnsl-button nnsl-push"
            onClick={() => void lab.act({ do: "cancel", work: "lens" })}
          >
            Cancel
          </button>
        ) : (
          <button
            type="button"
            class="nnsl-button nnsl-button-main nnsl-push"
            disabled={view?.model?.takes_text === false}
            onClick={() => void lab.act({ do: "start_lens", stream })}
          >
            Look through the lens
          </button>
        )}
      </div>
      <div class="nnsl-progress">
        {status?.work === "lens" && (
          <progress
            value={status.total > 0 ? status.done : undefined}
            max={status.total || undefined}
            aria-label="Lens"
          />
        )}
      </div>
      {error !== null && (
        <p class="nnsl-problem" role="alert">
          {error.message}
        </p>
      )}
      {run !== null && shown !== null && (
        <Grid lab={lab} grid={shown.grid} values={shown.values} current={shown.grid.run === run} />
      )}
      {run === null && !running && (
        <p class="nnsl-empty">
          {view?.model?.takes_text === false
            ? "The lens reads tokens off a language model; this model has none."
            : "The token that each layer is at, for each position of the base prompt."}
        </p>
      )}
    </div>
  );
}

export function lensCells(grid: LensGrid, values: Float32Array, theme: Theme): CellLook[][] {
  return grid.sites.map((site, row) =>
    grid.tokens.map((token, column) => {
      const share = values[row * grid.tokens.length + column] ?? Number.NaN;
      const top = visibleToken(grid.top[row]?.[column] ?? "");
      const colour = valueColour(theme, share, 0, 1);
      return {
        colour,
        ink: colour === null ? theme.ink : inkOn(colour),
        text: top,
        label: `${site} · position ${column} ${visibleToken(token)}: ${top}, probability ${probability(share)}`,
        marked: false,
      };
    }),
  );
}

interface Props {
  lab: Lab;
  grid: LensGrid;
  values: Float32Array;
  current: boolean;
}

function Grid({ lab, grid, values, current }: Props) {
  const root = useRef<HTMLDivElement>(null);
  const theme = useTheme(root);
  const [at, setAt] = useState<GridCell | null>(null);
  const cells = useMemo(() => lensCells(grid, values, theme), [grid, values, theme]);
  const rows = headings({ name: "site", size: grid.sites.length, labels: grid.sites });
  const columns = headings({ name: "position", size: grid.tokens.length, labels: grid.tokens });
  const figure = (look: Theme) =>
    gridFigure(
      {
        title: grid.title,
        notes: ["likeliest token; colour: its probability"],
        rows: rows.headings,
        columns: columns.headings,
        rowName: rows.name,
        columnName: "position",
        cells: lensCells(grid, values, look),
        colours: SHARES,
      },
      look,
    );
  const told = at === null ? null : cells[at.row]?.[at.column];
  return (
    <div ref={root} data-dimmed={!current} class="nnsl-grid-block">
      <div class="nnsl-row">
        <b class="nnsl-grid-title" title={grid.title}>
          {grid.title}
        </b>
        <span class="nnsl-dim nnsl-small">{duration(grid.seconds)}</span>
        <ExportButtons
          name={`${lab.state.view?.model?.name ?? ""} ${grid.title}`}
          figure={figure}
          csv={async () => lensCsv(grid, values)}
        />
      </div>
      <CellGrid
        label={grid.title}
        rows={rows.headings}
        columns={columns.headings}
        rowName={rows.name}
        columnName="position"
        cells={cells}
        least={54}
        onCell={setAt}
      />
      <div class="nnsl-grid-foot">
        <output class="nnsl-readout" aria-live="polite">
          {told?.label ?? ""}
        </output>
      </div>
      <ColourBar colours={SHARES} odd={null} theme={theme} />
    </div>
  );
}
