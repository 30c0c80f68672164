// Every run, named by what changed.
import { type Lab, useLab } from "../common/lab";

export function HistoryBar({ lab }: { lab: Lab }) {
  const { history } = useLab(lab);
  return <section class="nnsl-history">{history?.entries.length ?? 0}</section>;
}
