"""The script that a result stands for, in the trace API.

It is written from the plan of the run: the order in which the forward met the sites, and every scope as numbers. Its
tensor operations are those that the run made, so that its logits are the same bit for bit on the same machine. It
stands alone; only where nothing tells how the model was made, or where it was run on inputs of its own, the reader
fills in a line at the top.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .codelines import constant_lines, edit_lines
from .errors import ExperimentError
from .metrics import KL, LogitDiff, Probability, Rank, TopK
from .plan import Action, Plan, Visit
from .recipe import Prompt, Recipe
from .result import MetricValue, Result
from .steps import Add, Capture, Patch, Replace, StoredTensor
from .values import pick_code, put_code

_INDENT = "    "
MODEL_TO_FILL_IN = "model = ...  # the wrapped model"


def export(result: Result) -> str:
    """The script as text. It leaves `clean_logits`, `edited_logits` and `activations` behind.

    Raises:
        ExperimentError: a module that the forward calls several times is used at a later call than its first, which
            the trace API has no line for.
    """
    return _Export(result).text()


class _Export:
    def __init__(self, result: Result) -> None:
        self.result = result
        self.recipe: Recipe = result.recipe
        self.plan: Plan = result.plan
        self.edits = [a for a in self.plan.actions if not isinstance(self.recipe.steps[a.step], Capture)]

    def text(self) -> str:
        sections = [
            self._head(),
            self._prompts(),
            self._constants(),
            self._clean(),
            self._source(),
            self._edited(),
            self._print(),
        ]
        return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"

    # Sections

    def _head(self) -> list[str]:
        fill = [] if self.plan.model_line else [f"{MODEL_TO_FILL_IN} that the recipe was run on"]
        if self.recipe.base is None:
            fill.append("prompt = ...  # the input that the recipe was run on")
        if self.plan.source_visits and self.recipe.source is None:
            fill.append("source_prompt = ...  # the source input that the recipe was run on")
        lines = [*fill, *([""] if fill else []), "import torch", "import nnsight_lab"]
        if any(isinstance(_numbers(self.recipe, a.step), StoredTensor) for a in self.edits):
            lines.append("from safetensors.torch import load_file")
        return [*lines, "", f"model = {self.plan.model_line}"] if self.plan.model_line else lines

    def _prompts(self) -> list[str]:
        prompts = {"prompt": self.recipe.base}
        if self.plan.source_visits:
            prompts["source_prompt"] = self.recipe.source
        given = {name: prompt for name, prompt in prompts.items() if prompt is not None}
        return [prompt_line(name, prompt, self.plan.tokenizer) for name, prompt in given.items()]

    def _constants(self) -> list[str]:
        lines: list[str] = []
        for number in dict.fromkeys(action.step for action in self.edits):
            lines += constant_lines(self.recipe.steps[number], f"numbers_{number}")
        return lines

    def _clean(self) -> list[str]:
        taken = self._taken("base") if self.edits else []
        body = list(_reads(self.plan.visits, taken, "base"))
        if not self.edits:
            lines = ["activations = {}", *self._trace("prompt", [*self._actions(), self._logits("clean_logits")])]
            return ["# No edit was carried out: one run is both", *lines, "edited_logits = clean_logits"]
        return ["# The run without edits", *self._trace("prompt", [*body, self._logits("clean_logits")])]

    def _source(self) -> list[str]:
        body = list(_reads(self.plan.source_visits, self._taken("source"), "source"))
        return ["# What is patched in", *self._trace("source_prompt", body)] if body else []

    def _edited(self) -> list[str]:
        if not self.edits:
            return []
        lines = ["# The run with edits", *self._left_out(), "activations = {}"]
        return [*lines, *self._trace("prompt", [*self._actions(), self._logits("edited_logits")])]

    def _print(self) -> list[str]:
        if self.plan.output == "tensor":
            return ['print("largest change:", (edited_logits - clean_logits).abs().max().item())']
        metric = self.recipe.metric
        k = metric.k if isinstance(metric, TopK) else TopK().k
        token = "model.tokenizer.decode(i)" if self.plan.tokenizer else "i"
        lines = [
            'for name, logits in ("clean", clean_logits), ("edited", edited_logits):',
            f"    top = logits[0].softmax(-1).topk({min(k, self.result.clean_logits.shape[-1])})",
            "    for i, probability in zip(top.indices.tolist(), top.values.tolist()):",
            f"        print(name, repr({token}), round(probability, 4))",
        ]
        return [*lines, *_metric_lines(self.recipe, self.result.metric)]

    # Parts

    def _trace(self, prompt: str, body: Sequence[str]) -> list[str]:
        return [f"with torch.no_grad(), model.trace({prompt}) as tracer:", *(_INDENT + line for line in body)]

    def _logits(self, name: str) -> str:
        last = "[:, -1]" if self.plan.output == "logits" else ""
        return f"{name} = {pick_code('tracer.result', self.plan.output_element)}{last}.save()"

    def _left_out(self) -> Iterator[str]:
        carried_out = {action.step for action in self.plan.actions}
        for report in self.result.sites:
            if report.step not in carried_out:
                yield f"# steps[{report.step}] ({report.kind}) is left out: {' '.join(report.message.split())}"

    def _taken(self, prompt: str) -> list[int]:
        """Numbers of the visits of a prompt's run that patches take from."""
        found: dict[int, None] = {}
        for action in self.edits:
            step = self.recipe.steps[action.step]
            if isinstance(step, Patch) and step.from_prompt == prompt and action.source is not None:
                found[action.source] = None
        return sorted(found)

    def _actions(self) -> Iterator[str]:
        """The body of the edited run: for each call of a site what happens to its value."""
        group: list[Action] = []
        for action in self.plan.actions:
            if group and not _same_call(self._visit(group[0]), self._visit(action)):
                yield from self._at_site(group)
                group = []
            group.append(action)
        if group:
            yield from self._at_site(group)

    def _visit(self, action: Action) -> Visit:
        return self.plan.visits[action.visit]

    def _at_site(self, group: list[Action]) -> Iterator[str]:
        """What happens to the value of one call of a site: read once, changed by each action, assigned once."""
        visit = self._visit(group[0])
        address, io = _site_code(visit, self.plan.visits), visit.io
        if all(isinstance(self.recipe.steps[action.step], Capture) for action in group):
            for action in group:
                yield self._capture_line(action, pick_code(f"{address}.{io}", self._visit(action).element))
            return
        yield f"site = {address}"
        plain = all(not self._visit(action).element.containers for action in group)
        value = f"site.{io}" if plain else "value"
        if not plain:
            yield f"value = site.{io}"
        held: Visit | None = None
        for action in group:
            visit, step = self._visit(action), self.recipe.steps[action.step]
            if held is not None and held.element != visit.element:
                yield f"value = {put_code('value', held.element, 'x')}"
                held = None
            if isinstance(step, Capture):
                yield self._capture_line(action, "x" if held else pick_code(value, visit.element))
                continue
            if held is None:
                yield f"x = {pick_code(value, visit.element)}.clone()"
                held = visit
            name, shape = self._source_of(action, step)
            yield f"# steps[{action.step}]: {type(step).__name__.lower()}"
            yield from edit_lines(step, action, visit.shape, f"numbers_{action.step}", name, shape)
        yield f"site.{io} = {'x' if plain else put_code('value', held.element, 'x') if held else 'value'}"

    def _source_of(self, action: Action, step: object) -> tuple[str, tuple[int, ...]]:
        if not isinstance(step, Patch) or action.source is None:
            return "", ()
        visits = self.plan.visits if step.from_prompt == "base" else self.plan.source_visits
        return f"{step.from_prompt}_{action.source}", visits[action.source].shape

    def _capture_line(self, action: Action, value: str) -> str:
        return f"activations[{self.plan.key(action)!r}] = {value}.clone().save()"


def _numbers(recipe: Recipe, number: int) -> object:
    step = recipe.steps[number]
    return step.vector if isinstance(step, Add) else step.value if isinstance(step, Replace) else None


def prompt_line(name: str, prompt: Prompt, tokenizer: bool) -> str:
    """The assignment of a prompt; token ids go in as a batch where there is no tokenizer."""
    if isinstance(prompt, str):
        return f"{name} = {prompt!r}"
    return f"{name} = {list(prompt)}" if tokenizer else f"{name} = torch.tensor([{list(prompt)}])"


def _same_call(one: Visit, other: Visit) -> bool:
    return (one.site, one.io, one.call) == (other.site, other.io, other.call)


def _site_code(visit: Visit, visits: Sequence[Visit]) -> str:
    """The expression of a site at one call: `model.h[0]`, `model.x.source.f_0[1]`."""
    several = any(v.call != visit.call for v in visits if (v.site, v.io) == (visit.site, visit.io))
    operation = ".source" in visit.address
    if visit.call and not operation:
        raise ExperimentError(
            f"Code for call {visit.call} of {visit.address} cannot be written: the trace API reaches later calls of "
            "operations, not of modules. Use the operation that calls it, model.<caller>.source.<label>."
        )
    return f"{visit.address}[{visit.call}]" if several and operation else visit.address


def _reads(visits: Sequence[Visit], numbers: Sequence[int], name: str) -> Iterator[str]:
    for number in numbers:
        visit = visits[number]
        yield f"{name}_{number} = {pick_code(f'{_site_code(visit, visits)}.{visit.io}', visit.element)}.clone()"


def _metric_lines(recipe: Recipe, value: MetricValue | None) -> list[str]:
    def token(answer: int | str) -> str:
        if isinstance(answer, int):
            return str(answer)
        return f'model.tokenizer({answer!r}, add_special_tokens=False)["input_ids"][0]'

    label = repr(f"{'' if value is None else value.name}:")
    pairs = 'for name, logits in ("clean", clean_logits), ("edited", edited_logits):'
    match recipe.metric:
        case LogitDiff(correct=correct, wrong=wrong):
            head = [f"correct = {token(correct)}", f"wrong = {token(wrong)}", pairs]
            return [*head, f"    print(name, {label}, (logits[0, correct] - logits[0, wrong]).item())"]
        case Probability(token=answer):
            head = [f"answer = {token(answer)}", pairs]
            return [*head, f"    print(name, {label}, logits[0].softmax(-1)[answer].item())"]
        case Rank(token=answer):
            head = [f"answer = {token(answer)}", pairs]
            return [*head, f"    print(name, {label}, (logits[0] > logits[0, answer]).sum().item())"]
        case KL():
            log_p = "log_p = clean_logits[0].double().log_softmax(-1)"
            log_q = "log_q = edited_logits[0].double().log_softmax(-1)"
            return [log_p, log_q, 'print("KL in nats:", (log_p.exp() * (log_p - log_q)).sum().item())']
    return []
