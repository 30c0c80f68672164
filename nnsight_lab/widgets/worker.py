"""The one thread of the process in which all Labs compute, and its queue.

A job belongs to an owner (a Lab) and a lane. Of each owner's lane only the latest job waits; one that it replaces is
settled as superseded. Short jobs (a run, a picture) go before long ones (a sweep), and also in between: a long job
calls `give_way` after each of its chunks, where short jobs are carried out and the user's cell is let in (`turns`).

Every job is settled exactly once, with a value, an error, or the news that it was replaced or cancelled; whatever a
job raises, the thread goes on. It ends when nothing has come for a while and is started again by the next job. When the
interpreter exits it is stopped first: a thread that is killed inside one of torch's C++ frames takes the process down.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from .turns import TURNS, Turns

_log = logging.getLogger("nnsight_lab")
_IDLE_SECONDS = 60.0
_EXIT_SECONDS = 30.0


class JobCancelled(Exception):
    """The job was cancelled, before it began or between its chunks."""


class JobSuperseded(Exception):
    """A later job of the same lane took its place."""


class Owner(Protocol):
    """Whom jobs belong to."""

    def queue_changed(self) -> None:
        """Something of the owner's began, ended or is waiting."""


@dataclass(eq=False)
class Job:
    """Work for the worker.

    Attributes:
        owner: whom it belongs to.
        lane: of jobs of one lane the latest wins.
        work: computes the value; it is called with the job, and may ask `cancelled` and call `give_way`.
        settled: called once, in whichever thread, with the value and the error; the error is None where it went well.
        long: whether it lets short jobs go before it.
        urgent: whether it goes before all others, as loading does.
    """

    owner: Owner
    lane: str
    work: Callable[[Job], Any]
    settled: Callable[[Any, BaseException | None], None]
    long: bool = False
    urgent: bool = False
    cancelled: threading.Event = field(default_factory=threading.Event)
    number: int = 0
    _worker: Worker | None = None

    @property
    def order(self) -> tuple[bool, bool, int]:
        return not self.urgent, self.long, self.number

    def give_way(self) -> None:
        """Between two chunks: let short jobs and the user's cell go first."""
        if self._worker is not None:
            self._worker.give_way(self)

    def check(self) -> None:
        """Raises JobCancelled where it was cancelled."""
        if self.cancelled.is_set():
            raise JobCancelled

    def settle(self, value: Any, error: BaseException | None) -> None:
        try:
            self.settled(value, error)
        except Exception:
            _log.exception("A reply of the Lab could not be sent")


class Worker:
    """The queue and its thread."""

    def __init__(self, turns: Turns = TURNS) -> None:
        self._turns = turns
        self._condition = threading.Condition()
        self._waiting: list[Job] = []
        self._running: list[Job] = []
        self._settling: list[Job] = []
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._numbers = itertools.count()
        turns.changed = self._cell_changed

    # Asking

    def submit(self, job: Job) -> None:
        """Queue a job. A waiting one of its lane is superseded; a long one that runs is cancelled."""
        if self._stopped:
            job.settle(None, JobCancelled())
            return
        with self._condition:
            job.number, job._worker = next(self._numbers), self
            replaced = [other for other in self._waiting if _same_lane(other, job)]
            for other in replaced:
                self._waiting.remove(other)
            for other in self._running:
                if _same_lane(other, job) and other.long:
                    other.cancelled.set()
            self._waiting.append(job)
            if self._thread is None:
                self._thread = _thread(self._loop)
                self._thread.start()
            self._condition.notify_all()
        for other in replaced:
            other.settle(None, JobSuperseded())
        job.owner.queue_changed()

    def cancel(self, owner: Owner, lanes: frozenset[str] | None = None) -> int:
        """Cancel the owner's jobs of these lanes (None: all), and say how many that are.

        Waiting ones are dropped; running ones stop at the end of their chunk, if they have chunks.
        """

        def meant(job: Job) -> bool:
            return job.owner is owner and (lanes is None or job.lane in lanes)

        with self._condition:
            dropped = [job for job in self._waiting if meant(job)]
            running = [job for job in self._running if meant(job)]
            for job in dropped:
                self._waiting.remove(job)
            for job in (*dropped, *running):
                job.cancelled.set()
        for job in dropped:
            job.settle(None, JobCancelled())
        if dropped:
            owner.queue_changed()
        return len(dropped) + len(running)

    def lanes(self, owner: Owner) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Lanes of the owner's jobs: running, the outermost first, and waiting."""
        with self._condition:
            running = tuple(job.lane for job in self._running if job.owner is owner)
            waiting = tuple(job.lane for job in sorted(self._waiting, key=_order) if job.owner is owner)
        return running, waiting

    def idle(self) -> bool:
        """Whether nothing runs, nothing waits, and all is settled."""
        with self._condition:
            return not (self._running or self._waiting or self._settling)

    def stop(self) -> None:
        """Drop what waits, cancel what runs, and wait for the thread as far as it is computing."""
        with self._condition:
            self._stopped = True
            dropped, self._waiting = self._waiting, []
            for job in (*dropped, *self._running):
                job.cancelled.set()
            self._condition.notify_all()
            thread = self._thread
        for job in dropped:
            job.settle(None, JobCancelled())
        until = time.monotonic() + _EXIT_SECONDS
        while thread is not None and self._running and time.monotonic() < until:
            thread.join(0.05)

    # Doing

    def give_way(self, job: Job) -> None:
        """Carry out the short jobs that are waiting, and let the user's cell in; called by a long job."""
        self._turns.give_way()
        while (short := self._take(lambda other: other.urgent or not other.long)) is not None:
            self._perform(short)
            self._turns.give_way()

    def _loop(self) -> None:
        while True:
            with self._condition:
                if not self._waiting:
                    self._condition.wait_for(lambda: bool(self._waiting) or self._stopped, _IDLE_SECONDS)
                if self._stopped or not self._waiting:
                    self._thread = None
                    return
            # A job is taken once it is the worker's turn, so that until then a later one can replace it.
            with self._turns.worker():
                job = self._take(lambda other: True)
                if job is not None:
                    self._perform(job)

    def _take(self, fits: Callable[[Job], bool]) -> Job | None:
        with self._condition:
            job = min((job for job in self._waiting if fits(job)), key=_order, default=None)
            if job is not None:
                self._waiting.remove(job)
                self._running.append(job)
            return job

    def _perform(self, job: Job) -> None:
        job.owner.queue_changed()
        value, error = None, None
        try:
            self._turns.compute_as_main()
            job.check()
            value = job.work(job)
        except BaseException as raised:  # an interrupt meant for the user's cell must not end the thread
            error = raised
        finally:
            with self._condition:
                self._running.remove(job)
                self._settling.append(job)
        job.settle(value, error)
        job.owner.queue_changed()
        with self._condition:
            self._settling.remove(job)

    def _cell_changed(self) -> None:
        with self._condition:
            owners = {id(job.owner): job.owner for job in (*self._running, *self._waiting)}
        for owner in owners.values():
            owner.queue_changed()


def _order(job: Job) -> tuple[bool, bool, int]:
    return job.order


def _same_lane(one: Job, other: Job) -> bool:
    return one.owner is other.owner and one.lane == other.lane


def _thread(target: Callable[[], None]) -> threading.Thread:
    """A daemon thread; in marimo one of its own, which alone may send to the page."""
    kind: type[threading.Thread] = threading.Thread
    marimo = sys.modules.get("marimo")
    if marimo is not None and marimo.running_in_notebook():
        kind = marimo.Thread
    return kind(target=target, name="nnsight-lab", daemon=True)


WORKER = Worker()
atexit.register(WORKER.stop)
