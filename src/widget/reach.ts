// Whether the page can change anything now, and if not, why: without a kernel everything can be read and nothing done.
import type { Lab } from "../common/lab";

export function whyNot(lab: Lab): string {
  return lab.connection.state === "closed"
    ? "There is no kernel: this is the last state, to be read only."
    : "";
}
