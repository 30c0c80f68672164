// Light or dark, for what is drawn on a canvas: CSS alone does not reach there.
import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { THEMES, type Theme, type ThemeName } from "./colours";

/** The theme of the widget that the element is in, as it is now and when it changes. */
export function useTheme(inside: RefObject<Element>): Theme {
  const [name, setName] = useState<ThemeName>("light");
  useLayoutEffect(() => {
    const root = inside.current?.closest(".nnsl");
    if (!root) return;
    const look = () => setName(root.getAttribute("data-theme") === "dark" ? "dark" : "light");
    look();
    const observer = new MutationObserver(look);
    observer.observe(root, { attributes: true, attributeFilter: ["data-theme"] });
    return () => observer.disconnect();
  }, [inside]);
  return THEMES[name];
}

/** Size of an element in CSS pixels; 0 before it is laid out. */
export function useSize(of: RefObject<Element>): { width: number; height: number } {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = of.current;
    if (!element) return;
    const look = () => {
      const { clientWidth: width, clientHeight: height } = element;
      setSize((old) => (old.width === width && old.height === height ? old : { width, height }));
    };
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, [of]);
  return size;
}
