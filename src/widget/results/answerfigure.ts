// The answer's table as a figure for files.
import type { Theme } from "../../common/colours";
import { type Figure, fitted, type Item } from "../../common/figure";
import { fixed, probability, signed, visibleToken } from "../../common/format";
import type { Answer } from "../../common/wire";
import type { AnswerRow } from "./tokenrows";

const WIDTH = 560;
const LINE = 24;
const TOP = 64;
const BAR = { from: 350, to: 470 };

export function answerFigure(answer: Answer, rows: readonly AnswerRow[], theme: Theme): Figure {
  const items: Item[] = [
    {
      kind: "text",
      x: 16,
      y: 22,
      text: fitted(answer.headline, WIDTH - 32, 15),
      fill: theme.ink,
      size: 15,
      bold: true,
    },
  ];
  const heads: Array<[number, string, "start" | "end"]> = answer.edited
    ? [
        [16, "token", "start"],
        [180, "before", "end"],
        [250, "after", "end"],
        [330, "Δ logit", "end"],
        [544, "rank", "end"],
      ]
    : [
        [16, "token", "start"],
        [180, "logit", "end"],
        [330, "probability", "end"],
        [544, "rank", "end"],
      ];
  for (const [x, text, anchor] of heads)
    items.push({ kind: "text", x, y: 48, text, anchor, fill: theme.faint });
  items.push({ kind: "line", x1: 16, y1: TOP - 4, x2: WIDTH - 16, y2: TOP - 4, stroke: theme.faint });
  rows.forEach((row, number) => {
    const y = TOP + LINE * number + LINE / 2;
    const end = (x: number, text: string): Item => ({
      kind: "text",
      x,
      y,
      text,
      anchor: "end",
      fill: theme.ink,
    });
    items.push({
      kind: "text",
      x: 16,
      y,
      text: fitted(visibleToken(row.token), 100),
      fill: theme.ink,
      mono: true,
    });
    items.push(end(180, fixed(row.before.logit, 2)));
    if (answer.edited) {
      const middle = (BAR.from + BAR.to) / 2;
      const length = (Math.abs(row.bar) * (BAR.to - BAR.from)) / 2;
      const x = row.bar < 0 ? middle - length : middle;
      const fill = row.bar < 0 ? theme.diverging[1]! : theme.diverging[theme.diverging.length - 2]!;
      items.push(end(250, fixed(row.after.logit, 2)), end(330, signed(row.difference, 2)));
      items.push({ kind: "rect", x, y: y - 5, width: length, height: 10, fill });
      items.push({
        kind: "line",
        x1: middle,
        y1: y - LINE / 2,
        x2: middle,
        y2: y + LINE / 2,
        stroke: theme.faint,
      });
      const { rank: from } = row.before;
      const { rank: to } = row.after;
      items.push(end(544, from === to ? String(from) : `${from}→${to}`));
    } else {
      const width = row.before.probability * (BAR.to - BAR.from);
      items.push(end(330, probability(row.before.probability)));
      items.push({ kind: "rect", x: BAR.from, y: y - 5, width, height: 10, fill: theme.sequential[3]! });
      items.push(end(544, String(row.before.rank)));
    }
  });
  return { width: WIDTH, height: TOP + LINE * rows.length + 16, page: theme.page, items };
}
