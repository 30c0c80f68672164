// A value as a debugger would show it.
import type { Lab } from "./lab";
import type { Target } from "./wire";

export function PeekCard({ target }: { lab: Lab; target: Target }) {
  return <div class="nnsl-peek">{target.site}</div>;
}
