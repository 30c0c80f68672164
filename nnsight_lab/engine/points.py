"""A point: one module or operation that a run's body has shown interest in.

The model's greenlet passes through a point with `visit` (in at the call's arguments, out at its value). On the way
it applies the edits that the body left there, and pauses when the body is waiting for just this moment. Passes
are numbered from 0 in the order in which they begin (arguments) or end (values).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from .recompute import refuse_edit_if_recomputed

if TYPE_CHECKING:
    from .run import Run
    from .tables import OperationTable

ENTER = "input"
LEAVE = "output"

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Recorder = Callable[[tuple[Any, ...], dict[str, Any], Any], None]
Edits = dict[tuple[str, int], list[Callable[[Any], Any]]]
_NOTHING: Any = object()
_NO_EDITS: Edits = {}  # shared by all points until they have some; never written to
_NO_SKIPS: dict[int, Any] = {}


class Point:
    """State of one site in one run: passes so far, what is awaited, what is to be edited, who records its calls.

    `base` is how many passes had begun when the present step did (see `Steps`); 0 in a run of one forward.
    """

    __slots__ = (
        "address", "args", "base", "begun", "edits", "ended", "inner", "kwargs", "label", "recorders", "run", "skips",
        "table", "value", "wait_enter", "wait_leave",
    )  # fmt: skip

    def __init__(
        self,
        run: Run,
        address: str,
        begun: int = 0,
        ended: int = 0,
        table: OperationTable | None = None,
        label: str = "",
    ) -> None:
        self.run = run
        self.address = address
        self.table = table
        self.label = label
        self.base = 0
        self.begun = begun
        self.ended = ended
        self.wait_enter = -1
        self.wait_leave = -1
        self.edits: Edits = _NO_EDITS
        self.skips: dict[int, Any] = _NO_SKIPS
        self.inner: OperationTable | None = None
        self.recorders: tuple[Recorder, ...] = ()
        self.args: tuple[Any, ...] = ()
        self.kwargs: dict[str, Any] = {}
        self.value: Any = _NOTHING

    def visit(self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Pass through: the arguments, the call itself (unless it is skipped), the value."""
        index = self.begun
        self.begun = index + 1
        if self.wait_enter == index or self.edits or self.skips:
            args, kwargs = self._arrive(index, args, kwargs)
        if self.skips and index in self.skips:
            value = self.skips.pop(index)
        else:
            if self.inner is not None:
                call = self.inner.step_into(call)
            value = call(*args, **kwargs)
        if self.edits or self.recorders or self.wait_leave == self.ended:
            return self.leave(args, kwargs, value)
        self.ended += 1
        return value

    def _arrive(self, index: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        for edit in self.edits.pop((ENTER, index), ()):
            refuse_edit_if_recomputed(self.address, sys._getframe(), torch.is_grad_enabled())
            args, kwargs = edit((args, kwargs))
        if self.wait_enter == index:
            self.wait_enter = -1
            self.args, self.kwargs = args, kwargs
            self.run.pause(self, ENTER)
            args, kwargs = self.args, self.kwargs
            self.args, self.kwargs = (), {}
        return args, kwargs

    def leave(self, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> Any:
        """The way out alone: for a call that had begun before the body asked for it."""
        index = self.ended
        if self.edits:
            self.args, self.kwargs = args, kwargs
            for edit in self.edits.pop((LEAVE, index), ()):
                refuse_edit_if_recomputed(self.address, sys._getframe(), torch.is_grad_enabled())
                value = edit(value)
            self.args, self.kwargs = (), {}
        if self.wait_leave == index:
            self.wait_leave = -1
            self.args, self.kwargs, self.value = args, kwargs, value
            self.run.pause(self, LEAVE)
            value = self.value
            self.args, self.kwargs, self.value = (), {}, _NOTHING
        self.ended = index + 1
        for record in self.recorders:
            record(args, kwargs, value)
        return value

    def passes(self, phase: str) -> int:
        """How many passes of `phase` lie behind."""
        return self.begun if phase == ENTER else self.ended

    def edit(self, phase: str, index: int, change: Callable[[Any], Any]) -> None:
        if self.edits is _NO_EDITS:
            self.edits = {}
        self.edits.setdefault((phase, index), []).append(change)

    def drop(self, phase: str, index: int, change: Callable[[Any], Any]) -> None:
        """Take an edit back, if it has not been carried out."""
        changes = self.edits.get((phase, index), [])
        if change in changes:
            changes.remove(change)
            if not changes:
                del self.edits[phase, index]

    def let_go(self, phase: str) -> None:
        """Forget what was shown to a body that stood here."""
        if phase == ENTER:
            self.args, self.kwargs = (), {}
        else:
            self.value = _NOTHING

    def skip(self, index: int, value: Any) -> None:
        if self.skips is _NO_SKIPS:
            self.skips = {}
        self.skips[index] = value

    def withdraw(self, attribute: str, index: int) -> bool:
        """Take an assignment or skip back; False when it was carried out."""
        if attribute == "skip":
            return self.skips.pop(index, _NOTHING) is not _NOTHING
        return self.edits.pop((attribute, index), None) is not None

    @property
    def skipped(self) -> bool:
        """Whether the body has skipped a pass."""
        return self.skips is not _NO_SKIPS

    def pending(self) -> tuple[str, int] | None:
        """The attribute and pass of an assignment or skip that has not been carried out, if there is one."""
        for index in self.skips:
            return "skip", index
        for phase, index in self.edits:
            return phase, index
        return None
