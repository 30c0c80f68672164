"""What each action of a page does to the state: pure functions, one for each kind.

`apply(state, action, context)` gives the next state, or raises and leaves everything as it was. What an action says
about the model (modules, sites, steps) is checked by the context, which alone knows the model and the runs so far.
Actions that ask for work and change no state (`Run`, `StartSweep`, `Retry`, ...) are none of this module's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from ..experiments import AnyStep, Edit
from . import wire
from .errors import LabError
from .naming import site_path
from .state import AnyPrompt, Experiment, State, scope_of, target_of, with_scope
from .wire import Scope, Target

_replace = msgspec.structs.replace


class Context(Protocol):
    """What actions need to know of the model and of the history. Every method raises where there is no such thing."""

    def module(self, path: str) -> str:
        """The path of a module, as the model spells it."""

    def target(self, target: Target) -> Target:
        """The target with its site as the model spells it."""

    def step(self, step: AnyStep) -> AnyStep:
        """The step with its sites as the model spells them."""

    def callee(self, site: str) -> str:
        """The site of an operation that can be stepped into."""

    def prompt(self, text: str, field: str) -> AnyPrompt:
        """A prompt that a page has sent."""

    def experiment(self, run: str) -> Experiment:
        """The experiment of a run in the history."""

    def kind(self, run: str) -> str:
        """ "run", "sweep" or "lens"."""

    def cell(self, run: str, cell: tuple[int, ...]) -> tuple[AnyStep, frozenset[str]]:
        """The step of a sweep's cell, and all sites that the sweep goes over."""


Handler = Callable[[State, Any, Context], State]
_HANDLERS: dict[type, Handler] = {}


def apply(state: State, action: Any, context: Context) -> State:
    """The state after an action; actions that change none leave it as it is.

    Raises:
        LabError, ExperimentError, ValueError: the action does not fit the state or the model.
    """
    handler = _HANDLERS.get(type(action))
    return state if handler is None else handler(state, action, context)


def _handles(kind: type) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        _HANDLERS[kind] = handler
        return handler

    return register


# Looking


@_handles(wire.ShowModule)
def _show_module(state: State, action: wire.ShowModule, context: Context) -> State:
    module = context.module(action.module)
    if module == state.module:
        return state
    return _replace(state, module=module, opened=())


@_handles(wire.Select)
def _select(state: State, action: wire.Select, context: Context) -> State:
    target = None if action.target is None else context.target(action.target)
    return select(state, target)


@_handles(wire.StepInto)
def _step_into(state: State, action: wire.StepInto, context: Context) -> State:
    site = context.callee(action.site)
    if site in state.opened:
        return state
    return _replace(state, opened=(*state.opened, site))


@_handles(wire.StepOut)
def _step_out(state: State, action: wire.StepOut, context: Context) -> State:
    inside = f"{action.site}."
    return _replace(state, opened=tuple(s for s in state.opened if s != action.site and not s.startswith(inside)))


def select(state: State, target: Target | None) -> State:
    """Select a value. The scope goes to the last edit at it, if there is one.

    Positions are the prompt's and stay for the next step; heads and entries are another value's and are dropped.
    """
    experiment = state.experiment
    if target is not None and target == state.selection:
        return state
    there = [n for n, step in enumerate(experiment.steps) if isinstance(step, Edit) and target_of(step) == target]
    if there:
        active, scope = there[-1], scope_of(experiment.steps[there[-1]])
    else:
        active, scope = None, Scope(experiment.scope.positions, experiment.scope.from_positions)
    return _replace(state, selection=target, experiment=_replace(experiment, active=active, scope=scope))


def reveal(state: State, target: Target) -> State:
    """Show the listing that a value is in, with the callees stepped into on the way to it."""
    path = site_path(target.site)
    inside = (path.prefix(depth) for depth in range(1, len(path.operations)))
    opened = state.opened if path.module == state.module else ()
    missing = tuple(site for site in inside if site not in opened)
    return _replace(state, module=path.module, opened=(*opened, *missing))


# Prompts


@_handles(wire.SetPrompts)
def _set_prompts(state: State, action: wire.SetPrompts, context: Context) -> State:
    changes: dict[str, Any] = {}
    if action.base is not None:
        changes["base"] = context.prompt(action.base, "base")
    if action.source is not None:
        changes["source"] = context.prompt(action.source, "source") if action.source else None
    return state.become(_replace(state.experiment, **changes))


@_handles(wire.SetMetric)
def _set_metric(state: State, action: wire.SetMetric, context: Context) -> State:
    return state.become(_replace(state.experiment, metric=action.metric))


# Steps


@_handles(wire.AddStep)
def _add_step(state: State, action: wire.AddStep, context: Context) -> State:
    step = context.step(action.step)
    if isinstance(step, Edit) and scope_of(step) == Scope():
        scope, instead = state.experiment.scope, _instead_of(state, step)
        if instead is not None:
            scope = scope_of(state.experiment.steps[instead])
        elif target_of(step) != state.selection:
            scope = Scope(scope.positions, scope.from_positions)
        step = with_scope(step, scope)
    return add_step(state, step)


def add_step(state: State, step: AnyStep) -> State:
    """Add a step as it is; an edit takes the place of an edit of the same value. It becomes the active one."""
    steps = list(state.experiment.steps)
    number = _instead_of(state, step)
    if number is None:
        number = len(steps)
        steps.append(step)
    else:
        steps[number] = step
    return _activated(state, tuple(steps), number)


def _instead_of(state: State, step: AnyStep) -> int | None:
    """The number of the step that a new one replaces: of several at the same value the active one, else the last."""
    experiment = state.experiment
    kinds = Edit if isinstance(step, Edit) else type(step)
    there = [
        number
        for number, present in enumerate(experiment.steps)
        if isinstance(present, kinds) and target_of(present) == target_of(step)
    ]
    if experiment.active in there:
        return experiment.active
    return there[-1] if there else None


@_handles(wire.ChangeStep)
def _change_step(state: State, action: wire.ChangeStep, context: Context) -> State:
    _existing(state, action.number)
    steps = list(state.experiment.steps)
    steps[action.number] = context.step(action.step)
    return _activated(state, tuple(steps), action.number)


@_handles(wire.SetScope)
def _set_scope(state: State, action: wire.SetScope, context: Context) -> State:
    experiment, active = state.experiment, state.experiment.active
    steps = list(experiment.steps)
    if active is not None:
        steps[active] = with_scope(steps[active], action.scope)
    return state.become(_replace(experiment, steps=tuple(steps), scope=action.scope))


@_handles(wire.EnableStep)
def _enable_step(state: State, action: wire.EnableStep, context: Context) -> State:
    _existing(state, action.number)
    steps = list(state.experiment.steps)
    steps[action.number] = _replace(steps[action.number], enabled=action.enabled)
    return state.become(_replace(state.experiment, steps=tuple(steps)))


@_handles(wire.RemoveStep)
def _remove_step(state: State, action: wire.RemoveStep, context: Context) -> State:
    _existing(state, action.number)
    experiment, number = state.experiment, action.number
    steps = (*experiment.steps[:number], *experiment.steps[number + 1 :])
    active = experiment.active
    if active is not None:
        active = None if active == number else active - (active > number)
    return state.become(_replace(experiment, steps=steps, active=active))


@_handles(wire.ActivateStep)
def _activate_step(state: State, action: wire.ActivateStep, context: Context) -> State:
    if action.number is None:
        return _replace(state, experiment=_replace(state.experiment, active=None))
    _existing(state, action.number)
    return _activated(state, state.experiment.steps, action.number)


@_handles(wire.ClearSteps)
def _clear_steps(state: State, action: wire.ClearSteps, context: Context) -> State:
    return state.become(_replace(state.experiment, steps=(), active=None))


@_handles(wire.DisableAll)
def _disable_all(state: State, action: wire.DisableAll, context: Context) -> State:
    steps = tuple(_replace(step, enabled=False) for step in state.experiment.steps)
    return state.become(_replace(state.experiment, steps=steps))


@_handles(wire.TakeCell)
def _take_cell(state: State, action: wire.TakeCell, context: Context) -> State:
    """The cell stands for its step alone on the sweep's prompts, so the other edits are switched off."""
    step, sites = context.cell(action.run, action.cell)
    swept = context.experiment(action.run)
    steps = [_replace(s, enabled=False) if isinstance(s, Edit) else s for s in state.experiment.steps]
    for number, present in enumerate(steps):
        if type(present) is type(step) and present.site in sites:
            steps[number] = step
            break
    else:
        number = len(steps)
        steps.append(step)
    with_prompts = _replace(state.experiment, base=swept.base, source=swept.source)
    return _activated(state, tuple(steps), number, with_prompts)


def _activated(state: State, steps: tuple[AnyStep, ...], number: int, experiment: Experiment | None = None) -> State:
    """The state with these steps, of which one is active and its target selected."""
    step = steps[number]
    changed = _replace(experiment or state.experiment, steps=steps, active=number, scope=scope_of(step))
    target = target_of(step)
    return reveal(_replace(state.become(changed), selection=target), target)


def _existing(state: State, number: int) -> None:
    count = len(state.experiment.steps)
    if not 0 <= number < count:
        raise LabError(f"There is no step {number}: there are {count}, counted from 0.")


# Going back


@_handles(wire.Undo)
def _undo(state: State, action: wire.Undo, context: Context) -> State:
    if not state.past:
        return state
    *past, experiment = state.past
    future = (*state.future, state.experiment)
    return _replace(state, past=tuple(past), future=future, experiment=experiment)


@_handles(wire.Redo)
def _redo(state: State, action: wire.Redo, context: Context) -> State:
    if not state.future:
        return state
    *future, experiment = state.future
    past = (*state.past, state.experiment)
    return _replace(state, past=past, future=tuple(future), experiment=experiment)


@_handles(wire.Restore)
def _restore(state: State, action: wire.Restore, context: Context) -> State:
    shown = {"run": "shown_answer", "sweep": "shown_sweep", "lens": "shown_lens"}[context.kind(action.run)]
    return _replace(state.become(context.experiment(action.run)), **{shown: action.run})
