// What became of each step. The three ways of having no effect have a sign and a word each: the operation never ran;
// it ran and nothing after it depends on the edit; the edit changed less than rounding shows.
import { shapeText, significant } from "../../common/format";
import type { SiteReport } from "../../common/wire";

const SIGNS: Record<SiteReport["outcome"], string> = {
  captured: "●",
  changed: "✓",
  "never ran": "⊘",
  "no downstream effect": "⊣",
  "effect zero to rounding": "≈",
  disabled: "○",
};

const slug = (outcome: string) => outcome.replaceAll(" ", "-");

export function Reports({ reports }: { reports: readonly SiteReport[] }) {
  if (reports.length === 0) return null;
  return (
    <ul class="nnsl-reports" aria-label="What became of the steps">
      {reports.map((report) => (
        <li key={`${report.step} ${report.site} ${report.io}`} data-outcome={slug(report.outcome)}>
          <span class="nnsl-reports-sign" aria-hidden="true">
            {SIGNS[report.outcome]}
          </span>
          <span>
            <b>{report.outcome}</b>{" "}
            <code title={report.site}>
              {report.kind} {lastPart(report.site)}
            </code>{" "}
            <span class="nnsl-dim">{facts(report)}</span>
            <span class="nnsl-reports-message">{report.message}</span>
          </span>
        </li>
      ))}
    </ul>
  );
}

function lastPart(site: string): string {
  return site.split(".").at(-1) || "model";
}

function facts({ shape, entries, change, calls }: SiteReport): string {
  const parts: string[] = [];
  if (shape.length > 0) parts.push(shapeText(shape));
  if (calls > 1) parts.push(`${calls} calls`);
  if (entries > 0)
    parts.push(`${entries.toLocaleString("en")} ${entries === 1 ? "entry" : "entries"} edited`);
  if (change !== null) parts.push(`by up to ${significant(change, 3)}`);
  return parts.join(" · ");
}
