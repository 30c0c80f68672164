// A prompt as a strip of tokens on which positions are chosen, by mouse (click, shift, drag) and by keyboard.
import { useRef, useState } from "preact/hooks";
import { visibleToken } from "./format";
import type { TokenText } from "./wire";

export interface TokenStripProps {
  name: string;
  tokens: readonly TokenText[];
  /** Positions chosen; null for all of them. */
  chosen: readonly number[] | null;
  /** Positions that have no counterpart in the other prompt, and why. */
  unmatched?: readonly number[];
  unmatchedReason?: string;
  /** The position whose counterpart is looked at. */
  linked: number | null;
  kind: string | null;
  disabled: boolean;
  onChoose(positions: number[]): void;
  onLook(position: number | null): void;
}

/** Positions from one to another, both included. */
export function range(from: number, to: number): number[] {
  const [low, high] = from < to ? [from, to] : [to, from];
  return Array.from({ length: high - low + 1 }, (_, i) => low + i);
}

/** What a click on a position chooses. A click on the only chosen one chooses none, which is all. */
export function clicked(
  chosen: readonly number[],
  position: number,
  anchor: number | null,
  keys: { shift: boolean; add: boolean },
): number[] {
  if (keys.shift && anchor !== null) return range(anchor, position);
  if (keys.add) {
    return chosen.includes(position) ? chosen.filter((one) => one !== position) : [...chosen, position];
  }
  return chosen.length === 1 && chosen[0] === position ? [] : [position];
}

export function TokenStrip(props: TokenStripProps) {
  const { tokens, disabled, onChoose } = props;
  const strip = useRef<HTMLDivElement>(null);
  const anchor = useRef<number | null>(null);
  const dragging = useRef(false);
  const [dragged, setDragged] = useState<number[] | null>(null);
  const [focused, setFocused] = useState(0);
  const chosen = dragged ?? props.chosen ?? [];
  const stop = Math.min(focused, tokens.length - 1);

  const positionAt = (event: Event): number | null => {
    const element = (event.target as Element).closest("[data-position]");
    return element === null ? null : Number(element.getAttribute("data-position"));
  };
  const focus = (position: number) => {
    setFocused(position);
    strip.current?.querySelector<HTMLElement>(`[data-position="${position}"]`)?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const to = {
      ArrowLeft: stop - 1,
      ArrowRight: stop + 1,
      Home: 0,
      End: tokens.length - 1,
    }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      const next = Math.min(Math.max(to, 0), tokens.length - 1);
      focus(next);
      if (event.shiftKey && !disabled) {
        anchor.current ??= stop;
        onChoose(range(anchor.current, next));
      } else if (!event.shiftKey) {
        anchor.current = next;
      }
    } else if ((event.key === " " || event.key === "Enter") && !disabled) {
      event.preventDefault();
      event.stopPropagation();
      anchor.current = stop;
      onChoose(clicked(props.chosen ?? [], stop, null, { shift: false, add: event.key === " " }));
    } else if (event.key === "Escape" && props.chosen !== null && !disabled) {
      event.stopPropagation();
      onChoose([]);
    }
  };

  return (
    <div
      ref={strip}
      class="nnsl-strip"
      role="listbox"
      aria-multiselectable="true"
      aria-label={props.name}
      aria-disabled={disabled}
      data-kind={props.kind ?? undefined}
      onKeyDown={onKeyDown}
      onPointerDown={(event) => {
        const position = positionAt(event);
        if (
          position === null ||
          disabled ||
          event.button !== 0 ||
          event.shiftKey ||
          event.ctrlKey ||
          event.metaKey
        )
          return;
        anchor.current = position;
        dragging.current = true;
      }}
      onPointerMove={(event) => {
        const position = positionAt(event);
        props.onLook(position);
        if (!dragging.current || position === null || anchor.current === null) return;
        if (position !== anchor.current || dragged !== null) setDragged(range(anchor.current, position));
      }}
      onPointerUp={() => {
        dragging.current = false;
        if (dragged !== null) onChoose(dragged);
      }}
      onPointerLeave={() => {
        props.onLook(null);
        dragging.current = false;
        setDragged(null);
      }}
      onClick={(event) => {
        const position = positionAt(event);
        if (position === null || disabled) return;
        if (dragged !== null) {
          setDragged(null);
          return;
        }
        const keys = { shift: event.shiftKey, add: event.ctrlKey || event.metaKey };
        onChoose(clicked(props.chosen ?? [], position, anchor.current, keys));
        if (!event.shiftKey) anchor.current = position;
      }}
    >
      {tokens.map(({ text, id }, position) => {
        const unmatched = props.unmatched?.includes(position) ?? false;
        return (
          <span
            key={position}
            role="option"
            class="nnsl-token"
            data-position={position}
            data-linked={props.linked === position}
            data-unmatched={unmatched}
            aria-selected={chosen.includes(position)}
            aria-label={`${visibleToken(text)}, position ${position}`}
            title={`position ${position}, token ${id}${unmatched ? `\n${props.unmatchedReason}` : ""}`}
            tabIndex={position === stop ? 0 : -1}
            onFocus={() => {
              setFocused(position);
              props.onLook(position);
            }}
            onBlur={() => props.onLook(null)}
          >
            {visibleToken(text)}
          </span>
        );
      })}
    </div>
  );
}
