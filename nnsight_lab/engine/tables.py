"""The operations of one function in one run.

A table stands behind the gates of a rewritten function, which count the calls: it holds the points of those operations
that the body asked for. A module's table is bound to its forward when the body first names one of
its operations; the table of a callee (`operation.source`) is bound when that operation is called, because only then
is the callee known. Labels asked for before are checked at that moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch import nn

from . import diagnosis
from .errors import CalleeIsModuleError, SourceUnavailableError, TraceError, UnknownNameError, nearest
from .functions import innermost, without_state
from .gates import Gate
from .inflight import call_in_flight
from .points import Point
from .rewrite import Rewritten, rewritten
from .taps import tap_of

if TYPE_CHECKING:
    from .run import Run


class OperationTable:
    """Points of one function's operations.

    Args:
        run: the run it belongs to.
        address: path of the function's `.source`.
        parent: the point whose callee this is; None for a module's forward.
        before: how often the function had been called before it was observed.
    """

    __slots__ = (
        "_counts",
        "address",
        "before",
        "calls",
        "everything",
        "gate",
        "own_gates",
        "parent",
        "points",
        "run",
        "seen",
    )

    def __init__(self, run: Run, address: str, parent: Point | None = None, before: int = 0) -> None:
        self.run = run
        self.address = address
        self.parent = parent
        self.before = before
        self.calls = 0
        self.everything = False
        self.gate: Gate | None = None
        self.points: dict[str, Point] = {}
        self.seen: dict[str, Any] = {}
        self.own_gates: list[Gate] = []
        self._counts: list[int] = []  # of unobserved operations, when the present step began

    @property
    def rewritten(self) -> Rewritten | None:
        """The function observed, once it is known."""
        return None if self.gate is None else self.gate.rewritten

    def bind(self, gate: Gate) -> None:
        """Take the function behind `gate` as the one observed; its labels are checked against those asked for.

        Raises:
            UnknownNameError: a label asked for is not among its operations.
        """
        if self.gate is None:  # a callee that changes from call to call may have a label in some of them only
            for label in self.points:
                if label not in gate.rewritten.positions:
                    raise unknown_operation(label, gate.rewritten, self.address)
        if self.parent is not None:  # a module's gates outlive the run; those of a callee belong to this table
            self.own_gates.append(gate)
        self.gate = gate
        self._counts = []
        for label, point in self.points.items():
            if label in gate.rewritten.positions:
                gate.handle(label, point)

    def point(self, label: str) -> Point:
        """The point of the operation `label`.

        Raises:
            UnknownNameError: the function is known and has no such operation.
        """
        point = self.points.get(label)
        if point is None:
            gate = self.gate
            if gate is not None and label not in gate.rewritten.positions:
                raise unknown_operation(label, gate.rewritten, self.address)
            point = self.points[label] = self._new_point(gate, label)
        return point

    def _new_point(self, gate: Gate | None, label: str) -> Point:
        address = f"{self.address}.{label}"
        if gate is None:
            return Point(self.run, address, 0, 0, self, label)
        index = gate.rewritten.positions[label]
        begun = ended = gate.count(index)
        if begun:
            running, module = call_in_flight(self.run.paused_frame(), gate.rewritten, label)
            watched = gate.hands_over(index) if module is None else tap_of(module) in self.run.stack
            if running and not watched:
                raise diagnosis.running_unobserved(self.run, address)
            ended -= running
        point = Point(self.run, address, begun, ended, self, label)
        point.base = self._counts[index] if self._counts else 0
        gate.handle(label, point)
        if ended < begun and module is not None:
            self.run.late.setdefault(tap_of(module), []).append(point)
        elif ended < begun:
            gate.late[index] = point
        return point

    def inner(self, label: str) -> OperationTable:
        """The table of the function that the operation `label` calls."""
        point = self.point(label)
        if point.inner is None:
            point.inner = OperationTable(self.run, f"{point.address}.source", point, before=point.begun)
        return point.inner

    def step_into(self, callee: Any) -> Any:
        """The observed twin of `callee`, which is about to be called; `callee` itself when it cannot be observed."""
        run = self.run
        if run.finished:
            return callee
        try:
            if isinstance(callee, nn.Module):
                raise self.module_callee(callee)
            name = self.callee_name()
            found = rewritten(innermost(callee, name), self.everything)
            if found is not self.rewritten:
                self.bind(Gate(found))
        except TraceError as error:
            run.fail(self._explained(error))
            return callee
        self.calls += 1
        if self.parent is not None and self.parent.table is not None:
            self.parent.table.remember(self.parent.label, callee)
        assert self.gate is not None
        return self.gate.wrap(callee, name)

    def callee_name(self) -> str | None:
        """The name by which the caller knows this function: it lets plain wrappers be seen through."""
        parent = self.parent
        if parent is None or parent.table is None or parent.table.rewritten is None:
            return None
        return parent.table.rewritten.listing[parent.label].callee_name

    def remember(self, label: str, callee: Any) -> None:
        """Keep which function the operation `label` calls, for listing it when the run is over."""
        function = getattr(callee, "func", callee)
        code = getattr(function, "__code__", None)
        if self.rewritten is None or (code is not None and self.seen.get(label) is code):
            return
        self.seen[label] = code
        listing = self.rewritten.listing
        try:
            found = innermost(callee, listing[label].callee_name)
        except SourceUnavailableError:
            return
        self.run.instruments.remember_callee(listing, label, without_state(found))

    def module_callee(self, module: nn.Module) -> CalleeIsModuleError:
        return callee_is_module(self.address.removesuffix(".source"), self.run.instruments.path_of(module), module)

    def _explained(self, error: TraceError) -> TraceError:
        if isinstance(error, SourceUnavailableError) and not isinstance(error, CalleeIsModuleError):
            return type(error)(f"{self.address}: {error}")
        return error

    def all_points(self) -> Iterator[Point]:
        for point in self.points.values():
            yield point
            if point.inner is not None:
                yield from point.inner.all_points()

    def all_tables(self) -> Iterator[OperationTable]:
        yield self
        for point in self.points.values():
            if point.inner is not None:
                yield from point.inner.all_tables()

    def note_counts(self) -> None:
        """A step begins: keep how often each operation had been called."""
        if self.gate is not None:
            self._counts = self.gate.counts()

    def clear(self) -> None:
        """Drop every reference, so that a finished run keeps nothing alive."""
        for point in self.points.values():
            if point.inner is not None:
                point.inner.clear()
                point.inner = None
            point.table = None
        self.points.clear()
        self.seen.clear()
        for gate in self.own_gates:
            gate.retire()
        self.own_gates.clear()
        self.gate = None
        self.parent = None


def unknown_operation(label: str, found: Rewritten, address: str) -> UnknownNameError:
    hint = nearest(label, found.positions) or f" It has {len(found.positions)}: print({address}) lists them."
    return UnknownNameError(f"{address} ({found.listing.name}) has no operation {label!r}.{hint}")


def callee_is_module(address: str, path: str | None, module: nn.Module) -> CalleeIsModuleError:
    instead = f"Use {path}.source instead." if path else "It is not part of the wrapped tree."
    return CalleeIsModuleError(f"{address} calls the module {path or type(module).__name__}: {instead}")
