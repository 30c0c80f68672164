"""One run of a model under a trace: the coroutine, its two sides, and how they take turns.

The model runs in a greenlet of its own; the body of the `with` block stays where the user wrote it. `read` switches
to the model, which runs until the awaited point is reached and switches back; nothing else ever runs at the same
time, and there is no second thread. The thread-local switches of torch are exchanged at each turn, context
variables are copied once at the start.

A run owns everything it installs (taps, rewritten forwards) and takes it all away in `close`, whatever happened.
Cost: a read is two greenlet switches and a few dictionary look-ups.
"""

from __future__ import annotations

import contextvars
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from greenlet import GreenletExit, getcurrent, greenlet

from . import diagnosis, threadstate
from .errors import InputAccessError, OutsideTraceError, SkipTooLateError, TraceError
from .functions import innermost, rebuild
from .instruments import ForwardSlot, slot_of
from .points import ENTER, LEAVE, Point
from .tables import OperationTable
from .taps import Tap, attach, detach, tap_of

if TYPE_CHECKING:
    from torch import nn

    from .instruments import Instruments

_open_runs: contextvars.ContextVar[tuple[Run, ...]] = contextvars.ContextVar("nnsight_lab_runs", default=())


class Unwind(GreenletExit):
    """Thrown into a paused model to take its frames down; ends its greenlet quietly."""


class ModelGreenlet(greenlet):
    """A greenlet that runs a model; taps find their run through it."""

    nnsight_run: Run | None = None


def current_run(owner: object) -> Run | None:
    """The innermost open run of `owner`'s model in this context, or None."""
    for run in reversed(_open_runs.get()):
        if run.owner is owner and not run.closed:
            return run
    return None


class Run:
    """One forward (or generation) with a body that reads and edits it.

    Args:
        owner: the wrapper whose sites the body addresses.
        instruments: the taps of the wrapped tree and the tables of instrumented forwards, made lazily.
        call: runs the model; takes no arguments and returns the model's result.
    """

    def __init__(self, owner: Any, instruments: Instruments, call: Callable[[], Any]) -> None:
        self.owner = owner
        self.instruments = instruments
        self.call = call
        self.points: dict[Tap, Point] = {}
        self.tables: dict[nn.Module, OperationTable] = {}
        self.forwards: dict[nn.Module, Callable[..., Any]] = {}
        self.calls: defaultdict[Tap, int] = defaultdict(int)
        self.stack: list[Tap] = []
        self.at: Point | None = None
        self.phase = ""
        self.last_address: str | None = None
        self.closed = False
        self.finished = False
        self.returned = False
        self.result: Any = None
        self.failure: TraceError | None = None
        self.error: str | None = None
        self._greenlet: ModelGreenlet | None = None
        self._taps: list[Tap] = []
        self._slots: list[ForwardSlot] = []
        self._state = threadstate.capture()
        self._held: Any = None
        self._token: contextvars.Token[tuple[Run, ...]] | None = None
        self._context: contextvars.Context | None = None

    def open(self) -> None:
        self._context = contextvars.copy_context()
        self._token = _open_runs.set((*_open_runs.get(), self))

    # The body's side

    def read(self, point: Point, phase: str, index: int | None = None) -> Any:
        """The value of `point` at `phase`, running the model as far as needed.

        Returns the pair (args, kwargs) for ENTER and the call's value for LEAVE. `index` names one pass; without it
        the present pass (when paused there) or the next one is meant.
        """
        if not (
            self.at is point
            and (phase == ENTER or self.phase == LEAVE)
            and index in (None, self._pass_here())
        ):
            self._reach(point, phase, index)
        return (point.args, point.kwargs) if phase == ENTER else point.value

    def write(self, point: Point, phase: str, change: Callable[[Any], Any], index: int | None = None) -> None:
        """Apply `change` to the value of `point` at `phase`: at once when paused there, else when it is reached."""
        here = self.at is point and self.phase == phase and index in (None, self._pass_here())
        behind = point.passes(phase)
        if not here and behind and index is None:
            # Passed before: a further pass is found by running on, so that its absence is reported at this line.
            self._reach(point, phase, None)
            here = True
        if here:
            if phase == ENTER:
                point.args, point.kwargs = change((point.args, point.kwargs))
            else:
                point.value = change(point.value)
            return
        if index is not None and index < behind:
            raise diagnosis.too_late(self, point, phase, index)
        if self.finished:
            raise diagnosis.missed(self, point, phase, index)
        point.edit(phase, behind if index is None else index, change)

    def _reach(self, point: Point, phase: str, index: int | None) -> None:
        behind = point.passes(phase)
        if index is not None and index < behind:
            raise diagnosis.too_late(self, point, phase, index)
        point.wait(
            phase, behind + (self.at is point and self.phase == phase == LEAVE) if index is None else index
        )
        try:
            self._advance()
        finally:
            point.wait(phase, -1)
        if self.at is not point:
            raise diagnosis.missed(self, point, phase, index)

    def skip(self, point: Point, value: Any, index: int | None = None) -> None:
        """Make the call at `point` return `value` without running."""
        if self.at is point and self.phase == ENTER and index in (None, self._pass_here()):
            point.skips[point.begun - 1] = value
            return
        if point.begun > point.ended and index is None:
            raise SkipTooLateError(
                f"{point.address}.skip(value) came after the call had begun. Skip it before reading anything that runs inside it."
            )
        if self.finished or (index is not None and index < point.begun):
            raise diagnosis.missed(self, point, ENTER, index, "skip")
        point.skips[point.begun if index is None else index] = value

    def first_input(self, point: Point, index: int | None = None) -> Any:
        """The first argument of the call at `point`: positional, else the first keyword's value."""
        args, kwargs = self.read(point, ENTER, index)
        if args:
            return args[0]
        if kwargs:
            return next(iter(kwargs.values()))
        raise InputAccessError(
            f"{point.address} was called without arguments, so it has no .input. Use .inputs to see ((), {{}})."
        )

    def module_point(self, module: nn.Module, address: str) -> Point:
        """The point of `module`; its passes so far are known from the tap."""
        tap = tap_of(module)
        point = self.points.get(tap)
        if point is None:
            self.ensure_taps()
            if tap not in self.instruments.tap_set:
                self.instruments.refresh()
                self._attach([tap])
            begun = self.calls[tap]
            point = self.points[tap] = Point(self, address, begun, begun - self.stack.count(tap))
        return point

    def module_table(self, module: nn.Module, address: str, everything: bool = False) -> OperationTable:
        """The table of `module`'s forward, observed from its next call on.

        Raises:
            OutOfOrderError: that forward is running now, unobserved.
            SourceUnavailableError: it has no Python source.
        """
        table = self.tables.get(module)
        if table is None or (everything and not table.everything):
            self.ensure_taps()
            tap = tap_of(module)
            begun = self.calls[tap]
            if tap in self.stack or (table is not None and begun > table.before):
                raise diagnosis.source_too_late(self, address)
            if table is None:
                table = OperationTable(self, address, before=begun)
            table.everything = everything
            self._observe(module, table)
            self.tables[module] = table
        return table

    def _observe(self, module: nn.Module, table: OperationTable) -> None:
        original = slot.original if (slot := slot_of(module)).users else getattr(module, slot.name)
        bound = table.bind(innermost(original, "forward"))
        if module not in self.forwards:
            slot.attach()
            self._slots.append(slot)
        self.forwards[module] = rebuild(slot.original, lambda inner: bound.bind(inner, table.gate), "forward")

    def ensure_taps(self) -> None:
        if not self._taps:
            self._attach(self.instruments.taps())
            for module, address in self.instruments.touched.items():
                self.module_table(module, address)

    def _attach(self, taps: list[Tap]) -> None:
        attach(taps)
        self._taps.extend(taps)

    def stop(self) -> None:
        """Take the model down where it stands."""
        model = self._greenlet
        self.finished = True
        if model is not None and not model.dead:
            self.at = None
            self._turn(lambda: model.throw(Unwind))

    def finish(self) -> None:
        """Run the model to its end and check that every assignment found its site."""
        while not self.finished:
            self._advance()
        for point in self._all_points():
            attribute = point.pending()
            if attribute is not None:
                raise diagnosis.missed(self, point, LEAVE if attribute == LEAVE else ENTER, None, attribute)

    def close(self) -> None:
        """Leave the model as it was found. Idempotent."""
        if self.closed:
            return
        try:
            self.stop()
        finally:
            self.closed = True
            detach(self._taps)
            self._taps = []
            for slot in self._slots:
                slot.detach()
            self._slots = []
            self.forwards.clear()
            for table in self.tables.values():
                table.clear()
            self.tables.clear()
            self.points.clear()
            self.stack.clear()
            self.at = None
            self._greenlet = None
            self._context = None
            if self._token is not None:
                _open_runs.set(tuple(run for run in _open_runs.get() if run is not self))
                self._token = None

    # The turn itself

    def _advance(self) -> None:
        """Let the model run until it pauses or ends."""
        if self.finished:
            return
        model = self._greenlet
        if model is None:
            model = self._greenlet = ModelGreenlet(self.call)
            model.nnsight_run = self
            model.gr_context = self._context
            self._context = None
        self.at = None
        try:
            result = self._turn(model.switch)
        except BaseException as error:
            self.finished = True
            self.error = type(error).__name__
            raise
        if model.dead:
            self.finished = True
            self.returned = True
            self.result = result
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def _turn(self, switch: Callable[[], Any]) -> Any:
        model = self._greenlet
        assert model is not None
        model.parent = getcurrent()
        mine = present = threadstate.capture()
        if self._held is not None:
            self._held = None
            present = threadstate.capture()
        guard = None if present == self._state else threadstate.exchange(present, self._state)
        try:
            return switch()
        finally:
            theirs = self._state = threadstate.capture()
            if guard is not None:
                guard = None
                theirs = threadstate.capture()
            if theirs != mine:
                self._held = threadstate.exchange(theirs, mine)

    # The model's side

    def pause(self, point: Point, phase: str) -> None:
        """Hand the turn to the body, at `point`."""
        if self.finished:  # the model is being taken down
            return
        self.at = point
        self.phase = phase
        self.last_address = f"{point.address}.{phase}"
        self._yield()

    def fail(self, error: TraceError) -> None:
        """Hand the turn to the body with an error that belongs to the body's line."""
        if self.finished:
            return
        self.failure = error
        self._yield()

    @staticmethod
    def _yield() -> None:
        parent = getcurrent().parent
        assert parent is not None
        parent.switch()

    def _pass_here(self) -> int:
        point = self.at
        assert point is not None
        return point.begun - 1 if self.phase == ENTER else point.ended

    def _all_points(self) -> Iterator[Point]:
        yield from self.points.values()
        for table in self.tables.values():
            yield from table.all_points()


def require_run(owner: object, address: str) -> Run:
    """The open run of `owner`, or an error that says how to open one."""
    run = current_run(owner)
    if run is None:
        raise OutsideTraceError(
            f"{address} has a value only while a trace is open. Write it inside `with model.trace(...):` "
            "(values read there stay usable after the block)."
        )
    return run
