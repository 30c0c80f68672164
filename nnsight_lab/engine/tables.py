"""The operations of one function in one run.

A table stands behind the gate of a rewritten function: it counts how often each operation was called and holds the
points of those that the body asked for. A module's table is bound to its forward when the body first names one of
its operations; the table of a callee (`operation.source`) is bound when that operation is called, because only then
is the callee known. Labels asked for before are checked at that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any

from torch import nn

from .errors import CalleeIsModuleError, SourceUnavailableError, TraceError, UnknownNameError, nearest
from .functions import innermost, rebuild
from .labels import FRAME_READERS
from .points import Point
from .rewrite import Rewritten, rewritten

if TYPE_CHECKING:
    from .run import Run

Handler = Callable[[Any], Any]


def _observer(point: Point) -> Handler:
    def observe(callee: Any) -> Any:
        def observed(*args: Any, **kwargs: Any) -> Any:
            return point.visit(callee, args, kwargs)

        return observed

    return observe


def _without_engine_names(value: Any) -> Any:
    """What `locals()` and its like return, less the names that the rewriting brought in."""
    if isinstance(value, dict) and any(str(key).startswith("__nnsight_lab_") for key in value):
        return {key: item for key, item in value.items() if not str(key).startswith("__nnsight_lab_")}
    if isinstance(value, list) and any(str(item).startswith("__nnsight_lab_") for item in value):
        return [item for item in value if not str(item).startswith("__nnsight_lab_")]
    return value


def _frame_reader(point: Point | None) -> Handler:
    if point is None:
        return lambda _: _without_engine_names
    observe = _observer(point)
    return lambda _: observe(_without_engine_names)


class OperationTable:
    """Points and counts of one function's operations; the gate's memory.

    Args:
        run: the run it belongs to.
        address: path of the function's `.source`.
        parent: the point whose callee this is; None for a module's forward.
        before: how often the function had been called before it was observed.
    """

    def __init__(self, run: Run, address: str, parent: Point | None = None, before: int = 0) -> None:
        self.run = run
        self.address = address
        self.parent = parent
        self.before = before
        self.calls = 0
        self.everything = False
        self.rewritten: Rewritten | None = None
        self.handlers: list[Handler | None] = []
        self.counts: list[int] = []
        self.points: dict[str, Point] = {}
        self.gate = self._make_gate()

    def _make_gate(self) -> Callable[[int, Any], Any]:
        counts, handlers = self.counts, self.handlers

        def gate(index: int, callee: Any) -> Any:
            counts[index] += 1
            handler = handlers[index]
            return callee if handler is None else handler(callee)

        return gate

    def bind(self, function: FunctionType) -> Rewritten:
        """Take `function` as the one observed; its labels are checked against those asked for.

        Raises:
            SourceUnavailableError: it has no source.
            UnknownNameError: a label asked for is not among its operations.
        """
        found = rewritten(function, self.everything)
        if found is not self.rewritten:
            for label in self.points:
                if label not in found.positions:
                    raise unknown_operation(label, found, self.address)
            self.rewritten = found
            operations = found.listing.operations
            self.counts[:] = [0] * len(operations)
            self.handlers[:] = [
                _frame_reader(None) if o.callee in FRAME_READERS else None for o in operations
            ]
            for label, point in self.points.items():
                self._handle(label, point)
        return found

    def _handle(self, label: str, point: Point) -> None:
        assert self.rewritten is not None
        index = self.rewritten.positions[label]
        reader = self.rewritten.listing.operations[index].callee in FRAME_READERS
        self.handlers[index] = _frame_reader(point) if reader else _observer(point)

    def point(self, label: str) -> Point:
        """The point of the operation `label`.

        Raises:
            UnknownNameError: the function is known and has no such operation.
        """
        point = self.points.get(label)
        if point is None:
            count = 0
            if self.rewritten is not None:
                if label not in self.rewritten.positions:
                    raise unknown_operation(label, self.rewritten, self.address)
                count = self.counts[self.rewritten.positions[label]]
            point = self.points[label] = Point(self.run, f"{self.address}.{label}", count, count, self, label)
            if self.rewritten is not None:
                self._handle(label, point)
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
            function = innermost(callee)
            found = self.bind(function)
        except TraceError as error:
            run.fail(self._explained(error))
            return callee
        self.calls += 1
        parent = self.parent
        if parent is not None and parent.table is not None and parent.table.rewritten is not None:
            run.instruments.remember_callee(parent.table.rewritten.listing, parent.label, callee)
        return rebuild(callee, lambda inner: found.bind(inner, self.gate))

    def module_callee(self, module: nn.Module) -> CalleeIsModuleError:
        return callee_is_module(
            self.address.removesuffix(".source"), self.run.instruments.path_of(module), module
        )

    def _explained(self, error: TraceError) -> TraceError:
        if isinstance(error, SourceUnavailableError) and not isinstance(error, CalleeIsModuleError):
            return type(error)(f"{self.address}: {error}")
        return error

    def all_points(self) -> Iterator[Point]:
        for point in self.points.values():
            yield point
            if point.inner is not None:
                yield from point.inner.all_points()

    def clear(self) -> None:
        """Drop every reference, so that a finished run keeps nothing alive."""
        for point in self.points.values():
            if point.inner is not None:
                point.inner.clear()
                point.inner = None
            point.table = None
        self.points.clear()
        self.handlers[:] = [None] * len(self.handlers)
        del self.gate


def unknown_operation(label: str, found: Rewritten, address: str) -> UnknownNameError:
    hint = nearest(label, found.positions) or f" It has {len(found.positions)}: print({address}) lists them."
    return UnknownNameError(f"{address} ({found.listing.name}) has no operation {label!r}.{hint}")


def callee_is_module(address: str, path: str | None, module: nn.Module) -> CalleeIsModuleError:
    instead = f"Use {path}.source instead." if path else "It is not part of the wrapped tree."
    return CalleeIsModuleError(f"{address} calls the module {path or type(module).__name__}: {instead}")
