"""From a recipe and what its clean run showed to a plan: every step at every call, every scope as numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from .errors import ScopeError
from .inputs import Inputs
from .passes import Place
from .plan import Action, Selection, Visit
from .recipe import Recipe
from .scope import HeadShape, position_axis, select
from .steps import AnyStep, Capture, Mean, Patch, Position, Token, is_slice
from .tokens import resolve_positions

# The shape at a visit for a prompt that is one token longer, or None.
LongerShapes = Callable[[Visit], tuple[int, ...] | None]


def place_of(step: AnyStep) -> Place:
    """Where a step acts."""
    return Place(step.site, step.io)


def source_place(step: Patch) -> Place:
    """Where a patch takes from."""
    return Place(step.from_site if step.from_site is not None else step.site, step.io)


def matches(visit: Visit, place: Place, element: tuple[int | str, ...] | None) -> bool:
    """Whether a visit is of this place and of the tensor that a step means there."""
    return visit.site == place.site and visit.io == place.io and visit.wanted == element


@dataclasses.dataclass(frozen=True)
class Planner:
    """Works the scopes of one recipe out.

    Attributes:
        recipe: the recipe.
        base, source: its prompts; `source` is None where no step needs it.
        visits, source_visits: of the clean run and of the source run.
        heads: the model's attention heads, if it has any.
        longer: tells position axes apart; see `scope`.
    """

    recipe: Recipe
    base: Inputs
    source: Inputs | None
    visits: Sequence[Visit]
    source_visits: Sequence[Visit]
    heads: HeadShape | None
    longer: LongerShapes
    source_longer: LongerShapes

    def actions(self) -> tuple[Action, ...]:
        """All actions, in the order in which they are carried out: by visit, then by step.

        Raises:
            ScopeError: a scope that does not fit the prompt or the value.
        """
        made = []
        for number, visit in enumerate(self.visits):
            for index, step in enumerate(self.recipe.steps):
                if step.enabled and matches(visit, place_of(step), step.element) and step.call in (None, visit.call):
                    made.append(self._action(index, step, number, visit))
        # Several elements of one value are visits of their own, but steps act in the recipe's order.
        first: dict[tuple[str, str, int], int] = {}
        for number, visit in enumerate(self.visits):
            first.setdefault((visit.site, visit.io, visit.call), number)

        def order(action: Action) -> tuple[int, int]:
            visit = self.visits[action.visit]
            return first[visit.site, visit.io, visit.call], action.step

        return tuple(sorted(made, key=order))

    def _action(self, index: int, step: AnyStep, number: int, visit: Visit) -> Action:
        if isinstance(step, Capture):
            return Action(index, number)
        where = f"steps[{index}]"
        axis = None
        if step.positions is not None or (isinstance(step, Mean) and step.over == "positions"):
            axis = self._position_axis(self.base, visit, self.longer, f"{where}.positions")
        positions = self._positions(self.base, step.positions, f"{where}.positions")
        if isinstance(step, Mean) and step.over == "batch" and not visit.shape:
            raise ScopeError(f"{where}: the value is a single number, it has no batch to take the mean over.")
        if axis is None and step.heads is not None and self.base.length in visit.shape[1:]:
            # Helps to tell [batch, heads, position, head_dim] from [batch, position, heads, head_dim].
            axis = self._position_axis(self.base, visit, self.longer, f"{where}.heads")
        selection = select(step, visit.shape, positions, axis, self.heads, where)
        if not isinstance(step, Patch):
            return Action(index, number, selection, axis)
        source, taken = self._taken(step, visit, positions, axis, where)
        return Action(index, number, selection, axis, source, taken)

    def _taken(
        self, step: Patch, visit: Visit, positions: tuple[int, ...] | None, axis: int | None, where: str
    ) -> tuple[int, Selection]:
        own = step.from_prompt == "base"
        inputs = self.base if own else self.source
        assert inputs is not None  # the source prompt is run whenever a patch needs it
        number = self._source_visit(step, visit, own, where)
        other = (self.visits if own else self.source_visits)[number]
        there: tuple[int, ...] | None = None
        if step.from_positions is not None:
            there = self._positions(inputs, step.from_positions, f"{where}.from_positions")
            if positions is not None and there is not None and len(there) != len(positions):
                raise ScopeError(
                    f"{where}.from_positions: {len(there)} positions {list(there)} for the "
                    f"{len(positions)} positions {list(positions)}; there must be one for each."
                )
        elif inputs.length == self.base.length:
            there = positions
        else:
            there = self._counterparts(step, positions, inputs, where)
        other_axis = axis
        if there is not None and (other.shape != visit.shape or own is False):
            longer = self.longer if own else self.source_longer
            other_axis = self._position_axis(inputs, other, longer, f"{where}.from_positions")
        taken = select(step, other.shape, there, other_axis, self.heads, where)
        return number, taken

    def _source_visit(self, step: Patch, visit: Visit, own: bool, where: str) -> int:
        place, visits = source_place(step), self.visits if own else self.source_visits
        found = [i for i, other in enumerate(visits) if matches(other, place, step.element)]
        for i in found:
            if visits[i].call == visit.call:
                return i
        if len(found) == 1:
            return found[0]
        prompt = "base" if own else "source"
        raise ScopeError(
            f"{where}: call {visit.call} of {visit.site} has no counterpart: the {prompt} prompt's run made "
            f"{len(found)} calls of {place}."
        )

    def _counterparts(
        self, step: Patch, positions: tuple[int, ...] | None, inputs: Inputs, where: str
    ) -> tuple[int, ...]:
        """The positions in a prompt of another length that `step.positions` stand for without being told."""
        lengths = f"the prompts have {self.base.length} and {inputs.length} tokens"
        if step.positions is None or positions is None:
            raise ScopeError(
                f"{where}.positions: {lengths}, so that not every position has a counterpart. "
                "Give positions, and from_positions where they differ."
            )
        for number, position in enumerate(step.positions):
            named = isinstance(position, Token) or (isinstance(position, str) and not is_slice(position))
            if named:
                raise ScopeError(
                    f"{where}.positions[{number}]: {lengths}, so the counterpart of a token given by its text is not "
                    "known. Say in from_positions where to take it from."
                )
        there = self._positions(inputs, step.positions, f"{where}.positions (in the source prompt)")
        assert there is not None
        if len(there) != len(positions):
            raise ScopeError(
                f"{where}.positions: {lengths}, and the positions are {list(positions)} in one and {list(there)} in "
                "the other. Say in from_positions which belong together."
            )
        return there

    def _positions(self, inputs: Inputs, positions: Sequence[Position] | None, where: str) -> tuple[int, ...] | None:
        if positions is None:
            return None
        if inputs.length is None:
            raise ScopeError(f"{where}: the input is not tokens, so it has no positions; use index or leave it out.")
        return resolve_positions(positions, inputs.tokens, inputs.length, where)

    @staticmethod
    def _position_axis(inputs: Inputs, visit: Visit, longer: LongerShapes, where: str) -> int:
        if inputs.length is None:
            raise ScopeError(f"{where}: the input is not tokens, so the value has no positions.")
        return position_axis(visit.shape, inputs.length, lambda: longer(visit), where)


def elements_by_place(recipe: Recipe, prompt: str) -> dict[Place, list[tuple[Any, str]]]:
    """What the unedited run of a prompt has to look at: places, with the elements meant and the fields that say so."""
    found: dict[Place, dict[Any, str]] = {}
    for number, step in enumerate(recipe.steps):
        if not step.enabled:
            continue
        if prompt == "base":
            found.setdefault(place_of(step), {}).setdefault(step.element, f"steps[{number}]")
        if isinstance(step, Patch) and step.from_prompt == prompt:
            found.setdefault(source_place(step), {}).setdefault(step.element, f"steps[{number}]")
    return {place: list(elements.items()) for place, elements in found.items()}
