import { type Lab, useLab } from "../common/lab";

export function App({ lab }: { lab: Lab }) {
  const { view } = useLab(lab);
  return <section class="nnsl">{view === null ? "Waiting for the kernel" : view.module}</section>;
}
