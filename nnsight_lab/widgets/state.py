"""The Lab's state, as data: what is looked at, the experiment, and the experiments to go back to.

Nothing here knows the page, the model or a thread. `actions.apply` makes the next state of one; the Lab guards the
present one with a lock, draws the synced traits from it and queues the work that it asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from ..experiments import AnyMetric, AnyStep, Edit, Patch
from ..experiments.recipe import Prompt, Recipe
from .wire import Scope, Target

# Older experiments than these are not gone back to.
UNDO_DEPTH = 200


@dataclass(frozen=True, eq=False)
class Given:
    """Inputs of the user's that are neither text nor token ids: whatever `model.trace` takes as its first argument."""

    value: Any


AnyPrompt = Prompt | Given


class Experiment(Struct, frozen=True):
    """What is undone and redone.

    Attributes:
        base, source: the prompts; None where there is none.
        steps: of the recipe.
        metric: what sweeps are judged by; None lets the Lab choose.
        active: number of the step that the scope belongs to.
        scope: of the active step, and of the next one.
    """

    base: AnyPrompt | None = None
    source: AnyPrompt | None = None
    steps: tuple[AnyStep, ...] = ()
    metric: AnyMetric | None = None
    active: int | None = None
    scope: Scope = Scope()

    @property
    def content(self) -> tuple[Any, ...]:
        """What a run depends on, and the metric. The rest only says where the next click goes."""
        return self.base, self.source, self.steps, self.metric

    @property
    def enabled(self) -> tuple[AnyStep, ...]:
        """The steps that a run carries out."""
        return tuple(step for step in self.steps if step.enabled)

    def same_run(self, other: Experiment) -> bool:
        """Whether a run of the other gives the same numbers."""
        same_source = self.source == other.source or not (self.patches or other.patches)
        return self.base == other.base and self.enabled == other.enabled and same_source

    @property
    def given(self) -> dict[str, Any]:
        """Inputs that are no prompts, by the name under which `nnsight_lab.experiments.run` takes them."""
        fields = ("base", "source")
        return {f: prompt.value for f in fields if isinstance(prompt := getattr(self, f), Given)}

    @property
    def patches(self) -> bool:
        """Whether an enabled step takes something from the source prompt."""
        return any(isinstance(step, Patch) and step.from_prompt == "source" for step in self.enabled)

    def recipe(self, model: str | None = None) -> Recipe:
        """The experiment as a recipe. Inputs that are no prompts are left out: they are passed to `run`."""
        base, source = (None if isinstance(p, Given) else p for p in (self.base, self.source))
        return Recipe(model=model, base=base, source=source, steps=self.steps)


class State(Struct, frozen=True):
    """Everything that the page's actions change.

    Attributes:
        experiment: the present one.
        past, future: experiments before it, and those that were undone, the nearest last.
        module: path of the module whose listing is shown.
        selection: the value that a click acts on.
        opened: sites whose callees' listings are shown inline.
        shown_answer, shown_sweep, shown_lens: ids of the runs on screen.
    """

    experiment: Experiment = Experiment()
    past: tuple[Experiment, ...] = ()
    future: tuple[Experiment, ...] = ()
    module: str = ""
    selection: Target | None = None
    opened: tuple[str, ...] = ()
    shown_answer: str | None = None
    shown_sweep: str | None = None
    shown_lens: str | None = None

    def become(self, experiment: Experiment) -> State:
        """The state with another experiment, which can be undone where it means another run or another metric."""
        if experiment.content == self.experiment.content:
            return msgspec.structs.replace(self, experiment=experiment)
        past = (*self.past, self.experiment)[-UNDO_DEPTH:]
        return msgspec.structs.replace(self, experiment=experiment, past=past, future=())


def target_of(step: AnyStep) -> Target:
    """The value that a step acts on."""
    return Target(step.site, step.io, None, step.call, step.element)


def scope_of(step: AnyStep) -> Scope:
    """What a step is limited to; nothing for a capture."""
    if not isinstance(step, Edit):
        return Scope()
    return Scope(step.positions, step.from_positions if isinstance(step, Patch) else None, step.heads, step.index)


def with_scope(step: AnyStep, scope: Scope) -> AnyStep:
    """The step limited to `scope`; a capture takes a value whole and stays as it is.

    Raises:
        ValueError: a scope that the step cannot have.
    """
    if not isinstance(step, Edit):
        return step
    fields: dict[str, Any] = {"positions": scope.positions, "heads": scope.heads, "index": scope.index}
    if isinstance(step, Patch):
        fields["from_positions"] = scope.from_positions if scope.positions is not None else None
    return msgspec.structs.replace(step, **fields)
