"""Which work a change of the state asks for, and how it is carried out: the session's jobs.

What changes the experiment asks for a run of it; what only changes what is looked at, for a look. Sweeps and lenses are
asked for by name. All of it is done in the worker; `at_once` does it in the calling thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from . import wire
from .computing import (
    Ran,
    active_edit,
    check_sweep,
    default_metric,
    lens_code,
    observe_argument,
    plan_sweep,
    run_experiment,
    run_lens,
)
from .errors import LabError
from .history import Captured, Record
from .loading import load, needs_loading
from .naming import step_name
from .state import Experiment, State
from .turns import TURNS
from .wire import Target, Work
from .worker import WORKER, Job, JobCancelled, Worker

if TYPE_CHECKING:
    from .session import Session

_replace = msgspec.structs.replace
WORKS: tuple[Work, ...] = ("load", "run", "sweep", "lens")
# A look at the listing on screen, and the selected value of the run on screen.
LOOK, CAPTURE = "look", "capture"


class Pace(Protocol):
    """How long work goes on: between its chunks it gives way, and ends where it was cancelled."""

    cancelled: threading.Event

    def give_way(self) -> None: ...

    def check(self) -> None: ...


class AtOnce:
    """The pace of work in the caller's thread, whose turn it is."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def give_way(self) -> None:
        """Nobody is let in: it is the user's turn."""

    def check(self) -> None:
        if self.cancelled.is_set():
            raise JobCancelled


class Agenda:
    """The work of one session."""

    def __init__(self, session: Session, worker: Worker = WORKER) -> None:
        self._session = session
        self._worker = worker
        self._at_once: list[tuple[Work, AtOnce]] = []
        self._again: dict[Work, Callable[[], None]] = {"load": self._load_again, "run": lambda: self.run(again=True)}

    # Deciding; called with the session's lock held

    def follow(self, before: State, state: State) -> None:
        """Queue what the way from one state to another asks for."""
        if not before.experiment.same_run(state.experiment):
            self.run()
            return
        if state.selection != before.selection or state.shown_answer != before.shown_answer:
            self.capture()
        if (state.module, state.opened) != (before.module, before.opened):
            self.look()

    def demand(self, action: Any) -> None:
        """Do what an action asks for by name. Raises where that is not possible."""
        match action:
            case wire.Run():
                if self._session.obstacle():
                    raise LabError(self._session.obstacle())
                self.run(again=True)
            case wire.StartSweep():
                self.sweep(action)
            case wire.StartLens():
                self.lens(action)
            case wire.Retry():
                failed = self._session.failed
                if failed is not None:
                    self._again[failed]()
            case wire.Dismiss():
                self._session.dismiss()
            case wire.Cancel():
                self.cancel(action.work)

    def lanes(self) -> tuple[tuple[Work, ...], tuple[Work, ...]]:
        """What is being done, the outermost first, and what is waiting."""
        running, waiting = self._worker.lanes(self._session)
        inline = tuple(work for work, _ in self._at_once)
        return (*inline, *(w for w in WORKS if w in running)), tuple(w for w in WORKS if w in waiting)

    @property
    def working_at_once(self) -> bool:
        """Whether the user's own thread is doing this session's work."""
        return bool(self._at_once)

    # Queueing

    def load(self) -> None:
        """Load the model's weights before anything else, if they are not there."""
        if needs_loading(self._session.model) and not any("load" in lanes for lanes in self.lanes()):
            self._submit("load", self._load, self._loaded, urgent=True)

    def run(self, again: bool = False) -> None:
        """Run the present experiment. One whose numbers are known is shown instead, unless it is to be run again."""
        session = self._session
        experiment, selection = session.state.experiment, session.state.selection
        known = None if again else session.history.find(experiment)
        if known is not None or session.obstacle():
            self._worker.cancel(session, frozenset({"run"}))
        if known is not None:
            session.state = _replace(session.state, shown_answer=known.run)
            self.capture()
            self.look()
        elif not session.obstacle():
            self.load()
            targets = () if selection is None else (selection,)
            self._submit("run", lambda job: run_experiment(session.model, experiment, targets), self._ran)

    def capture(self) -> None:
        """Have the selected value of the run on screen at hand, for its picture."""
        session = self._session
        shown, target = session.shown, session.state.selection
        if shown is None or target is None or session.stale or target in shown.captured:
            return
        self._submit(CAPTURE, lambda job: self.captured(shown.run, target), self._looked)

    def look(self) -> None:
        """Observe the listing on screen in a forward."""
        if not self._session.obstacle() and not needs_loading(self._session.model):
            self._submit(LOOK, lambda job: self._session.observe(), self._looked)

    def sweep(self, asked: wire.StartSweep) -> None:
        """Sweep a step of the present experiment. Raises LabError where there is none."""
        experiment = self._session.state.experiment
        check_sweep(experiment, asked)

        def submit() -> None:
            self.load()
            self._submit("sweep", lambda job: self._sweep(experiment, asked, job), self._grown, long=True)

        self._again["sweep"] = submit
        submit()

    def lens(self, asked: wire.StartLens) -> None:
        """Look at the base prompt through the model's end, at every layer. Raises LabError without a prompt."""
        if self._session.obstacle():
            raise LabError(self._session.obstacle())
        experiment = self._session.state.experiment

        def submit() -> None:
            self.load()
            self._submit("lens", lambda job: self._lens(experiment, asked, job), self._grown, long=True)

        self._again["lens"] = submit
        submit()

    def ask(self, lane: str, work: Callable[[], Any], settled: Callable[[Any, BaseException | None], None]) -> None:
        """Have an answer computed that one page waits for."""
        with self._session.lock:
            self.load()
            self._worker.submit(Job(self._session, lane, lambda job: work(), settled))

    def cancel(self, work: Work | None) -> None:
        """Cancel work of a kind, or all of it."""
        lanes = frozenset(WORKS) if work is None else frozenset({work})
        for running, pace in self._at_once:
            if running in lanes:
                pace.cancelled.set()
        self._worker.cancel(self._session, lanes)

    def close(self) -> None:
        """Cancel everything, answers that are waited for as well."""
        self._worker.cancel(self._session)

    def _submit(
        self,
        lane: str,
        work: Callable[[Job], Any],
        settled: Callable[[str, Any, BaseException | None], None],
        long: bool = False,
        urgent: bool = False,
    ) -> None:
        session = self._session

        def done(value: Any, error: BaseException | None) -> None:
            with session.lock:
                if session.closed:
                    return
                if job.cancelled.is_set() and error is None and not job.long:
                    error = JobCancelled()
                settled(lane, value, error)
                session.outlet.redraw()
            session.outlet.announce()

        job = Job(session, lane, work, done, long, urgent)
        self._worker.submit(job)

    # Settling; called with the lock held

    def _loaded(self, lane: str, value: Any, error: BaseException | None) -> None:
        if error is None:
            self._session.succeeded("load")
            return
        self._session.failed_with("load", error)
        self._worker.cancel(self._session)

    def _ran(self, lane: str, ran: Ran, error: BaseException | None) -> None:
        if error is not None:
            self._session.failed_with("run", error)
        elif self._session.take_run(ran) is not None:
            self.capture()
            self.look()

    def _grown(self, lane: Any, record: Record, error: BaseException | None) -> None:
        if error is None:
            self._session.succeeded(lane)
        else:
            self._session.failed_with(lane, error)

    def _looked(self, lane: str, value: Any, error: BaseException | None) -> None:
        """A look that failed is answered where it is asked for again: by `AskPeek` and `AskTensor`."""

    # Computing

    def _load(self, job: Job) -> None:
        def report(done: int, total: int, unit: str) -> None:
            job.check()
            self._tell("load", done, total, unit)

        load(self._session.model, report)

    def _load_again(self) -> None:
        self.load()
        self.run(again=True)

    def captured(self, run: str, target: Target) -> Captured | None:
        """A value of a run in the history, from what was kept or computed again; None where it holds no tensor."""
        session = self._session
        with session.lock:
            record = session.history[run]
            kept = record.captured.get(target)
            if kept is not None:
                return kept
            experiment = record.experiment
        if target.argument is not None:
            found = observe_argument(session.model, experiment, target)
        else:
            found = run_experiment(session.model, experiment, (target,)).captured.get(target)
        if found is not None:
            with session.lock:
                session.take_captured(run, target, found)
        return found

    def _sweep(self, experiment: Experiment, asked: wire.StartSweep, pace: Pace) -> Record | None:
        session = self._session
        began = time.perf_counter()
        step = active_edit(experiment) if asked.step is None else asked.step
        metric = experiment.metric
        if metric is None:
            metric = default_metric(session.model, experiment, step)
        plan = plan_sweep(experiment, step, asked, metric)
        title = f"sweep {step_name(_replace(plan.step, site=plan.sites[0], positions=None))}"
        record: Record | None = None

        def partial(result: Any) -> None:
            nonlocal record
            with session.lock:
                if record is None:
                    record = session.take_grid("sweep", title, experiment, result)
                else:
                    session.history.grow(record, result, time.perf_counter() - began)
                session.queue_changed()

        def progress(done: int, total: int) -> None:
            self._tell("sweep", done, total, "cells")
            pace.give_way()

        try:
            result = plan.run(session.model, progress=progress, cancel=pace.cancelled, partial=partial)
            partial(result)
        finally:
            with session.lock:
                if record is not None and not record.result.done.any():
                    session.drop(record)
        return record

    def _lens(self, experiment: Experiment, asked: wire.StartLens, pace: Pace) -> Record:
        session = self._session
        began = time.perf_counter()

        def progress(done: int, total: int) -> None:
            pace.check()
            self._tell("lens", done, total, "sites")
            pace.give_way()

        result = run_lens(session.model, experiment, asked.stream, progress)
        seconds = time.perf_counter() - began
        with session.lock:
            title = "lens" if asked.stream == "residual" else f"lens {asked.stream}"
            record = session.take_grid("lens", title, experiment, result, seconds)
            record.code = wire.CodeView(lens_code(session.model, experiment, asked.stream))
            return record

    def _tell(self, work: Work, done: int, total: int, unit: str) -> None:
        with self._session.lock:
            self._session.progress[work] = (done, total, unit)
            self._session.queue_changed()

    # In the caller's thread

    def run_at_once(self) -> Record:
        """Run the present experiment and show it. Raises LabError, and what the run raises."""
        session = self._session
        with session.lock:
            if session.obstacle():
                raise LabError(session.obstacle())
            experiment, selection = session.state.experiment, session.state.selection
        targets = () if selection is None else (selection,)

        def compute(pace: AtOnce) -> Record:
            ran = run_experiment(session.model, experiment, targets)
            with session.lock:
                return session.take_run(ran) or session.history.add_run(experiment, ran.result)

        return self.at_once("run", compute)

    def sweep_at_once(self, asked: wire.StartSweep) -> Record:
        """Sweep a step and show the grid. Raises LabError, and what the sweep raises."""
        experiment = self._session.state.experiment
        check_sweep(experiment, asked)
        record: Record | None = self.at_once("sweep", lambda pace: self._sweep(experiment, asked, pace))
        if record is None:
            raise LabError("The sweep was cancelled before its first cell.")
        return record

    def lens_at_once(self, asked: wire.StartLens) -> Record:
        """Look through the lens and show it. Raises LabError, and what the lens raises."""
        if self._session.obstacle():
            raise LabError(self._session.obstacle())
        experiment = self._session.state.experiment
        record: Record = self.at_once("lens", lambda pace: self._lens(experiment, asked, pace))
        return record

    def at_once(self, work: Work, compute: Callable[[AtOnce], Any]) -> Any:
        """Do work in the calling thread, in the user's turn, and give what it gives. Raises what it raises."""
        session, pace = self._session, AtOnce()
        with TURNS.user():
            with session.lock:
                self._worker.cancel(session, frozenset({work}))
                self._at_once.append((work, pace))
            try:
                session.queue_changed()
                return compute(pace)
            finally:
                with session.lock:
                    self._at_once.remove((work, pace))
                    session.progress.pop(work, None)
                session.queue_changed()
                session.outlet.announce()
