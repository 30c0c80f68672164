"""What a run observes of the wrapped tree: points of modules, tables of instrumented forwards, and what was called.

What is installed for it (taps, rewritten forwards) is installed here, at first use; `Run.close` takes it away.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, cast

from torch import nn

from . import diagnosis
from .points import ENTER, Point
from .steps import RootPoint, Steps
from .tables import OperationTable
from .taps import Tap, attach, observe, tap_of

if TYPE_CHECKING:
    from .coroutine import Coroutine
    from .instruments import Instruments, Twin
    from .run import Run

_CALL_CODE = nn.Module._call_impl.__code__


class Observation:
    """The observed side of a run. `Run` is the only one there is; see there.

    Attributes:
        points: what was asked for of each module, by its tap.
        tables: of each module whose `.source` was used, its operations.
        forwards: the rewritten forward that each such module has in this run.
        observed: the taps that see calls, with the calls that the model had made of each before they did.
        before: calls of a tap's module that are none of the run's.
        stack: the observed taps whose calls are running, the outermost first.
    """

    def __init__(self, instruments: Instruments) -> None:
        self.instruments = instruments
        self.points: dict[Tap, Point] = {}
        self.tables: dict[nn.Module, OperationTable] = {}
        self.forwards: dict[nn.Module, Twin] = {}
        self.observed: dict[Tap, int] = {}
        self.late: dict[Tap, list[Point]] = {}
        self.disturbed = False
        self.stack: list[Tap] = []
        self.taps: list[Tap] = []
        self.before: dict[Tap, int] = {}
        self.at: Point | None = None
        self.phase = ""
        self.stepwise = False
        self.steps: Steps | None = None
        self._model: Coroutine | None = None

    @property
    def _run(self) -> Run:
        """This, as what it always is."""
        return cast("Run", self)

    @property
    def _started(self) -> bool:
        return self._model is not None and self._model.started

    def module_point(self, tap: Tap, address: str) -> Point:
        """The point of a module, made at first use; it and its ancestors are observed from here on.

        Raises:
            OutOfOrderError: the module is running now, unobserved.
        """
        self.ensure_taps()
        self._observe(tap)
        begun = self.observed[tap]
        running = self.stack.count(tap) if begun else 0
        if begun > running and self._runs_unobserved(tap):
            raise diagnosis.running_unobserved(self._run, address)
        kind = RootPoint if tap.module is self.instruments.root else Point
        point = self.points[tap] = kind(self._run, address, begun, begun - running)
        if self.steps is not None:
            point.base = self.steps.calls_before(tap)
        return point

    def root_point(self) -> Point:
        """The point of the wrapped model itself."""
        tap = tap_of(self.instruments.root)
        return self.points.get(tap) or self.module_point(tap, self.instruments.label)

    def _observe(self, asked: Tap) -> None:
        """Let a tap and those of its module's ancestors see the calls."""
        observed = self.observed
        if asked in observed:
            return
        for tap in (*self.instruments.lineage(asked), asked):
            if tap not in observed:
                if tap not in self.instruments.tap_set:
                    self.instruments.refresh()  # the tree has changed since it was last walked
                    attach(self._run, [tap])
                observe(self._run, tap, tap.calls() - self.before.get(tap, 0) if self._started else 0)

    def calls_of(self, tap: Tap) -> int:
        """How often the tapped module was called in this run."""
        found = self.observed.get(tap)
        return tap.calls() - self.before.get(tap, 0) if found is None else found

    def paused_frame(self) -> FrameType | None:
        """The innermost frame of the model where it stands paused."""
        return None if self._model is None else self._model.frame

    def _runs_unobserved(self, tap: Tap) -> bool:
        """Whether the paused model is inside a call of the module that began before it was observed."""
        frame = self.paused_frame()
        while frame is not None:
            if frame.f_code is _CALL_CODE and frame.f_locals.get("self") is tap.module:
                return tap not in self.stack
            frame = frame.f_back
        return False

    @contextmanager
    def uncounted(self, module: nn.Module) -> Iterator[None]:
        """Calls that the body makes itself are none of the run's."""
        taps = [tap_of(part) for part in module.modules()] if self.taps else []
        before = [tap.calls() for tap in taps]
        disturbed = self.disturbed
        try:
            yield
        finally:
            self.disturbed = disturbed
            for tap, count in zip(taps, before, strict=True):
                self.before[tap] = self.before.get(tap, 0) + tap.calls() - count

    def module_table(self, module: nn.Module, address: str, everything: bool = False) -> OperationTable:
        """The table of `module`'s forward, observed from its next call on.

        Raises:
            OutOfOrderError: that forward is running now, unobserved.
            SourceUnavailableError: it has no Python source.
        """
        self.ensure_taps()
        table = self.tables.get(module)
        if table is None or (everything and not table.everything):
            tap = tap_of(module)
            self._observe(tap)
            # A module that stands at its inputs has not looked its forward up yet.
            arriving = self.phase is ENTER and self.at is not None and self.at is self.points.get(tap)
            running = self.stack.count(tap) - arriving
            begun = self.calls_of(tap) - arriving
            if begun and (running or self._runs_unobserved(tap) or (table and begun > table.before)):
                raise diagnosis.source_too_late(self._run, address)
            if table is None:
                table = OperationTable(self._run, address, before=begun)
            table.everything = everything
            slot = self.instruments.slot(module)
            twin = slot.take(everything)
            table.bind(twin.gate)
            old = self.forwards.get(module)
            slot.attach(self.forwards, twin)
            if old is not None:
                slot.give_back(old)
            self.tables[module] = table
        return table

    def ensure_taps(self) -> None:
        if not self.taps:
            attach(self._run, self.instruments.taps())
            if self.stepwise:
                self._run.in_steps()
            for module, (address, everything) in tuple(self.instruments.touched.items()):
                self.module_table(module, address, everything)

    def all_points(self) -> Iterator[Point]:
        yield from self.points.values()
        for table in self.tables.values():
            yield from table.all_points()

    def all_tables(self) -> Iterator[OperationTable]:
        for table in self.tables.values():
            yield from table.all_tables()
