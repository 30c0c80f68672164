// Light or dark, as the host is: each says it in its own way, and one that says nothing is judged by the colour behind
// the widget.
import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

type Mode = "light" | "dark";

function said(element: Element): Mode | null {
  const { body, documentElement } = element.ownerDocument;
  const jupyter = body.getAttribute("data-jp-theme-light");
  if (jupyter !== null) return jupyter === "true" ? "light" : "dark";
  if (/\bvscode-(dark|high-contrast)\b/.test(body.className) && !/high-contrast-light/.test(body.className))
    return "dark";
  if (/\bvscode-/.test(body.className)) return "light";
  for (const node of [body, documentElement]) {
    const theme = node.getAttribute("data-theme") ?? node.getAttribute("theme");
    if (theme === "dark" || theme === "light") return theme;
    if (node.classList.contains("dark")) return "dark";
    if (node.classList.contains("light")) return "light";
  }
  return null;
}

function behind(element: Element): Mode {
  for (let node: Node | null = element.parentNode; node !== null; ) {
    if (node instanceof Element) {
      const colour = getComputedStyle(node)
        .backgroundColor.match(/[\d.]+/g)
        ?.map(Number);
      if (colour !== undefined && (colour[3] ?? 1) > 0) {
        const [red, green, blue] = colour as [number, number, number];
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 128 ? "dark" : "light";
      }
      node = node.parentNode;
    } else {
      node = node instanceof ShadowRoot ? node.host : node.parentNode;
    }
  }
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** The host's mode, now and when it changes. */
export function useHostTheme(inside: RefObject<Element>): Mode {
  const [mode, setMode] = useState<Mode>("light");
  useLayoutEffect(() => {
    const element = inside.current;
    if (element === null) return;
    const look = () => setMode(said(element) ?? behind(element));
    look();
    const observer = new MutationObserver(look);
    const { body, documentElement } = element.ownerDocument;
    for (const node of [body, documentElement]) observer.observe(node, { attributes: true });
    return () => observer.disconnect();
  }, [inside]);
  return mode;
}
