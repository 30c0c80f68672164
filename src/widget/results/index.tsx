// What a run gave, in tabs.
import { type Lab, useLab } from "../../common/lab";

export function Results({ lab }: { lab: Lab }) {
  const { answer } = useLab(lab);
  return <section class="nnsl-results">{answer?.headline}</section>;
}
