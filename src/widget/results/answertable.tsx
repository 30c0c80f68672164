// The top-k table: each token before and after the edits.
import { fixed, probability, signed, visibleToken } from "../../common/format";
import { SignedBar } from "./bar";
import { type AnswerRow, type ComparedRow, rankMove } from "./tokenrows";

const ARROWS = { up: "▲", down: "▼", same: "" } as const;

export function TokenName({ token }: { token: string }) {
  return (
    <th scope="row" class="nnsl-token-name" title={JSON.stringify(token)}>
      {visibleToken(token)}
    </th>
  );
}

function LogitCell({ logit, probability: share }: { logit: number; probability: number }) {
  return (
    <td class="nnsl-number">
      {fixed(logit, 2)}
      <small title="probability">{probability(share)}</small>
    </td>
  );
}

function Difference({ value, bar }: { value: number; bar: number }) {
  return (
    <td class="nnsl-number nnsl-bar-cell">
      <div>
        <span>{signed(value, 2)}</span>
        <SignedBar share={bar} />
      </div>
    </td>
  );
}

function Ranks({ from, to }: { from: number; to: number }) {
  const move = rankMove(from, to);
  const words = move === "same" ? `rank ${from}, unchanged` : `rank ${from} to ${to}, ${move}`;
  return (
    <td class="nnsl-number nnsl-rank" data-move={move} title={words}>
      <span aria-hidden="true">
        {move === "same" ? from : `${from}→${to}`}
        <i>{ARROWS[move]}</i>
      </span>
      <span class="nnsl-hidden">{words}</span>
    </td>
  );
}

/** Of a run that edits. */
export function EditedTable({ rows }: { rows: readonly AnswerRow[] }) {
  return (
    <table class="nnsl-table">
      <caption class="nnsl-hidden">Likeliest next tokens before and after the edits</caption>
      <thead>
        <tr>
          <th scope="col">token</th>
          <th scope="col">before</th>
          <th scope="col">after</th>
          <th scope="col">Δ logit</th>
          <th scope="col">rank</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.id}>
            <TokenName token={row.token} />
            <LogitCell {...row.before} />
            <LogitCell {...row.after} />
            <Difference value={row.difference} bar={row.bar} />
            <Ranks from={row.before.rank} to={row.after.rank} />
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Of a clean run: probabilities as bars. */
export function CleanTable({ rows }: { rows: readonly AnswerRow[] }) {
  return (
    <table class="nnsl-table">
      <caption class="nnsl-hidden">Likeliest next tokens</caption>
      <thead>
        <tr>
          <th scope="col">token</th>
          <th scope="col">logit</th>
          <th scope="col">probability</th>
          <th scope="col">rank</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.id}>
            <TokenName token={row.token} />
            <td class="nnsl-number">{fixed(row.before.logit, 2)}</td>
            <td class="nnsl-number nnsl-bar-cell">
              <div>
                <span>{probability(row.before.probability)}</span>
                <div class="nnsl-bar nnsl-bar-share" aria-hidden="true">
                  <i style={{ left: 0, width: `${row.before.probability * 100}%` }} />
                </div>
              </div>
            </td>
            <td class="nnsl-number">{row.before.rank}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Side({ side }: { side: ComparedRow["first"] }) {
  if (side === null) {
    return (
      <td class="nnsl-number nnsl-dim" title="not in this run's table">
        –
      </td>
    );
  }
  return <LogitCell {...side} />;
}

/** Of two runs, each after its own edits. */
export function ComparedTable({ rows, names }: { rows: readonly ComparedRow[]; names: [string, string] }) {
  return (
    <table class="nnsl-table">
      <caption class="nnsl-hidden">
        {names[0]} beside {names[1]}
      </caption>
      <thead>
        <tr>
          <th scope="col">token</th>
          <th scope="col" title={names[0]}>
            A
          </th>
          <th scope="col" title={names[1]}>
            B
          </th>
          <th scope="col">Δ logit, B − A</th>
          <th scope="col">rank</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.id}>
            <TokenName token={row.token} />
            <Side side={row.first} />
            <Side side={row.second} />
            {row.first !== null && row.second !== null ? (
              <>
                <Difference value={row.difference} bar={row.bar} />
                <Ranks from={row.first.rank} to={row.second.rank} />
              </>
            ) : (
              <td colSpan={2} class="nnsl-dim nnsl-number">
                only in {row.first === null ? "B" : "A"}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
