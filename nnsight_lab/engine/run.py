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
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from greenlet import GreenletExit, getcurrent, greenlet
from torch import nn

from . import diagnosis
from .errors import InputAccessError, OutsideTraceError, SkipTooLateError, TraceError
from .instruments import Twin
from .points import ENTER, LEAVE, Point
from .tables import OperationTable
from .taps import Tap, attach, detach, observe, tap_of
from .threadstate import Alternation

if TYPE_CHECKING:
    from .instruments import Instruments

_CALL_CODE = nn.Module._call_impl.__code__
_open_runs: contextvars.ContextVar[tuple[Run, ...]] = contextvars.ContextVar("nnsight_lab_runs", default=())


class Unwind(GreenletExit):
    """Thrown into a paused model to take its frames down; ends its greenlet quietly."""


class ModelGreenlet(greenlet):
    """A greenlet that runs a model; taps find their run through it."""

    nnsight_run: Run | None = None


def current_run(owner: object) -> Run | None:
    """The open run of `owner`'s model that the calling code belongs to, or None.

    Of several it is the innermost whose `with` block is being executed, which tells the bodies of two generators
    apart; when no block is on the stack (a trace opened by a helper), the one opened last.
    """
    found = [run for run in _open_runs.get() if run.owner is owner and not run.closed]
    if len(found) < 2:
        return found[0] if found else None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        for run in reversed(found):
            if run.block == (id(frame), frame.f_code):
                return run
        frame = frame.f_back
    return found[-1]


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
        self.forwards: dict[nn.Module, Twin] = {}
        self.observed: dict[Tap, int] = {}
        self.late: dict[Tap, list[Point]] = {}
        self.disturbed = False
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
        self._before: dict[Tap, int] = {}
        self.block: tuple[int, CodeType] | None = None
        self._turns: Alternation | None = None
        self._context: contextvars.Context | None = None

    def open(self, block: FrameType) -> None:
        """Make this the run of the `with` block that `block` executes. The frame itself is not kept."""
        self._context = contextvars.copy_context()
        self._turns = Alternation()
        self.block = (id(block), block.f_code)
        _open_runs.set((*(run for run in _open_runs.get() if not run.closed), self))

    # The body's side

    def read(self, point: Point, phase: str, index: int | None = None) -> Any:
        """The value of `point` at `phase`, running the model as far as needed.

        Returns the pair (args, kwargs) for ENTER and the call's value for LEAVE. `index` names one pass; without it
        the present pass (when paused there) or the next one is meant.
        """
        if not (self.at is point and (phase == ENTER or self.phase == LEAVE) and index in (None, self._pass_here())):
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
        point.wait(phase, behind + (self.at is point and self.phase == phase == LEAVE) if index is None else index)
        try:
            self._advance()
        finally:
            point.wait(phase, -1)
        if self.at is not point:
            raise diagnosis.missed(self, point, phase, index)

    def skip(self, point: Point, value: Any, index: int | None = None) -> None:
        """Make the call at `point` return `value` without running."""
        if self.at is point and self.phase == ENTER and index in (None, self._pass_here()):
            point.skip(point.begun - 1, value)
            return
        if point.begun > point.ended and index is None:
            raise SkipTooLateError(
                f"{point.address}.skip(value) came after the call had begun. Skip it before reading anything that runs inside it."
            )
        if self.finished or (index is not None and index < point.begun):
            raise diagnosis.missed(self, point, ENTER, index, "skip")
        point.skip(point.begun if index is None else index, value)

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

    def module_point(self, tap: Tap, lineage: tuple[Tap, ...], address: str) -> Point:
        """The point of a module, made at first use; it and its ancestors are observed from here on.

        Raises:
            OutOfOrderError: the module is running now, unobserved.
        """
        self.ensure_taps()
        self._observe((*lineage, tap))
        begun = self.observed[tap]
        running = self.stack.count(tap)
        if begun > running and self._runs_unobserved(tap):
            raise diagnosis.running_unobserved(self, address)
        point = self.points[tap] = Point(self, address, begun, begun - running)
        return point

    def _observe(self, taps: tuple[Tap, ...]) -> None:
        for tap in taps:
            if tap in self.observed:
                continue
            if not tap.users or tap not in self.instruments.tap_set:
                self.instruments.refresh()  # the tree has changed since it was last walked
                self._attach([tap])
            self.observed[tap] = tap.calls() - self._before.get(tap, 0)
            observe(tap)

    def calls_of(self, tap: Tap) -> int:
        """How often the tapped module was called in this run."""
        found = self.observed.get(tap)
        return tap.calls() - self._before.get(tap, 0) if found is None else found

    def paused_frame(self) -> FrameType | None:
        """The innermost frame of the model where it stands paused."""
        return None if self._greenlet is None else self._greenlet.gr_frame

    def _runs_unobserved(self, tap: Tap) -> bool:
        """Whether the paused model is inside a call of the module that began before it was observed."""
        frame = self._greenlet.gr_frame if self._greenlet is not None else None
        while frame is not None:
            if frame.f_code is _CALL_CODE and frame.f_locals.get("self") is tap.module:
                return tap not in self.stack
            frame = frame.f_back
        return False

    @contextmanager
    def uncounted(self, module: nn.Module) -> Iterator[None]:
        """Calls that the body makes itself are none of the run's."""
        taps = [tap_of(part) for part in module.modules()] if self._taps else []
        before = [tap.calls() for tap in taps]
        disturbed = self.disturbed
        try:
            yield
        finally:
            self.disturbed = disturbed
            for tap, count in zip(taps, before, strict=True):
                self._before[tap] = self._before.get(tap, 0) + tap.calls() - count

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
            self._observe((*self.instruments.lineage(tap), tap))
            begun = self.calls_of(tap)
            if begun and (tap in self.stack or self._runs_unobserved(tap) or (table and begun > table.before)):
                raise diagnosis.source_too_late(self, address)
            if table is None:
                table = OperationTable(self, address, before=begun)
            table.everything = everything
            slot = self.instruments.slot(module)
            twin = slot.take(everything)
            table.bind(twin.gate)
            old = self.forwards.get(module)
            if old is None:
                slot.attach()
            else:
                slot.give_back(old)
            self.forwards[module] = twin
            self.tables[module] = table
        return table

    def ensure_taps(self) -> None:
        if not self._taps:
            self._attach(self.instruments.taps())
            for module, (address, everything) in self.instruments.touched.items():
                self.module_table(module, address, everything)

    def _attach(self, taps: list[Tap]) -> None:
        self._before.update(attach(self, taps))
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
        for point in self.all_points():
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
            if self._taps:
                detach(self, self._taps, self.observed)
                self._taps = []
                self.observed = {}
            for module, twin in self.forwards.items():
                slot = self.instruments.slot(module)
                slot.detach()
                slot.give_back(twin)
            self.forwards.clear()
            for table in self.tables.values():
                table.clear()
            self.tables.clear()
            self.points.clear()
            self.late.clear()
            self.stack.clear()
            self.at = None
            self._greenlet = None
            self._context = None
            if self._turns is not None:
                self._turns.end()
            _open_runs.set(tuple(run for run in _open_runs.get() if run is not self))

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
        turns = self._turns
        assert turns is not None
        body = turns.to_model()
        try:
            return switch()
        finally:
            turns.to_body(body)

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

    def all_points(self) -> Iterator[Point]:
        yield from self.points.values()
        for table in self.tables.values():
            yield from table.all_points()


def outside_trace(address: str) -> OutsideTraceError:
    """The error for a site's value that was asked for while no trace was open."""
    return OutsideTraceError(
        f"{address} has a value only while a trace is open. Write it inside `with model.trace(...):` "
        "(values read there stay usable after the block)."
    )


def require_run(owner: object, address: str) -> Run:
    """The open run of `owner`, or an error that says how to open one."""
    run = current_run(owner)
    if run is None:
        raise outside_trace(address)
    return run
