// The Python code of what is on screen.
import { type Lab, useLab } from "../common/lab";

export function CodePane({ lab }: { lab: Lab }) {
  const { code } = useLab(lab);
  return <pre class="nnsl-code">{code?.code}</pre>;
}
