"""What a Lab is without its widget: the state, the history, and what has failed.

Requests and Python's assignments come in any thread (a subshell's, the main one, the worker's) and are taken one at a
time under a lock, which is never held while waiting for a turn to compute. What is computed comes back in the worker's
thread, or in the caller's for the methods that compute at once, and becomes part of the state under the same lock.
Results are judged by their experiment: one that is not the present one any more is not shown.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from ..engine import NNsight
from ..experiments import Capture, ExperimentError, LensResult, Result, SiteReport, SweepResult, run
from ..experiments.models import name_of
from . import views, wire
from .actions import apply
from .computing import Ran
from .errors import LabError
from .failures import failure_of
from .history import Captured, History, Kind, Record
from .modelcontext import ModelContext
from .sights import Sights
from .state import AnyPrompt, Experiment, State
from .wire import Failure, Work
from .worker import JobCancelled, JobSuperseded

_replace = msgspec.structs.replace
_SHOWN = {"sweep": "shown_sweep", "lens": "shown_lens"}


class Outlet(Protocol):
    """Where a session shows itself."""

    def redraw(self) -> int:
        """Something has changed; called with the session's lock held. Gives the view's revision."""

    def announce(self) -> None:
        """The same, called without the lock: the place for code of the user's."""


class Session:
    """One Lab's state.

    Attributes:
        state: the present one.
        history: of runs, sweeps and lenses.
        failure, failed: of the latest work that failed.
        progress: of work that is being done: done, total, unit.
        closed: whether the Lab is gone; what still arrives is dropped.
    """

    def __init__(self, model: NNsight, outlet: Outlet) -> None:
        from .agenda import Agenda

        self.model = model
        self.outlet = outlet
        self.lock = threading.RLock()
        self.history = History()
        self.context = ModelContext(model, self.history)
        self.sights = Sights(model)
        self._snapshot: tuple[Any, wire.Snapshot] | None = None
        self.state = State()
        self.failure: Failure | None = None
        self.failed: Work | None = None
        self.progress: dict[Work, tuple[int, int, str]] = {}
        self.closed = False
        self.agenda = Agenda(self)

    # Changing

    def start(self, base: Any, source: Any, steps: Any, module: str | None, selection: Any) -> None:
        """Make the first state, as Python gives it. Raises as assignments do."""
        from .assigning import with_prompt, with_selection, with_steps

        state = with_prompt(self, self.state, "base", base)
        state = with_prompt(self, state, "source", source)
        state = with_steps(self, state, steps)
        if selection is not None or state.selection is not None:
            state = with_selection(self, state, state.selection if selection is None else selection)
        if module is not None:
            state = _replace(state, module=self.context.module(module))
        self.state = _replace(state, past=(), future=())

    def open(self) -> None:
        """Begin to work: run what there is to run."""
        with self.lock:
            self.agenda.run()
            self.outlet.redraw()

    def act(self, action: Any) -> int:
        """Carry an action out: change the state, and queue the work that follows. Gives the view's revision.

        Raises:
            LabError, ExperimentError, ValueError: it does not fit the state or the model; nothing is changed.
        """

        return self.change(lambda state: apply(state, action, self.context), action)

    def change(self, change: Callable[[State], State], action: Any = None) -> int:
        """Put another state in the place of the present one, and do what `action` asks for. Gives the view's revision.

        Raises what `change` does.
        """
        with self.lock:
            before = self.state
            self.state = change(before)
            self.agenda.follow(before, self.state)
            self.agenda.demand(action)
            revision = self.outlet.redraw()
        self.outlet.announce()
        return revision

    # What is on screen

    @property
    def shown(self) -> Record | None:
        """The run on screen."""
        run = self.state.shown_answer
        return None if run is None else self.history[run]

    @property
    def stale(self) -> bool:
        """Whether the run on screen is of another experiment than the present one."""
        shown = self.shown
        return shown is not None and not shown.experiment.same_run(self.state.experiment)

    @property
    def reports(self) -> tuple[SiteReport, ...]:
        """What became of the steps in the run on screen."""
        shown = self.shown
        return () if shown is None else shown.result.sites

    @property
    def code(self) -> wire.CodeView:
        """The code of the present experiment: that of the run on screen, if it is one of it."""
        obstacle = self.obstacle()
        shown = self.shown
        if obstacle or shown is None or self.stale:
            return wire.CodeView("", obstacle)
        return shown.code

    @property
    def snapshot(self) -> wire.Snapshot | None:
        """A small picture of the selected value in the run on screen."""
        shown, target = self.shown, self.state.selection
        value = None if shown is None or target is None else shown.captured.get(target)
        if shown is None or target is None or value is None:
            return None
        key = (shown.run, target, value)
        if self._snapshot is None or self._snapshot[0] != key:
            tokens = self.sights.tokens(shown.experiment)
            drawn = views.snapshot(target, views.label_of(target), value.edited, tokens, self.sights.heads)
            self._snapshot = key, drawn
        return self._snapshot[1]

    @property
    def model_name(self) -> str | None:
        """The name by which a recipe can load the model; None where there is none."""
        return name_of(self.model)

    def prompt_error(self, prompt: AnyPrompt) -> str:
        """Why a prompt cannot be run, or an empty string."""
        return self.sights.prompt(prompt).error

    def answer_of(self, run: str) -> wire.Answer:
        """The answer of a run in the history. Raises LabError where there is none."""
        record = self.history[run]
        if record.answer is None:
            raise LabError(f"{run} is a {record.kind}, which has no answer.")
        return record.answer

    def code_of(self, run: str) -> str:
        """The code of a run, sweep or lens. Raises LabError, ExperimentError."""
        record = self.history[run]
        return record.code.code if record.kind == "lens" else str(record.result.code())

    def observe(self) -> Any:
        """Observe the listing on screen in a forward of the present experiment."""
        state = self.state
        return self.sights.observation(state.module, state.opened, state.experiment)

    def activation_figure(self, **options: Any) -> Any:
        """The selected value of the present experiment as a plotly figure. Raises LabError where there is none."""
        target, experiment = self.state.selection, self.state.experiment
        if target is None or target.argument is not None:
            raise LabError("Select an operation or module to draw: lab.selection = ...")
        kept = Capture(target.site, target.io, target.element, target.call)
        result = run(experiment.recipe().with_steps(*experiment.steps, kept), self.model, **experiment.given)
        action = next((a for a in result.plan.actions if a.step == len(experiment.steps)), None)
        if action is None:
            raise LabError(result.sites[-1].message)
        key = result.plan.key(action)
        axes = views.axes_of(result.activations[key], result.tokens, self.sights.heads)
        positions = tuple(number for number, axis in enumerate(axes) if axis.labels)
        return result.plot(key, kind="activation", **{"positions": positions or None, **options})

    def obstacle(self) -> str:
        """Why the present experiment cannot be run, or an empty string."""
        experiment = self.state.experiment
        if experiment.base is None:
            return "There is no base prompt to run: set one."
        for field in ("base", "source") if experiment.patches else ("base",):
            error = self.sights.prompt(getattr(experiment, field)).error
            if error:
                return f"{field}: {error}"
        for number, step in enumerate(self.sights.steps(experiment, ())):
            if step.error and step.step.enabled:
                return f"step {number}: {step.error}"
        return ""

    # What comes of work; all of these are called with the lock held

    def take_run(self, ran: Ran) -> Record | None:
        """Make a run part of the history and show it, unless the present experiment has become another one."""
        if not ran.experiment.same_run(self.state.experiment):
            return None
        record = self.history.add_run(ran.experiment, ran.result)
        for target, value in ran.captured.items():
            self.history.keep(record.run, target, value)
        record.answer = views.answer_view(record.run, ran.result, record.captured)
        record.code = _code(ran.result)
        self.state = _replace(self.state, shown_answer=record.run)
        self.succeeded("run")
        return record

    def take_captured(self, run: str, target: wire.Target, value: Captured) -> None:
        """Keep a captured value, of which pictures can be asked from now on."""
        self.history.keep(run, target, value)
        record = self.history[run]
        if record.kind == "run":
            record.answer = views.answer_view(run, record.result, record.captured)

    def take_grid(self, kind: Kind, title: str, experiment: Experiment, result: Any, seconds: float = 0.0) -> Record:
        """Make a sweep or a lens part of the history, from its first cell on, and show it."""
        record = self.history.add_grid(kind, title, experiment, result, seconds)
        self.state = _replace(self.state, **{_SHOWN[kind]: record.run})
        return record

    def drop(self, record: Record) -> None:
        """Forget a grid of which nothing was computed."""
        self.history.remove(record.run)
        field = _SHOWN[record.kind]
        if getattr(self.state, field) == record.run:
            earlier = [other.run for other in self.history if other.kind == record.kind]
            self.state = _replace(self.state, **{field: earlier[-1] if earlier else None})

    def failed_with(self, work: Work, error: BaseException) -> None:
        """Keep an error until work of its kind succeeds or it is dismissed. Being cancelled is none."""
        self.progress.pop(work, None)
        if not isinstance(error, (JobCancelled, JobSuperseded)):
            self.failure, self.failed = failure_of(error), work

    def succeeded(self, work: Work) -> None:
        self.progress.pop(work, None)
        if self.failed == work:
            self.dismiss()

    def dismiss(self) -> None:
        self.failure = self.failed = None

    def latest(self, kind: type[SweepResult] | type[LensResult]) -> Any:
        """The sweep or lens on screen."""
        run = self.state.shown_sweep if kind is SweepResult else self.state.shown_lens
        return None if run is None else self.history[run].result

    def queue_changed(self) -> None:
        """Work of this session's began or ended, or is waiting."""
        with self.lock:
            if not self.closed:
                self.outlet.redraw()

    def close(self) -> None:
        """Drop all work; what still runs is not shown any more."""
        with self.lock:
            self.closed = True
        self.agenda.close()


def _code(result: Result) -> wire.CodeView:
    try:
        return wire.CodeView(result.code())
    except ExperimentError as error:
        return wire.CodeView("", str(error))
