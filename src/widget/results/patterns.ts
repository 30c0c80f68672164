// Which sites a sweep can go over, from the site of its step; and tokens as people type them.

export interface Pattern {
  pattern: string;
  text: string;
}

/**
 * Patterns to offer for a step at `site`. `layers` is the model's own, `transformer.h.*`; empty where there are no
 * layers.
 */
export function sitePatterns(site: string, layers: string): Pattern[] {
  const found: Pattern[] = [];
  const [before, after] = layers.split("*");
  if (layers !== "" && before !== undefined && after !== undefined && site.startsWith(before)) {
    const rest = site.slice(before.length).replace(/^\d+/, "");
    if (rest !== site.slice(before.length) && rest.startsWith(after)) {
      found.push({ pattern: `${before}*${rest}`, text: "this site in every layer" });
    }
  }
  if (layers !== "") found.push({ pattern: layers, text: "output of every layer" });
  found.push({ pattern: site, text: "this site only" });
  return found.filter(({ pattern }, number) => found.findIndex((one) => one.pattern === pattern) === number);
}

/** A token as typed, in which ␣ stands for a space, ↵ for a line end and ⇥ for a tab. */
export function typedToken(text: string): string {
  return text.replaceAll("␣", " ").replaceAll("↵", "\n").replaceAll("⇥", "\t");
}
