"""The gates of a rewritten function: what carries out each of its operations.

`gates[i](callee, *args, **kwargs)` makes operation i's call. While nobody asked for the operation, its gate is C all
the way: `functools.lru_cache(maxsize=0)` around `operator.call`, which caches nothing, counts the calls and makes them,
so that unobserved operations cost next to nothing and leave no trace in tracebacks. An observed operation's gate takes
the call to its point. A gate may have to change between the moment a function looks it up and the moment it calls it,
for the arguments in between may hold operations at which the body pauses and asks for this one. So each gate is a
`functools.partial` object, whose function is replaced in place (`__setstate__`).

What an operation calls is seen at its first call. If it is a Python function in which the model could pause, its gate
stays in Python, so that a body which reads something inside can have the operation's value afterwards.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable
from types import BuiltinMethodType, FunctionType, GeneratorType, MethodType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from .frames import FRAME_READERS, reading_frame
from .functions import innermost, rebuild
from .rewrite import Rewritten, rewritten

if TYPE_CHECKING:
    from .points import Point

Call = Callable[..., Any]

_FUNCTIONALS = frozenset({"torch.nn.functional", "torch.functional"})
_STEPPABLE = (FunctionType, MethodType, functools.partial)
_CALL = "__call__"
_IN_PYTHON = frozenset({*_STEPPABLE, type(functools.cache(lambda: None))})
_RUN_THROUGH = (*_IN_PYTHON, GeneratorType, map, filter)


def _observed(point: Point) -> Call:
    """A gate that takes the call to `point`."""

    def call(callee: Any, /, *args: Any, **kwargs: Any) -> Any:
        if isinstance(callee, _STEPPABLE) and point.table is not None:
            point.table.remember(point.label, callee)
        return point.visit(callee, args, kwargs)

    return call


def _observed_in_frame(point: Point) -> Call:
    """The same for `locals()` and its like, which must see the frame of the function that calls them."""

    def call(callee: Any, /, *args: Any, **kwargs: Any) -> Any:
        return point.visit(reading_frame(callee, sys._getframe(1)), args, kwargs)

    return call


def _in_frame(callee: Any, /, *args: Any, **kwargs: Any) -> Any:
    """The gate of `locals()` and its like while nobody observes them."""
    return reading_frame(callee, sys._getframe(1))(*args, **kwargs)


def _may_pause(callee: Any, args: tuple[Any, ...]) -> bool:
    """Whether the model could pause inside the call while nobody observes it: whether it may call modules.

    So may a Python function, an autograd function, an object whose class makes it callable in Python, and whatever is
    given something to call or to run through (`sum`, `reduce`). Calls of modules are left out: the value of one in
    flight is taken at the module itself.
    """
    kind = type(callee)
    if kind in _IN_PYTHON or isinstance(callee, functools.partial):
        return True
    if kind is BuiltinMethodType:
        owner = callee.__self__
        if isinstance(owner, type) and issubclass(owner, torch.autograd.Function):
            return True
    elif not isinstance(callee, nn.Module) and isinstance(getattr(kind, _CALL, None), FunctionType):
        return True
    return any(isinstance(argument, _RUN_THROUGH) for argument in args)


class Gate:
    """The gates of one twin, their counts and their observers."""

    __slots__ = ("_begun", "_counters", "_idle", "_kept", "gates", "late", "rewritten")

    def __init__(self, found: Rewritten) -> None:
        self.rewritten = found
        self.late: dict[int, Point] = {}
        self._counters = [functools.lru_cache(maxsize=0)(operator.call) for _ in found.listing.operations]
        self._begun = [0] * len(self._counters)  # of operations whose gates are Python functions
        self._idle: list[Call] = [
            _in_frame if operation.callee in FRAME_READERS else self._learner(operation.index)
            for operation in found.listing.operations
        ]
        # A gate's function may be replaced while it is being carried out, so every one is kept until the next reset.
        self._kept: list[tuple[int, Call]] = []
        self.gates = [functools.partial(call) for call in self._idle]

    def count(self, index: int) -> int:
        """How often the operation was begun while nobody observed it."""
        return self._begun[index] + self._counters[index].cache_info().misses

    def counts(self) -> list[int]:
        """The counts of all operations, in evaluation order."""
        return [begun + each.cache_info().misses for begun, each in zip(self._begun, self._counters, strict=True)]

    def ran(self) -> bool:
        """Whether any operation was begun unobserved."""
        return any(self._begun) or any(counter.cache_info().misses for counter in self._counters)

    def _put(self, index: int, call: Call) -> None:
        self._kept.append((index, call))
        self.gates[index].__setstate__((call, (), {}, None))  # type: ignore[attr-defined]

    def _learner(self, index: int) -> Call:
        """The gate of an operation until its first call has shown what it calls."""
        counter = self._counters[index]

        def learn(callee: Any, /, *args: Any, **kwargs: Any) -> Any:
            call = self._unobserved(index) if _may_pause(callee, args) else counter
            self._idle[index] = call
            self._put(index, call)
            return call(callee, *args, **kwargs)

        return learn

    def _unobserved(self, index: int) -> Call:
        """Let a call go unobserved, but hand over its value when the body asked for it on the way."""
        late, begun = self.late, self._begun

        def call(callee: Any, /, *args: Any, **kwargs: Any) -> Any:
            begun[index] += 1
            value = callee(*args, **kwargs) if kwargs else callee(*args)  # the second is the faster
            if not late:
                return value
            point = late.pop(index, None)
            return value if point is None else point.leave(args, kwargs, value)

        return call

    def hands_over(self, index: int) -> bool:
        """Whether a call of the operation that goes unobserved can give its value on the way out."""
        return self._idle[index] is not self._counters[index]

    def handle(self, label: str, point: Point) -> None:
        """Take the calls of the operation `label` to `point`."""
        index = self.rewritten.positions[label]
        reads_frame = self.rewritten.listing.operations[index].callee in FRAME_READERS
        self._put(index, _observed_in_frame(point) if reads_frame else _observed(point))

    def reset(self) -> None:
        """Forget every observer and count."""
        self.late.clear()
        for index, _ in self._kept:
            self.gates[index].__setstate__((self._idle[index], (), {}, None))  # type: ignore[attr-defined]
        for counter in self._counters:
            counter.cache_clear()
        self._begun[:] = [0] * len(self._begun)
        self._kept.clear()

    def retire(self) -> None:
        """Let go of everything, for a twin that no further run will use; calls then pass straight through."""
        for gate, operation in zip(self.gates, self.rewritten.listing.operations, strict=True):
            plain: Call = _in_frame if operation.callee in FRAME_READERS else operator.call
            gate.__setstate__((plain, (), {}, None))  # type: ignore[attr-defined]
        self.late.clear()
        self._idle.clear()
        self._kept.clear()

    def wrap(self, callee: Any, name: str | None = None) -> Any:
        """`callee` with its innermost function replaced by the twin behind these gates."""
        return rebuild(callee, lambda inner: self.rewritten.bind(inner, self.gates), name)


def gate_for(callee: Any, everything: bool, name: str | None = None) -> Gate:
    """New gates for the innermost function of `callee`. Raises SourceUnavailableError."""
    function: FunctionType = innermost(callee, name)
    return Gate(rewritten(function, everything))
