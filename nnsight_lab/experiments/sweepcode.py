"""The script that a sweep stands for, in the trace API: one trace a cell, in a loop that a person can read and change.

It reads the source prompt's values in one trace, as the forward meets the sites, then runs each cell with the edit
that a recipe's script would have, the numbers that differ from cell to cell standing in a table. The sweep computes the
cells together, so its numbers agree with the script's within rounding.
"""

from __future__ import annotations

from collections.abc import Iterator

from .code import MODEL_TO_FILL_IN, prompt_line
from .codelines import constant_lines, edit_lines, index_code, sizes_after_split
from .errors import ExperimentError
from .metrics import KL, LogitDiff, Probability, Rank
from .plan import Action, Selection, Visit
from .steps import Add, Patch, Replace, StoredTensor
from .sweepresult import SweepResult
from .values import pick_code, put_code


def export_sweep(result: SweepResult) -> str:
    """The script as text. It leaves `values` behind: a tensor with one axis for each axis of the sweep.

    Raises:
        ExperimentError: sites that are called several times in one forward, which a loop has no line for.
    """
    return _Script(result).text()


class _Script:
    def __init__(self, result: SweepResult) -> None:
        self.result = result
        self.plan = result.plan
        self.step = result.sweep.step
        self.cells: dict[int, list[Action]] = {}
        for action in self.plan.actions:
            self.cells.setdefault(action.step, []).append(action)
        if any(len(actions) > 1 or self.visit(actions[0]).call for actions in self.cells.values()):
            raise ExperimentError("The sites are called several times in one forward; export the code of single cells.")
        self.inner = len(self.cells) // len(result.axes[0])

    def visit(self, action: Action) -> Visit:
        return self.plan.visits[action.visit]

    def first(self, site: int) -> Action:
        """The action of the first cell of a site."""
        return self.cells[site * self.inner][0]

    def text(self) -> str:
        sections = [self.head(), self.tables(), self.taken(), self.metric(), self.loop()]
        return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"

    def head(self) -> list[str]:
        made = self.plan.model_line
        lines = [] if made else [f"{MODEL_TO_FILL_IN} that the sweep was run on", ""]
        lines += ["import numpy as np", "import torch", "import nnsight_lab"]
        step = self.step
        numbers = step.vector if isinstance(step, Add) else step.value if isinstance(step, Replace) else None
        if isinstance(numbers, StoredTensor):
            lines.append("from safetensors.torch import load_file")
        sweep = self.result.sweep
        lines += ["", *([f"model = {made}"] if made else [])]
        lines.append(prompt_line("prompt", sweep.base, self.plan.tokenizer))
        if isinstance(self.step, Patch) and sweep.source is not None:
            lines.append(prompt_line("source_prompt", sweep.source, self.plan.tokenizer))
        return lines

    def tables(self) -> list[str]:
        sites = [self.visit(self.first(number)) for number in range(len(self.result.axes[0]))]
        lines = ["# A function for each site, because sites are met inside a trace", "sites = ["]
        lines += [f"    lambda: {visit.address}," for visit in sites]
        lines += [
            "]",
            "# What is edited at a site, cell by cell" + ("" if self.same_everywhere() else ", site by site"),
        ]
        if self.same_everywhere():
            return [*lines, "entries = [", *self.entries(0), "]", *constant_lines(self.step, "numbers")]
        lines.append("entries_of = [")
        for site in range(len(sites)):
            lines += ["    [", *(f"    {line}" for line in self.entries(site)), "    ],"]
        return [*lines, "]", *constant_lines(self.step, "numbers")]

    def entries(self, site: int) -> Iterator[str]:
        """Lines of index expressions, `np.s_[:, [7]]`; for a patch in pairs with those of the source."""
        for number in range(site * self.inner, (site + 1) * self.inner):
            action = self.cells[number][0]
            here = f"np.s_[{_index(action.selection, self.visit(action).shape)}]"
            if action.source is None:
                yield f"    {here},"
                continue
            there = _index(action.source_selection, self.plan.source_visits[action.source].shape)
            yield f"    ({here}, np.s_[{there}]),"

    def same_everywhere(self) -> bool:
        first = list(self.entries(0))
        return all(list(self.entries(site)) == first for site in range(1, len(self.result.axes[0])))

    def taken(self) -> list[str]:
        if not isinstance(self.step, Patch):
            return []
        numbers = [self.first(site).source for site in range(len(self.result.axes[0]))]
        lines = ["taken = {}", "with torch.no_grad(), model.trace(source_prompt):"]
        for number in sorted({number for number in numbers if number is not None}):
            visit = self.plan.source_visits[number]
            value = pick_code(f"{visit.address}.{visit.io}", visit.element)
            lines += [f"    taken[{site}] = {value}.clone()" for site, n in enumerate(numbers) if n == number]
        return lines

    def metric(self) -> list[str]:
        match self.result.sweep.metric:
            case LogitDiff(correct=correct, wrong=wrong):
                body = [f"return (logits[{_token(correct)}] - logits[{_token(wrong)}]).item()"]
            case Probability(token=answer):
                body = [f"return logits.softmax(-1)[{_token(answer)}].item()"]
            case Rank(token=answer):
                body = [
                    f"token = {_token(answer)}",
                    "return (logits > logits[token]).sum().item() + (logits[:token] == logits[token]).sum().item()",
                ]
            case KL():
                body = [
                    "p, q = clean.log_softmax(-1), logits.log_softmax(-1)",
                    "return (p.exp() * (p - q)).sum().item()",
                ]
            case other:
                raise ExperimentError(f"{type(other).__name__} is no number for each cell.")
        lines = ["def metric(logits):", *(f"    {line}" for line in body)]
        if isinstance(self.result.sweep.metric, KL):
            clean = ["with torch.no_grad(), model.trace(prompt) as tracer:", f"    clean = {self.logits()}"]
            return [*clean, "", *lines]
        return lines

    def logits(self) -> str:
        last = "[0, -1]" if self.plan.output == "logits" else "[0]"
        return f"{pick_code('tracer.result', self.plan.output_element)}{last}.double()"

    def loop(self) -> list[str]:
        action = self.first(0)
        visit = self.visit(action)
        plain = not visit.element.containers
        value = f"site.{visit.io}" if plain else "value"
        body = [] if plain else [f"value = site.{visit.io}"]
        body.append(f"x = {pick_code(value, visit.element)}.clone()")
        body += self.edit(action, visit)
        body.append(f"site.{visit.io} = {'x' if plain else put_code('value', visit.element, 'x')}")
        body.append(f"logits = {self.logits()}")
        names = "index, source_index" if action.source is not None else "index"
        shape = ", ".join(str(len(axis)) for axis in self.result.axes)
        return [
            "values = []",
            "for number, site_of in enumerate(sites):",
            f"    for {names} in {'entries' if self.same_everywhere() else 'entries_of[number]'}:",
            "        with torch.no_grad(), model.trace(prompt) as tracer:",
            "            site = site_of()",
            *(f"            {line}" for line in body),
            "        values.append(metric(logits))",
            f"values = torch.tensor(values, dtype=torch.float64).reshape({shape})",
            "print(values)",
        ]

    def edit(self, action: Action, visit: Visit) -> list[str]:
        """The lines of one cell's edit, with names in the place of its numbers."""
        source = self.plan.source_visits[action.source].shape if action.source is not None else ()
        written = edit_lines(self.step, action, visit.shape, "numbers", "taken[number]", source)
        here = f"[{_index(action.selection, visit.shape)}]"
        lines = [line.replace(here, "[index]") for line in written]
        if action.source is None:
            return lines
        last, _, _ = lines[-1].partition(" = ")
        other = action.source_selection
        cut = f".unflatten(-1, ({other.split}, -1))" if other.split else ""
        return [*lines[:-1], f"{last} = taken[number]{cut}[source_index]"]


def _index(selection: Selection, shape: tuple[int, ...]) -> str:
    return index_code(selection, sizes_after_split(shape, selection))


def _token(answer: int | str) -> str:
    if isinstance(answer, int):
        return str(answer)
    return f'model.tokenizer({answer!r}, add_special_tokens=False)["input_ids"][0]'
