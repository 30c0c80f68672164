"""Invoke blocks as coroutines, and what they hold of the model's values.

Reads are views, so that an in-place change touches the body's rows alone. When the model goes on, what was handed out
is put back where that makes a difference: a container whose entries were replaced, a copy of something that all rows
share, or a tensor whose gradient the body may want, which has to be part of the graph.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .batch import Rows, leaves
from .coroutine import Coroutine, hand_back
from .lifting import Block
from .names import Names
from .points import LEAVE, Arguments, Point

if TYPE_CHECKING:
    from .sharedrun import Joining


@dataclass(frozen=True, slots=True)
class Input:
    """What a block was given, as written, and the arguments of the model's call made from it."""

    args: tuple[Any, ...]
    keywords: dict[str, Any]
    arguments: Arguments

    def prepared_by(self, joining: Joining) -> Input:
        return Input(self.args, self.keywords, joining.prepare(*self.args, **self.keywords))


class Body:
    """One block: its names, its rows, what it waits for.

    Attributes:
        inputs: what the model runs on for this block; None for all rows of the batch.
        rows: its part of the batch, known when the model starts.
        site: the point, phase and pass that it waits for.
        within_step: whether it waits for that in the present step only.
        until: what else it waits for, with words for it.
        for_end: whether that is the model's end.
        failure: raised in the body when it gets its next turn.
    """

    # Read by the taps, for which a body is a caller that belongs to no run.
    observed: dict[Any, int] = {}  # noqa: RUF012
    forwards: dict[Any, Any] = {}  # noqa: RUF012
    is_body = True

    def __init__(self, block: Block, frame: FrameType, names: Names, inputs: Input | None) -> None:
        self.names = names
        self.inputs = inputs
        self.filename = block.code.co_filename
        self.line = block.line
        self.rows = Rows(0, 1, 1)
        self.site: tuple[Point, str, int] | None = None
        self.within_step = False
        self.until: tuple[str, Callable[[], bool]] | None = None
        self.for_end = False
        self.failure: BaseException | None = None
        self.stopped = False
        function = FunctionType(block.code, frame.f_globals)
        self.turns = Coroutine(self, lambda: function(names))

    @property
    def ended(self) -> bool:
        return self.turns.ended

    def pause(self) -> None:
        """In the body: let others go on. Raises what they left for it."""
        hand_back()
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def wait_at(self, point: Point, phase: str, awaited: int, within_step: bool = False) -> None:
        """In the body: let others go on until the model pauses at that pass of a point, or has ended."""
        self.site, self.within_step = (point, phase, awaited), within_step
        try:
            self.pause()
        finally:
            self.site, self.within_step = None, False

    def place(self) -> str:
        """The file and line at which the body stands, for messages."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self.filename:
            frame = frame.f_back
        return f"{self.filename}, line {self.line if frame is None else frame.f_lineno}"


@dataclass(frozen=True, slots=True)
class Handed:
    """A value that a body was given while the model stands paused.

    Attributes:
        first: whether it is the first argument alone, not all of them.
        before: the leaves that were given.
        shared: for each of them that is a copy of what all rows share, the original.
    """

    body: Body
    phase: str
    first: bool
    given: Any
    before: tuple[Any, ...]
    shared: tuple[Tensor | None, ...]

    def changed(self) -> bool:
        """Whether putting it back makes a difference that the views have not made already."""
        now = tuple(leaves(self.given))
        if len(now) != len(self.before):
            return True
        for new, old, shared in zip(now, self.before, self.shared, strict=True):
            if new is not old or (shared is not None and not torch.equal(new, shared)):
                return True
            if isinstance(new, Tensor) and new.requires_grad and torch.is_grad_enabled():
                return True
        return False

    def put_back(self, point: Point) -> None:
        """Make what the body holds now part of the value with which the model goes on."""
        rows, site = self.body.rows, f"{point.address}.{self.phase}"
        if self.phase == LEAVE:
            point.value = rows.put(point.value, self.given, site)
        elif not self.first:
            point.args, point.kwargs = rows.put((point.args, point.kwargs), self.given, site)
        elif point.args:
            point.args = (rows.put(point.args[0], self.given, site), *point.args[1:])
        else:
            name = next(iter(point.kwargs))
            point.kwargs = {**point.kwargs, name: rows.put(point.kwargs[name], self.given, site)}


def hand(body: Body, value: Any, point: Point, phase: str, first: bool) -> Handed:
    """The body's rows of `value`, which the model is paused at; `first` for the first argument alone.

    Raises:
        InvokeError: the rows cannot be told apart.
    """
    given = body.rows.take(value, f"{point.address}.{phase}")
    before = tuple(leaves(given))
    shared = tuple(
        whole if isinstance(whole, Tensor) and isinstance(part, Tensor) and whole.shape == part.shape else None
        for whole, part in zip(leaves(value), before, strict=True)
    )
    return Handed(body, phase, first, given, before, shared)
