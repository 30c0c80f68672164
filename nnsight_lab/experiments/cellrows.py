"""From the cells of a sweep to rows of batches.

The clean run and the run of the source prompt are made once, with the sites' values kept. Each cell's step is planned
like a recipe's (`Planner`), and its edit is carried out by the same `apply_edit`: where a forward computes the last
positions alone, the clean values of the first ones are put in front, the edit is made on the whole, and the first
ones are cut off again. So every scope and every kind of step means what it means in a recipe.

A cell whose edit leaves the clean value as it is, bit for bit, or that edits the last residual stream at a position
that the answer does not read, is the clean run; it is not computed.
"""

from __future__ import annotations

import inspect
import weakref
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..engine import NNsight
from .budget import live_bytes
from .edits import apply_edit
from .errors import ExperimentError, ScopeError
from .inputs import Inputs
from .passes import Place
from .plan import Action, Visit
from .planning import Planner, elements_by_place
from .prefix import Prefix, last_logits, record, short_output
from .recipe import Recipe
from .rolling import Row, RowEdit
from .scope import HeadShape
from .shapes import remembered_shapes
from .sites import SitePath
from .steps import AnyStep, Edit, Patch
from .survey import Survey, survey

# What a row of a batch needs at most, by model and prompt length: measured once.
_row_bytes: weakref.WeakKeyDictionary[nn.Module, dict[int, int]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class CellRows:
    """The cells of a sweep, ready to run.

    Attributes:
        prefix: the clean run, layer by layer.
        rows: by number of the cell; cells that are the clean run are missing.
        same: numbers of the cells that are the clean run.
        outside: numbers of the cells whose site is not inside a layer of the list, so that they reuse nothing.
        row_bytes: what a row of a batch needs at most.
        source_logits: `[vocabulary]` of the source prompt's run, if there was one.
        visits, source_visits, actions: how the cells are carried out; `Action.step` is the cell's number.
    """

    prefix: Prefix
    rows: Mapping[int, Row]
    same: tuple[int, ...]
    outside: tuple[int, ...]
    row_bytes: int
    source_logits: Tensor | None
    visits: tuple[Visit, ...]
    source_visits: tuple[Visit, ...]
    actions: tuple[Action, ...]


def prepare_cells(
    model: NNsight,
    steps: Sequence[AnyStep],
    paths: Mapping[str, SitePath],
    base: Inputs,
    source: Inputs | None,
    source_text: Any,
) -> CellRows:
    """Run the prompts and plan the cells.

    Args:
        steps: of the cells.
        paths: the sites, taken apart.
        source_text: the source prompt as the recipe has it.

    Raises:
        ScopeError: positions, heads or indices that do not fit.
        ExperimentError: a site that the forward does not reach.
    """
    recipe = Recipe(source=source_text, steps=tuple(steps))
    wanted = elements_by_place(recipe, "base")
    clean, prefix, row_bytes = _clean_run(model, base, wanted, paths)
    refuse_unreached(clean, "base")
    other: Survey | None = None
    source_logits = None
    source_wanted = elements_by_place(recipe, "source")
    if source is not None:
        short = {**keywords_of(model, source), **short_output(model._model)}
        last_only = Inputs((), short, source.ids, source.tokens)
        other = survey(model, last_only, source_wanted, paths, list(source_wanted))
        refuse_unreached(other, "source")
        source_logits = last_logits(other.run.output)[0]
    longer = remembered_shapes(model, base, wanted, paths)
    heads = heads_for(model, steps)
    source_longer = longer if source is None else remembered_shapes(model, source, source_wanted, paths)
    made = plan_cells(recipe, base, source, clean, other, heads, longer, source_longer)
    builder = _Builder(prefix, clean, other, paths, recipe)
    rows, same, outside = {}, [], []
    for number, actions in made.items():
        row, unchanged, inside = builder.row(actions)
        if unchanged:
            same.append(number)
            continue
        rows[number] = row
        if not inside:
            outside.append(number)
    return CellRows(
        prefix=prefix,
        rows=rows,
        same=tuple(same),
        outside=tuple(outside),
        row_bytes=row_bytes,
        source_logits=source_logits,
        visits=clean.visits,
        source_visits=other.visits if other is not None else (),
        actions=tuple(action for actions in made.values() for action in actions),
    )


def _clean_run(model: NNsight, base: Inputs, wanted: Any, paths: Mapping[str, SitePath]) -> tuple[Survey, Prefix, int]:
    found: list[Survey] = []

    def forward(keywords: dict[str, Any]) -> Any:
        seen = survey(model, Inputs((), keywords, base.ids, base.tokens), wanted, paths, list(wanted))
        found.append(seen)
        return seen.run.output

    inputs = keywords_of(model, base)
    known = _row_bytes.setdefault(model._model, {})
    assert base.length is not None  # a sweep's prompt is tokens
    length = base.length
    if length in known:
        prefix = record(model._model, inputs, length, forward)
    else:
        with live_bytes() as peak:
            prefix = record(model._model, inputs, length, forward)
        known[length] = max(peak.bytes or 0, 1)
    return found[0], prefix, known[length]


def keywords_of(model: NNsight, inputs: Inputs) -> dict[str, Any]:
    """A prompt as keywords of the model's forward."""
    return dict(inputs.kwargs) or {next(iter(inspect.signature(model._model.forward).parameters)): inputs.args[0]}


def heads_for(model: NNsight, steps: Sequence[AnyStep]) -> HeadShape | None:
    """The model's attention heads, where a step speaks of heads: not every configuration has one number of them."""
    asked = any(isinstance(step, Edit) and step.heads is not None for step in steps)
    return HeadShape.of(getattr(model._model, "config", None)) if asked else None


def refuse_unreached(found: Survey, prompt: str) -> None:
    """Raise ExperimentError where a site was not reached."""
    for place, reason in found.run.reasons.items():
        raise ExperimentError(f"{place} is not reached by the {prompt} prompt: {reason}")


def plan_cells(
    recipe: Recipe,
    base: Inputs,
    source: Inputs | None,
    clean: Survey,
    other: Survey | None,
    heads: HeadShape | None,
    longer: Any,
    source_longer: Any,
) -> dict[int, list[Action]]:
    """The actions of each cell. Cells of one site are planned together, because planning compares all pairs."""
    by_place: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for number, step in enumerate(recipe.steps):
        by_place[step.site, step.io, step.element].append(number)
    visits: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for number, visit in enumerate(clean.visits):
        visits[visit.site, visit.io, visit.wanted].append(number)
    made: dict[int, list[Action]] = {}
    for key, numbers in by_place.items():
        here = visits[key]
        planner = Planner(
            recipe.with_steps(*(recipe.steps[number] for number in numbers)),
            base,
            source,
            [clean.visits[i] for i in here],
            other.visits if other is not None else (),
            heads,
            longer,
            source_longer,
        )
        for action in planner.actions():
            step = recipe.steps[numbers[action.step]]
            if isinstance(step, Patch) and step.from_prompt == "base":
                raise ScopeError('step.from_prompt: a sweep patches from "source"; a patch from "base" is a recipe\'s.')
            place = Action(
                numbers[action.step],
                here[action.visit],
                action.selection,
                action.position_axis,
                action.source,
                action.source_selection,
            )
            made.setdefault(place.step, []).append(place)
    missing = [step.site for number, step in enumerate(recipe.steps) if number not in made]
    if missing:
        raise ExperimentError(f"step.call: {missing[0]} is not called as often as the step says.")
    return dict(sorted(made.items()))


@dataclass(frozen=True)
class _Builder:
    prefix: Prefix
    clean: Survey
    other: Survey | None
    paths: Mapping[str, SitePath]
    recipe: Recipe

    def row(self, actions: Sequence[Action]) -> tuple[Row, bool, bool]:
        """A cell's row, whether it is the clean run, and whether its site is inside a layer."""
        step = self.recipe.steps[actions[0].step]
        visits = [self.clean.visits[action.visit] for action in actions]
        path = self.paths[step.site]
        layer = self._layer(path)
        first = visits[0]
        stream = (
            layer is not None
            and path.module == f"{self.prefix.path}.{layer}"
            and not path.operations
            and first.element.keys in ((), (0,))
            and first.shape == tuple(self.prefix.hidden(0).shape)
            and (step.io == "output" or layer > 0)
        )
        join = 0 if layer is None else layer + (stream and step.io == "output")
        start = min(self._start(action) for action in actions)
        edits = [self._edit(step, action) for action in actions]
        row = Row(
            place=Place(step.site, step.io),
            path=path,
            element=step.element,
            calls=tuple(visit.call for visit in visits),
            join=join,
            start=start,
            edits=tuple(edits),
            in_stream=stream,
        )
        beyond = stream and join == len(self.prefix.layers) and self._misses_last(actions)
        values = [self.clean.values[action.visit] for action in actions]
        unchanged = beyond or all(torch.equal(edit(value, 0), value) for edit, value in zip(edits, values, strict=True))
        return row, unchanged, layer is not None

    def _layer(self, path: SitePath) -> int | None:
        head = f"{self.prefix.path}."
        if not self.prefix.path or not path.module.startswith(head):
            return None
        number = path.module[len(head) :].split(".")[0]
        return int(number) if number.isdigit() else None

    def _positions(self, action: Action) -> tuple[int, ...] | None:
        axis = action.position_axis
        if axis is None or axis >= len(action.selection.axes):
            return None
        return action.selection.axes[axis]

    def _start(self, action: Action) -> int:
        positions = self._positions(action)
        return min(positions) if positions else 0

    def _misses_last(self, actions: Sequence[Action]) -> bool:
        chosen = [self._positions(action) for action in actions]
        return all(positions is not None and max(positions) < self.prefix.length - 1 for positions in chosen)

    def _edit(self, step: AnyStep, action: Action) -> RowEdit:
        clean = self.clean.values[action.visit]
        visit: Visit = self.clean.visits[action.visit]
        taken = None
        if action.source is not None:
            assert self.other is not None  # the planner found the source among its visits
            taken = self.other.values[action.source]
        axis, where = action.position_axis, f"step at {visit.site}"

        def edit(value: Tensor, start: int) -> Tensor:
            if not start or axis is None:
                return apply_edit(step, action, value, taken, where)
            cut = clean.shape[axis] - value.shape[axis]
            whole = torch.cat([clean.narrow(axis, 0, cut), value], axis) if cut else value
            return apply_edit(step, action, whole, taken, where).narrow(axis, cut, value.shape[axis])

        return edit
