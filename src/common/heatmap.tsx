// A heatmap on a canvas: zoom with the wheel or + and -, pan by dragging or with shift and arrows, back to the whole
// with a double click or 0. The cell under the pointer, or under the cursor that arrow keys move, is told below. What is
// there is redrawn at once in its new place; sharper pictures follow (`shots.ts`).
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ColourBar } from "./colourbar";
import { counted } from "./format";
import { drawCursor, drawShots } from "./heatmapdraw";
import { cellAt, keyed, type Sight, wheelFactor } from "./heatmapinput";
import { axisOf, type Cell, readout } from "./readout";
import { panned, pointAt, type Region, sharpEnough, whole, zoomed } from "./region";
import { extentOf, type PictureSource, type Shot, type Shots, useShots } from "./shots";
import { axisTicks, entryText } from "./ticks";
import { useSize, useTheme } from "./usetheme";
import type { AxisView } from "./wire";

// Pixels between labels, wide enough for a number of five digits, and for a line of text.
const ACROSS_ROOM = 48;
const DOWN_ROOM = 15;

interface Props {
  source: PictureSource | null;
  label: string;
  /** Told what is on screen, for exports. */
  onShown?(shown: Shown | null): void;
  /** In place of the picture while there is none. */
  children?: ComponentChildren;
  dimmed?: boolean;
}

export interface Shown {
  shot: Shot;
  region: Region;
}

/** Where the pointer started to drag, and what was on screen then. */
interface Drag {
  x: number;
  y: number;
  region: Region;
  moved: boolean;
}

export function Heatmap({ source, label, onShown, children, dimmed = false }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme(frame);
  const screen = useSize(frame);
  const ratio = globalThis.devicePixelRatio || 1;
  const device = useMemo(
    () => ({ width: Math.round(screen.width * ratio), height: Math.round(screen.height * ratio) }),
    [screen, ratio],
  );
  const [region, setRegion] = useState<Region | null>(null);
  const [cursor, setCursor] = useState<Cell | null>(null);
  const [hovered, setHovered] = useState<Cell | null>(null);
  const drag = useRef<Drag | null>(null);
  // The wheel belongs to the page until the pointer has moved here: scrolling past must not zoom.
  const armed = useRef(false);
  const shots = useShots(source, region, device);
  const best = shots.overview;
  const extent = useMemo(() => (best === null ? null : extentOf(best)), [best]);
  const size = extent === null ? "" : `${extent.rows} ${extent.columns}`;
  const waiting = source !== null && (shots.key !== source.key || best === null) && shots.error === null;

  // What is on screen stays where another value of the same size is shown, so that two can be compared.
  // biome-ignore lint/correctness/useExhaustiveDependencies: by its size, not by the object.
  useLayoutEffect(() => {
    setRegion(extent === null ? null : whole(extent));
    setCursor(null);
    setHovered(null);
  }, [size]);

  const sight: Sight | null = region === null ? null : { region, cursor };
  const shown = hovered ?? cursor;
  const on = best === null || region === null ? null : sharpestAt(shots, region, device);

  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || best === null || region === null || device.width === 0) return;
    const make = () => canvas.current!.ownerDocument.createElement("canvas");
    const layers = shots.sharp === null ? [best] : [best, shots.sharp];
    drawShots(context, layers, region, theme, device, make);
    if (shown !== null) drawCursor(context, on ?? best, shown, region, device, ratio);
  }, [shots, best, region, theme, device, ratio, shown, on]);

  useEffect(() => {
    onShown?.(on !== null && region !== null ? { shot: on, region } : null);
  }, [on, region, onShown]);

  useEffect(() => {
    const element = frame.current;
    if (!element || region === null || extent === null) return;
    const onWheel = (event: WheelEvent) => {
      if (!armed.current || event.deltaY === 0) return;
      const at = pointOn(element, event, region);
      const next = zoomed(region, extent, at, wheelFactor(event.deltaY, event.deltaMode), screen);
      if (JSON.stringify(next) === JSON.stringify(region)) return;
      event.preventDefault();
      setRegion(next);
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [region, extent, screen]);

  const onPointerMove = (event: PointerEvent) => {
    if (event.movementX !== 0 || event.movementY !== 0) armed.current = true;
    if (region === null || extent === null) return;
    const held = drag.current;
    if (held !== null) {
      const across =
        (held.x - event.clientX) / (screen.width / (held.region.columns.to - held.region.columns.from));
      const down = (held.y - event.clientY) / (screen.height / (held.region.rows.to - held.region.rows.from));
      held.moved ||= Math.abs(held.x - event.clientX) + Math.abs(held.y - event.clientY) > 3;
      if (held.moved) setRegion(panned(held.region, extent, down, across));
    }
    const box = frame.current!.getBoundingClientRect();
    setHovered(cellAt(region, extent, screen, event.clientX - box.left, event.clientY - box.top));
  };
  const onPointerDown = (event: PointerEvent) => {
    if (event.button !== 0 || region === null) return;
    armed.current = true;
    drag.current = { x: event.clientX, y: event.clientY, region, moved: false };
    frame.current?.setPointerCapture?.(event.pointerId);
  };
  const onPointerUp = () => {
    if (drag.current !== null && !drag.current.moved) setCursor(hovered);
    drag.current = null;
  };
  const onPointerLeave = () => {
    armed.current = false;
    setHovered(null);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (sight === null || extent === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = {
      rows: Math.max(Math.ceil((sight.region.rows.to - sight.region.rows.from) / device.height), 1),
      columns: Math.max(Math.ceil((sight.region.columns.to - sight.region.columns.from) / device.width), 1),
    };
    const next = keyed(event.key, event.shiftKey, sight, extent, screen, step);
    if (next === null) return;
    event.preventDefault();
    event.stopPropagation();
    setHovered(null);
    setRegion(next.region);
    setCursor(next.cursor);
  };

  const rows = best === null ? null : axisOf(best.picture, best.picture.slice.row_axis);
  const columns = best === null ? null : axisOf(best.picture, best.picture.slice.column_axis);
  const told = on === null || shown === null ? null : readout(on.picture, on.values, shown);
  return (
    <div
      class="nnsl-heatmap"
      style={{ "--nnsl-row-labels": `${gutter(rows)}px` }}
      data-waiting={waiting}
      data-dimmed={dimmed || waiting || shots.error !== null}
    >
      <div class="nnsl-heatmap-rows" aria-hidden="true">
        {rows !== null && region !== null && <DownTicks axis={rows} region={region} pixels={screen.height} />}
      </div>
      <div
        ref={frame}
        class="nnsl-heatmap-frame"
        role="application"
        aria-roledescription="heatmap"
        aria-label={`${label}. Arrow keys move the cursor, plus and minus zoom, 0 shows all.`}
        aria-busy={waiting}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keys move its cursor.
        tabIndex={0}
        onPointerMove={onPointerMove}
        onPointerDown={onPointerDown}
        onPointerUp={onPointerUp}
        onPointerCancel={onPointerUp}
        onPointerLeave={onPointerLeave}
        onDblClick={() => extent !== null && setRegion(whole(extent))}
        onKeyDown={onKeyDown}
      >
        <canvas ref={canvas} width={device.width} height={device.height} />
        {best === null && <div class="nnsl-heatmap-empty">{shots.error === null && children}</div>}
        {shots.error !== null && (
          <p class="nnsl-problem" role="alert">
            {shots.error.message}
          </p>
        )}
      </div>
      <div class="nnsl-heatmap-columns" aria-hidden="true">
        {columns !== null && region !== null && (
          <AcrossTicks axis={columns} region={region} pixels={screen.width} />
        )}
      </div>
      <div class="nnsl-heatmap-foot">
        <output class="nnsl-readout" aria-live="polite">
          {told !== null ? (
            <>
              <b>{told.value}</b> {told.places}
              {told.pooled !== "" && <span class="nnsl-dim"> · {told.pooled}</span>}
            </>
          ) : (
            <span class="nnsl-dim">{hint(best, region)}</span>
          )}
        </output>
      </div>
      {best !== null && <ColourBar colours={best.picture.colours} odd={best.picture.odd} theme={theme} />}
    </div>
  );
}

/** Width of the row labels, of the whole axis, so that zooming does not change it. */
function gutter(axis: AxisView | null): number {
  if (axis === null || axis.name === "") return 8;
  const last = entryText(axis, axis.size - 1).length;
  const longest = axis.labels.reduce((most, _, entry) => Math.max(most, entryText(axis, entry).length), last);
  return Math.min(longest * 6.4 + 4, 84);
}

function pointOn(element: Element, event: MouseEvent, region: Region) {
  const box = element.getBoundingClientRect();
  return pointAt(region, {
    x: (event.clientX - box.left) / box.width,
    y: (event.clientY - box.top) / box.height,
  });
}

/** The sharp picture where it has what is on screen, else the overview. */
function sharpestAt({ overview, sharp }: Shots, region: Region, device: { width: number; height: number }) {
  if (sharp !== null && sharpEnough(region, sharp.picture.window, sharp.picture, device)) return sharp;
  return overview;
}

function hint(shot: Shot | null, region: Region | null): string {
  if (shot === null || region === null) return "\u00a0";
  const { rows, columns } = extentOf(shot);
  const name = (axis: number | null, size: number) => {
    const found = axisOf(shot.picture, axis).name;
    if (found === "") return "";
    return found.includes(" ") ? `${size.toLocaleString("en")} ${found}` : counted(size, found);
  };
  const { row_axis, column_axis } = shot.picture.slice;
  return [name(row_axis, rows), name(column_axis, columns)].filter((text) => text !== "").join(" × ");
}

function DownTicks({ axis, region, pixels }: { axis: AxisView; region: Region; pixels: number }) {
  if (axis.name === "") return null;
  return (
    <>
      {axisTicks(axis, region.rows, pixels, DOWN_ROOM).map(({ at, entry, text }) => (
        <span key={entry} style={{ top: `${at}px` }} title={text}>
          {text}
        </span>
      ))}
    </>
  );
}

function AcrossTicks({ axis, region, pixels }: { axis: AxisView; region: Region; pixels: number }) {
  if (axis.name === "") return null;
  return (
    <>
      {axisTicks(axis, region.columns, pixels, ACROSS_ROOM).map(({ at, entry, text }) => (
        <span key={entry} style={{ left: `${at}px` }} title={text}>
          {text}
        </span>
      ))}
    </>
  );
}
