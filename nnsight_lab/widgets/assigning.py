"""The Lab's public attributes: how each is read off the session, and how an assignment changes it.

An assignment is checked as an action of the page is, and strictly: what a page may leave half done (an empty prompt),
Python is told at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ..experiments import AnyMetric, AnyStep, Edit, LensResult, LogitDiff, SweepResult
from ..experiments.steps import Step
from .actions import reveal, select
from .errors import LabError
from .modelcontext import target_of_site
from .session import Session
from .state import Given, State, scope_of, target_of

_replace = msgspec.structs.replace


def _prompt(session: Session, field: str) -> Any:
    prompt = getattr(session.state.experiment, field)
    return prompt.value if isinstance(prompt, Given) else prompt


def _selection(session: Session) -> str | None:
    target = session.state.selection
    return None if target is None else target.site


def _result(session: Session) -> Any:
    shown = session.shown
    return None if shown is None else shown.result


def _history(session: Session) -> tuple[Any, ...]:
    return tuple(record.item(session.model_name) for record in session.history)


VALUES: Mapping[str, Callable[[Session], Any]] = {
    "base": lambda session: _prompt(session, "base"),
    "source": lambda session: _prompt(session, "source"),
    "selection": _selection,
    "steps": lambda session: session.state.experiment.steps,
    "metric": lambda session: session.state.experiment.metric,
    "result": _result,
    "history": _history,
    "sweep_result": lambda session: session.latest(SweepResult),
    "lens_result": lambda session: session.latest(LensResult),
}


def with_prompt(session: Session, state: State, field: str, value: Any) -> State:
    """The state with another prompt. Raises LabError where it cannot be run."""
    prompt = session.context.prompt_of(value)
    if prompt is None or isinstance(prompt, Given):
        return state.become(_replace(state.experiment, **{field: prompt}))
    error = session.prompt_error(prompt)
    if error:
        raise LabError(f"{field}: {error}")
    return state.become(_replace(state.experiment, **{field: prompt}))


def with_steps(session: Session, state: State, value: Any) -> State:
    """The state with these steps, the last edit active. Raises LabError, UnknownSiteError."""
    given = (value,) if isinstance(value, Step) else tuple(value)
    for number, step in enumerate(given):
        if not isinstance(step, AnyStep):
            raise LabError(f"steps[{number}]: a step such as Zero(site=...), not {type(step).__name__}.")
    steps = tuple(session.context.step(step) for step in given)
    active = next((number for number in reversed(range(len(steps))) if isinstance(steps[number], Edit)), None)
    experiment = _replace(state.experiment, steps=steps, active=active)
    if active is None:
        return state.become(experiment)
    state = state.become(_replace(experiment, scope=scope_of(steps[active])))
    return state if state.selection is not None else _replace(state, selection=target_of(steps[active]))


def with_selection(session: Session, state: State, value: Any) -> State:
    """The state with another selection, whose listing is shown. Raises LabError, UnknownSiteError."""
    target = target_of_site(value)
    if target is None:
        return select(state, None)
    target = session.context.target(target)
    return reveal(select(state, target), target)


def with_metric(session: Session, state: State, value: Any) -> State:
    """The state with another metric; a pair of tokens is `LogitDiff`. Raises LabError."""
    metric = LogitDiff(*value) if isinstance(value, tuple) and len(value) == 2 else value
    if metric is not None and not isinstance(metric, AnyMetric):
        raise LabError(f"metric: LogitDiff, Probability, KL, Rank or None, not {type(metric).__name__}.")
    return state.become(_replace(state.experiment, metric=metric))


ASSIGN: Mapping[str, Callable[[Session, Any], Any]] = {
    "base": lambda session, value: session.change(lambda state: with_prompt(session, state, "base", value)),
    "source": lambda session, value: session.change(lambda state: with_prompt(session, state, "source", value)),
    "steps": lambda session, value: session.change(lambda state: with_steps(session, state, value)),
    "selection": lambda session, value: session.change(lambda state: with_selection(session, state, value)),
    "metric": lambda session, value: session.change(lambda state: with_metric(session, state, value)),
}
