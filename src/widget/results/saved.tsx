// The small picture that is saved with a notebook, for a page without kernel.
import { useMemo } from "preact/hooks";
import { shapeText } from "../../common/format";
import { Heatmap } from "../../common/heatmap";
import { floatsOfBase64 } from "../../common/paint";
import type { PictureSource, Shot } from "../../common/shots";
import type { Snapshot } from "../../common/wire";

/** The snapshot as the picture it is: what is known of it is its cells and its colours. */
export function shotOf(snapshot: Snapshot): Shot {
  const { rows, columns, low, high, target, label, shape } = snapshot;
  return {
    values: floatsOfBase64(snapshot.data),
    picture: {
      id: "",
      kind: "picture",
      run: "",
      target,
      which: "edited",
      label,
      dtype: "",
      shape,
      axes: [
        { name: "row", size: rows, labels: [] },
        { name: "column", size: columns, labels: [] },
      ],
      slice: { row_axis: 0, column_axis: 1, index: [] },
      window: { row: 0, row_end: rows, column: 0, column_end: columns },
      rows,
      columns,
      pooling: "extreme",
      colours: { low, high, beyond_low: 0, beyond_high: 0, smallest: low, largest: high },
      odd: { nan: 0, positive_infinity: 0, negative_infinity: 0 },
    },
  };
}

export function SavedPicture({ snapshot }: { snapshot: Snapshot }) {
  const source = useMemo<PictureSource>(() => {
    const shot = shotOf(snapshot);
    return { key: snapshot.data, ask: async () => shot };
  }, [snapshot]);
  return (
    <div class="nnsl-activation">
      <div class="nnsl-row">
        <span class="nnsl-value-name" title={snapshot.target.site}>
          <b>{snapshot.label}</b>{" "}
          <span class="nnsl-dim">{`${shapeText(snapshot.shape)} · as saved, reduced`}</span>
        </span>
      </div>
      <Heatmap source={source} label={`${snapshot.label}, as saved`} />
    </div>
  );
}
