// The answer of a run: the table of its likeliest tokens, what the edits changed in numbers, and what became of each
// step. With a second run chosen in the history, both stand side by side.
import { useState } from "preact/hooks";
import { counted, duration, significant } from "../../common/format";
import type { Lab } from "../../common/lab";
import { useLab } from "../../common/lab";
import { useAsk } from "../../common/useask";
import type { Answer } from "../../common/wire";
import { deskOf, useDesk } from "../desk";
import { answerFigure } from "./answerfigure";
import { CleanTable, ComparedTable, EditedTable } from "./answertable";
import { answerCsv } from "./csv";
import { ExportButtons } from "./export";
import { Reports } from "./reports";
import { answerRows, comparedRows, type Order } from "./tokenrows";

export function AnswerTab({ lab }: { lab: Lab }) {
  const { answer, status } = useLab(lab);
  const desk = useDesk(lab);
  if (answer === null) {
    const running = status?.work === "run" || status?.work === "load";
    return <p class="nnsl-empty">{running ? "The first run is under way." : "Nothing has been run yet."}</p>;
  }
  const compared = desk.compared !== null && desk.compared !== answer.run ? desk.compared : null;
  return (
    <div class="nnsl-answer" data-stale={status?.stale === true}>
      {compared === null ? (
        <Single answer={answer} model={lab.state.view?.model?.name ?? "model"} />
      ) : (
        <Compared lab={lab} answer={answer} other={compared} />
      )}
      <Reports reports={answer.reports} />
      {answer.notes.length > 0 && (
        <ul class="nnsl-notes" aria-label="Notes">
          {answer.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Single({ answer, model }: { answer: Answer; model: string }) {
  const [order, setOrder] = useState<Order>("rank");
  const rows = answerRows(answer.rows, order);
  return (
    <>
      {rows.length > 0 && (
        <div class="nnsl-row">
          {answer.edited && (
            <fieldset class="nnsl-choice">
              <legend class="nnsl-hidden">Order of the table</legend>
              {(["rank", "difference"] as const).map((value) => (
                <label key={value}>
                  <input
                    type="radio"
                    name={`order ${answer.run}`}
                    checked={order === value}
                    onChange={() => setOrder(value)}
                  />
                  <span>{value === "rank" ? "by rank" : "by |Δ|"}</span>
                </label>
              ))}
            </fieldset>
          )}
          <ExportButtons
            name={`${model} answer ${answer.headline}`}
            figure={(theme) => answerFigure(answer, rows, theme)}
            csv={async () => answerCsv(answer)}
          />
        </div>
      )}
      {rows.length > 0 && (answer.edited ? <EditedTable rows={rows} /> : <CleanTable rows={rows} />)}
      <Numbers answer={answer} />
    </>
  );
}

/** KL, largest difference and time, as far as there are any. */
function Numbers({ answer }: { answer: Answer }) {
  const { kl, max_difference, edited, rows, seconds } = answer;
  return (
    <dl class="nnsl-numbers">
      {rows.length === 0 && !edited && (
        <div>
          <dt>output</dt>
          <dd>no logits, so there is no table of tokens</dd>
        </div>
      )}
      {edited && kl !== null && (
        <div>
          <dt title="KL divergence of the edited from the clean distribution">KL(clean ‖ edited)</dt>
          <dd>{significant(kl, 4)} nats</dd>
        </div>
      )}
      {edited && max_difference !== null && (
        <div>
          <dt>largest difference of {rows.length > 0 ? "a logit" : "the outputs"}</dt>
          <dd>{significant(max_difference, 4)}</dd>
        </div>
      )}
      <div>
        <dt>forwards</dt>
        <dd>{duration(seconds)}</dd>
      </div>
    </dl>
  );
}

function Compared({ lab, answer, other }: { lab: Lab; answer: Answer; other: string }) {
  const asked = useAsk(other, () => lab.connection.ask("answer_of", { kind: "answer", run: other }));
  const titles = new Map(lab.state.history?.entries.map(({ run, title }) => [run, title]));
  const names: [string, string] = [titles.get(answer.run) ?? answer.headline, titles.get(other) ?? other];
  const second = asked.answer?.reply.answer ?? null;
  const rows = second === null ? [] : comparedRows(answer.rows, second.rows);
  return (
    <>
      <div class="nnsl-row nnsl-compared">
        <dl>
          <dt>A</dt>
          <dd title={names[0]}>{names[0]}</dd>
          <dt>B</dt>
          <dd title={names[1]}>{names[1]}</dd>
        </dl>
        <button type="button" class="nnsl-button" onClick={() => deskOf(lab).compare(null)}>
          End comparison
        </button>
      </div>
      {asked.error !== null && (
        <p class="nnsl-problem" role="alert">
          {asked.error.message}
        </p>
      )}
      {second !== null && second.rows.length === 0 && (
        <p class="nnsl-dim">Run B has no table of tokens: {second.headline}</p>
      )}
      {second !== null && second.rows.length > 0 && <ComparedTable rows={rows} names={names} />}
      {second !== null && rows.length > 0 && (
        <p class="nnsl-dim">{counted(rows.length, "token")} of either table, each after its own edits</p>
      )}
      {second === null && asked.error === null && <p class="nnsl-empty">Fetching the other run</p>}
    </>
  );
}
