// The pictures of one heatmap: an overview of the whole, and a sharp one of the part that is on screen. Both stay until
// better ones are there, so that there is always something to show; while a part is moved about, what is there is
// shown moved, and a sharp picture is asked for when it comes to rest.
import { useEffect, useRef, useState } from "preact/hooks";
import { Latest } from "./latest";
import { axisOf } from "./readout";
import { type Asked, asked, type Extent, type Region, sharpEnough } from "./region";
import type { Picture, Window } from "./wire";

/** A picture as it came. */
export interface Shot {
  picture: Picture;
  values: Float32Array;
}

/** Where pictures come from. `key` is another when what is shown is another. */
export interface PictureSource {
  key: string;
  ask(window: Window | null, height: number, width: number): Promise<Shot>;
}

export interface Shots {
  overview: Shot | null;
  sharp: Shot | null;
  /** Key of the source that they are of. */
  key: string;
  error: Error | null;
}

export const NO_SHOTS: Shots = { overview: null, sharp: null, key: "", error: null };

export function extentOf({ picture }: Shot): Extent {
  return {
    rows: axisOf(picture, picture.slice.row_axis).size,
    columns: axisOf(picture, picture.slice.column_axis).size,
  };
}

interface Wanted {
  source: PictureSource;
  part: Asked | null;
  height: number;
  width: number;
}

/** What there is after a picture has arrived. */
export function withShot(shots: Shots, key: string, part: boolean, shot: Shot): Shots {
  if (!part) return { overview: shot, sharp: null, key, error: null };
  return key === shots.key ? { ...shots, sharp: shot, error: null } : shots;
}

const REST_MS = 70;

interface Device {
  width: number;
  height: number;
}

/** Keeps pictures for what is on screen; `region` null is the whole. */
export function useShots(source: PictureSource | null, region: Region | null, device: Device): Shots {
  const [shots, setShots] = useState<Shots>(NO_SHOTS);
  const latest = useRef<Latest<Wanted, Shot> | null>(null);
  const current = useRef(source);
  current.current = source;

  useEffect(() => {
    const queue = new Latest<Wanted, Shot>(
      ({ source: from, part, height, width }) =>
        part === null ? from.ask(null, height, width) : from.ask(part.window, part.height, part.width),
      (shot, { source: from, part }) => {
        if (from.key === current.current?.key) {
          setShots((old) => withShot(old, from.key, part !== null, shot));
        }
      },
      (error, { source: from }) => {
        if (error.name === "RequestDropped" || from.key !== current.current?.key) return;
        setShots((old) => ({ ...old, key: from.key, error }));
      },
    );
    latest.current = queue;
    return () => queue.dispose();
  }, []);

  const ready = device.width > 0 && device.height > 0;
  const key = source?.key;
  // biome-ignore lint/correctness/useExhaustiveDependencies: again for another value or a much larger screen only.
  useEffect(() => {
    if (source !== null && ready) latest.current?.want({ source, part: null, ...device });
  }, [key, ready, Math.ceil(device.width / 256), Math.ceil(device.height / 256)]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the source by its key.
  useEffect(() => {
    const { overview, sharp, error } = shots;
    if (source === null || region === null || overview === null || shots.key !== key || error !== null)
      return;
    const extent = extentOf(overview);
    const shows = ({ picture }: Shot) => sharpEnough(region, picture.window, picture, device);
    if (shows(overview) || (sharp !== null && shows(sharp))) return;
    latest.current?.want({ source, part: asked(region, extent, device), ...device }, REST_MS);
  }, [key, region, shots, device]);

  return shots;
}
