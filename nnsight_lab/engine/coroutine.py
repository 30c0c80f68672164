"""The model as a coroutine: a greenlet that runs until it hands the turn back.

The body of the `with` block stays where the user wrote it. `advance` switches to the model, which goes on until
something on its side calls `hand_back`, or to its end; nothing else ever runs at the same time, and there is no second
thread. The model's parent is the greenlet that last gave it the turn, so an error that the model raises arrives at the
body's line with the frames of both. The thread-local switches of torch are exchanged at each turn; context variables
are copied once, where the trace is opened.
"""

from __future__ import annotations

import contextvars
import operator
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from greenlet import GreenletExit, getcurrent, greenlet

from .errors import TraceStateError
from .threadstate import Alternation, capture

if TYPE_CHECKING:
    from .bodies import Body
    from .edits import EditBody
    from .run import Run


class Unwind(GreenletExit):
    """Thrown into a paused model to take its frames down; ends its greenlet quietly."""


class ModelGreenlet(greenlet):
    """A greenlet that runs models, one call after the other; taps find their run through it.

    Attributes:
        nnsight_run: the run whose call is being made; None between two calls.
        task: the call to make next.
        result, failure: how the last call ended.
    """

    nnsight_run: Run | Body | EditBody | None = None
    task: Callable[[], Any] | None = None
    result: Any = None
    failure: BaseException | None = None


class _Idle(threading.local):
    def __init__(self) -> None:
        self.greenlets: list[ModelGreenlet] = []


_idle = _Idle()

_call: Callable[..., Any] = operator.call
_CUSHION = (_call,) * 48  # each is at least two C frames


def _serve() -> None:
    """What a model greenlet does: make the call it was given, hand back, wait for the next."""
    while True:
        me = getcurrent()
        assert isinstance(me, ModelGreenlet)
        task, me.task = me.task, None
        if task is not None:
            try:
                me.result = _call(*_CUSHION, task)
            except Unwind:
                pass
            except GreenletExit:  # nobody holds this greenlet any more
                return
            except BaseException as error:
                me.failure = error
            task = None
        me.nnsight_run = None
        del me  # a waiting greenlet that held itself would outlive its thread
        hand_back()


class Coroutine:
    """One call of a model, begun at the first `advance`.

    Args:
        run: the run that the taps met on the way belong to.
        call: runs the model; takes no arguments.
    """

    __slots__ = ("_call", "_context", "_greenlet", "_run", "_thread", "_turns")

    def __init__(self, run: Run | Body | EditBody, call: Callable[[], Any]) -> None:
        self._run = run
        self._call = call
        self._context: contextvars.Context | None = contextvars.copy_context()
        self._turns = Alternation()
        self._thread = threading.get_ident()
        self._greenlet: ModelGreenlet | None = None

    @property
    def started(self) -> bool:
        """Whether the call has begun."""
        return self._context is None

    @property
    def ended(self) -> bool:
        """Whether the call has returned or raised."""
        return self._greenlet is None and self._context is None

    @property
    def frame(self) -> FrameType | None:
        """The innermost frame of the model where it stands paused."""
        return None if self._greenlet is None else self._greenlet.gr_frame

    @property
    def grad(self) -> bool:
        """Whether gradients are recorded on the model's side."""
        return self._turns.grad

    def advance(self) -> Any:
        """Let the model run until it hands the turn back (None) or ends (what it returned, or raises)."""
        model = self._greenlet
        if model is None:
            if threading.get_ident() != self._thread:
                raise _elsewhere()
            idle = _idle.greenlets
            model = self._greenlet = idle.pop() if idle else ModelGreenlet(_serve)
            model.nnsight_run = self._run
            model.task = self._call
            model.gr_context = self._context
            self._context = None
        return self._turn(model, model.switch)

    def replace(self, call: Callable[[], Any]) -> None:
        """Take another call in place of one that has not begun."""
        self._call = call

    def unwind(self) -> None:
        """Take the model down where it stands. Its `finally` blocks run; an error in one of them is raised here."""
        model = self._greenlet
        if model is not None and not sys.is_finalizing():  # greenlets switch no more while Python shuts down
            self._turn(model, lambda: model.throw(Unwind))

    def _turn(self, model: ModelGreenlet, switch: Callable[[], Any]) -> Any:
        turns = self._turns
        try:
            model.parent = getcurrent()
        except ValueError:
            raise _elsewhere() from None
        body = capture()
        try:
            turns.to_model(body)
            switch()
        finally:
            try:
                turns.to_body(body)
            except BaseException:  # an interrupt on the way
                turns.to_body(body)
                raise
        if model.nnsight_run is not None:
            return None
        # The call has ended: its greenlet is free for another.
        self._greenlet = None
        model.gr_context = None
        result, model.result = model.result, None
        error, model.failure = model.failure, None
        if not model.dead:  # as it is after an interrupt between two calls
            _idle.greenlets.append(model)
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback holds this frame
        return result

    def release(self) -> None:
        """Let go of everything."""
        self._turns.end()
        self._greenlet = None
        self._context = None


def _elsewhere() -> TraceStateError:
    return TraceStateError(
        "This trace was opened in another thread. A model runs in the thread of the `with` block: read and "
        "assign its sites there (not in asyncio.to_thread or an executor), or open a trace in each thread."
    )


def hand_back() -> None:
    """On the model's side: give the turn to the body."""
    body = getcurrent().parent
    assert body is not None
    body.switch()
