// The buttons that save a picture: PNG and SVG of what is on screen, CSV of the data behind it.
import { useRef, useState } from "preact/hooks";
import { THEMES, type Theme } from "../../common/colours";
import { download, fileName } from "../../common/download";
import type { Figure } from "../../common/figure";
import { pngOf, svgOf } from "../../common/figurecanvas";

const KINDS = ["PNG", "SVG", "CSV"] as const;
type Kind = (typeof KINDS)[number];

interface Props {
  /** What the picture shows, for the file's name. */
  name: string;
  figure(theme: Theme): Figure | null;
  csv(): Promise<string>;
}

export function ExportButtons({ name, figure, csv }: Props) {
  const root = useRef<HTMLFieldSetElement>(null);
  const [busy, setBusy] = useState<Kind | null>(null);
  const [error, setError] = useState("");

  const save = async (kind: Kind) => {
    const near = root.current!;
    const page = near.ownerDocument;
    setBusy(kind);
    setError("");
    try {
      if (kind === "CSV") {
        download(near, new Blob([await csv()], { type: "text/csv;charset=utf-8" }), fileName(name, "csv"));
        return;
      }
      const dark = near.closest(".nnsl")?.getAttribute("data-theme") === "dark";
      const made = figure(dark ? THEMES.dark : THEMES.light);
      if (made === null) throw new Error("There is no picture to save yet.");
      const content = kind === "PNG" ? await pngOf(made, page) : svgOf(made, page);
      download(near, content, fileName(name, kind.toLowerCase()));
    } catch (problem) {
      setError((problem as Error).message);
    } finally {
      setBusy(null);
    }
  };

  return (
    <fieldset class="nnsl-export" ref={root}>
      <legend class="nnsl-hidden">Save</legend>
      {KINDS.map((kind) => (
        <button
          key={kind}
          type="button"
          class="nnsl-link"
          disabled={busy !== null}
          title={kind === "CSV" ? "Save the whole data as CSV" : `Save what is on screen as ${kind}`}
          onClick={() => void save(kind)}
        >
          {kind}
        </button>
      ))}
      {error !== "" && (
        <span class="nnsl-problem" role="alert">
          {error}
        </span>
      )}
    </fieldset>
  );
}
