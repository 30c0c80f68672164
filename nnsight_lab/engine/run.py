"""One run of a model under a trace: what the body asks of it, and what the model's side answers.

`read` gives the turn to the model (see `Coroutine`), which runs until the awaited point is reached and hands it back.

A run owns everything it installs (taps, rewritten forwards) and takes it all away in `close`, whatever happened.
Cost: a read is two greenlet switches and a few dictionary look-ups.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent
from torch import Tensor, is_grad_enabled

from . import diagnosis, openruns
from .coroutine import Coroutine, hand_back
from .edits import EditBody
from .errors import InputAccessError, TraceError, ValidationError
from .gradients import Gradients
from .observation import Observation
from .points import ENTER, LEAVE, Point
from .recompute import refuse_edit_if_recomputed
from .steps import Steps
from .taps import detach
from .validation import checked

if TYPE_CHECKING:
    from .bodies import Body
    from .instruments import Instruments


def describe_value(value: Any) -> str:
    """A value in few words: type, and shape and dtype of a tensor."""
    if isinstance(value, Tensor):
        return f"{type(value).__name__} {list(value.shape)} {str(value.dtype).removeprefix('torch.')}"
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__} of {len(value)}"
    return repr(value) if isinstance(value, (int, float, bool, str, type(None))) else type(value).__name__


class StopTrace(BaseException):
    """Raised by `.stop()` of a trace or session to leave its block; caught by the one that it stops.

    Attributes:
        stopped: the trace's run, or the session.
    """

    def __init__(self, stopped: object) -> None:
        super().__init__("the trace was stopped")
        self.stopped = stopped


class Run(Observation):
    """One forward (or generation) with a body that reads and edits it.

    Attributes:
        turn: the invoke block whose turn it is, in a run that has some.

    Args:
        owner: the wrapper whose sites the body addresses.
        instruments: the taps of the wrapped tree and the tables of instrumented forwards, made lazily.
        call: runs the model; takes no arguments and returns the model's result.
    """

    is_body = False  # a greenlet that belongs to a run is the model's

    turn: Body | None = None

    def __init__(self, owner: Any, instruments: Instruments, call: Callable[[], Any]) -> None:
        super().__init__(instruments)
        self.owner = owner
        self.call = call
        self._last: tuple[str, str] | None = None
        self.gradients = Gradients()
        self.closed = False
        self.finished = False
        self.returned = False
        self.result: Any = None
        self.failure: TraceError | None = None
        self.error: str | None = None
        self.validate = False
        self.editing: EditBody | None = None
        self.edit_bodies: list[EditBody] = []
        self.assigned: deque[tuple[str, Any]] = deque(maxlen=3)  # for the note on an error that follows
        self.awaited: tuple[Point, str] | None = None  # what the body waits for in the present step
        self.block: tuple[int, CodeType] | None = None

    def open(self, block: FrameType) -> None:
        """Make this the run of the `with` block that `block` executes. The frame itself is not kept."""
        self._model = Coroutine(self, self.call)
        self.block = (id(block), block.f_code)
        openruns.enter(self)
        if self.owner._edits:
            self._begin_edits()

    def _begin_edits(self) -> None:
        """Start the model's edits; each further call of the model starts them again."""
        self.edit_bodies += [EditBody(self, self.owner, edit) for edit in self.owner._edits]
        for body in self.edit_bodies:
            body.start()
        self.root_point().recorders += (lambda *_: self._restart_edits(),)

    def _restart_edits(self) -> None:
        for body in self.edit_bodies:
            body.restart()

    # The body's side

    def read(self, point: Point, phase: str, index: int | None = None) -> Any:
        """The value of `point` at `phase`, running the model as far as needed.

        Returns the pair (args, kwargs) for ENTER and the call's value for LEAVE. `index` names one pass; without it
        the present pass (when paused there) or the next one is meant.
        """
        here = self.at is point and (phase is ENTER or self.phase is LEAVE)
        if not (here and (index is None or index == self._pass_here())):
            self._reach(point, phase, index)
        value = (point.args, point.kwargs) if phase is ENTER else point.value
        if is_grad_enabled():
            self.gradients.note(value, point.address, phase)
        return value

    def write(self, point: Point, phase: str, change: Callable[[Any], Any], index: int | None = None) -> None:
        """Apply `change` to the value of `point` at `phase`: at once when paused there, else when it is reached."""
        if self.validate:
            change = checked(point.address, phase, change)
        here = self.at is point and self.phase == phase and index in (None, self._pass_here())
        behind = point.passes(phase)
        if not here and index is None and (behind > point.base or diagnosis.ran_unobserved(point)):
            # Passed before: a further pass is found by running on, so that its absence is reported at this line.
            self._reach(point, phase, None)
            here = True
        if here:
            model = self._model
            refuse_edit_if_recomputed(point.address, self.paused_frame(), model is not None and model.grad)
            if phase == ENTER:
                point.args, point.kwargs = change((point.args, point.kwargs))
            else:
                point.value = change(point.value)
            return
        if index is not None and index < behind:
            raise diagnosis.too_late(self, point, phase, index)
        if self.finished:
            raise diagnosis.missed(self, point, phase, index)
        if self.validate:
            change = self._failing_here(change)
        awaited = behind if index is None else index
        point.edit(phase, awaited, change)
        if self.editing is not None:
            self.editing.left.append(partial(point.drop, phase, awaited, change))
        elif self.steps is not None and index is None:
            self.steps.due.append((point, phase, awaited, self.turn))

    def _failing_here(self, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A change that the model's side will make, whose refusal is the body's error and leaves the value as it is."""

        turn = self.turn

        def guarded(old: Any) -> Any:
            try:
                return change(old)
            except ValidationError as error:
                self.fail(error, turn)
                return old

        return guarded

    def _awaited(self, point: Point, phase: str, index: int | None) -> int:
        """The pass to wait for. Raises OutOfOrderError when it lies behind."""
        behind = point.begun if phase is ENTER else point.ended
        awaited = behind if index is None else index
        if awaited < behind:
            raise diagnosis.too_late(self, point, phase, index)
        if index is None and self.at is point and self.phase is phase is LEAVE:
            awaited += 1  # the present pass counts as ended only when the model goes on
        return awaited

    def _reach(self, point: Point, phase: str, index: int | None) -> None:
        awaited = self._awaited(point, phase, index)
        if self.editing is not None:
            self.editing.wait(point, phase, index, awaited)
            return
        if phase is ENTER:
            point.wait_enter = awaited
        else:
            point.wait_leave = awaited
        self.awaited = (point, phase) if self.steps is not None and index is None else None
        try:
            self._advance()
        finally:
            point.wait_enter = point.wait_leave = -1
            self.awaited = None
        if self.at is not point:
            raise diagnosis.missed(self, point, phase, index)

    def skip(self, point: Point, value: Any, index: int | None = None) -> None:
        """Make the call at `point` return `value` without running."""
        if self.at is point and self.phase == ENTER and index in (None, self._pass_here()):
            point.skip(point.begun - 1, value)
            return
        if point.begun > point.ended and index is None:
            raise diagnosis.skip_too_late(point)
        if self.finished or (index is not None and index < point.begun):
            raise diagnosis.missed(self, point, ENTER, index, "skip")
        awaited = point.begun if index is None else index
        point.skip(awaited, value)
        if self.editing is not None:
            self.editing.left.append(lambda: point.skips.pop(awaited, None))
        elif self.steps is not None and index is None:
            self.steps.due.append((point, "skip", awaited, self.turn))

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

    def in_steps(self) -> Steps:
        """The steps of this run, which are told apart from here on."""
        self.ensure_taps()
        if self.steps is None:
            self.steps = Steps(self)
        return self.steps

    def to_call(self, point: Point, number: int) -> bool:
        """Run to the beginning of a call that lies ahead; False when the model ended before."""
        point.wait_enter = number
        try:
            self._advance()
        finally:
            point.wait_enter = -1
        return self.at is point

    def innermost(self) -> Run:
        """The run that sites of the block's present line are of: this one."""
        return self

    def outcome(self) -> Any:
        """What the model returned."""
        return self.result

    def stop(self) -> None:
        """Take the model down where it stands."""
        self.finished = True
        self.at = None
        if self._model is not None:
            self._model.unwind()

    def finish(self) -> None:
        """Run the model to its end and check that every assignment found its site."""
        while not self.finished:
            self._advance()
        for body in self.edit_bodies:
            body.conclude()
        error = None if self.steps is None else self.steps.unmet()[0]
        if error is not None:
            raise error
        for point in self.all_points():
            pending = point.pending()
            if pending is not None:
                attribute, index = pending
                raise diagnosis.missed(self, point, LEAVE if attribute == LEAVE else ENTER, index, attribute)

    def close(self) -> None:
        """Leave the model as it was found. Idempotent."""
        if self.closed:
            return
        try:
            self._close()
        except BaseException:
            self._close()  # an interrupt may have come at any point of it; what is done is not done again
            raise

    def _close(self) -> None:
        try:
            self.stop()
        finally:
            while self.edit_bodies:
                self.edit_bodies.pop().close()
            detach(self)
            for module in tuple(self.forwards):
                slot = self.instruments.slot(module)
                twin = slot.detach(self.forwards)
                slot.give_back(twin)
            for table in self.tables.values():
                table.clear()
            self.tables.clear()
            self.points.clear()
            self.steps = None
            self.late.clear()
            self.assigned.clear()
            self.stack.clear()
            self.gradients.clear()
            self.at = None
            if self._model is not None:
                self._model.release()
                self._model = None
            openruns.leave(self)
            self.closed = True

    def _advance(self) -> None:
        """Let the model run until it pauses or ends."""
        model = self._model
        if self.finished or model is None:
            return
        self.at = None
        try:
            result = model.advance()
        except BaseException as error:
            self.finished = True
            self.error = type(error).__name__
            for address, value in () if isinstance(error, TraceError) else self.assigned:
                error.add_note(f"This trace had assigned {address}: {describe_value(value)}.")
            raise
        if model.ended:
            self.finished = True
            self.returned = True
            self.result = result
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    # The model's side

    def pause(self, point: Point, phase: str) -> None:
        """Hand the turn to the body, at `point`."""
        if self.finished:  # the model is being taken down
            return
        self.at = point
        self.phase = phase
        self._last = (point.address, phase)
        getcurrent().parent.switch()  # type: ignore[union-attr]  # hand_back, without a call of its own

    def fail(self, error: TraceError, whose: Body | None = None) -> None:
        """Hand the turn to the body with an error that belongs to the body's line; `whose` tells blocks apart."""
        if self.finished:
            return
        self.failure = error
        hand_back()

    def end_step(self) -> None:
        """Tell whoever waits for a site of the step that ends here that it did not come."""
        awaited, self.awaited = self.awaited, None
        if awaited is not None:
            self.fail(diagnosis.missed(self, *awaited, None))

    @property
    def last_address(self) -> str | None:
        """The site at which the model paused last."""
        return None if self._last is None else ".".join(self._last)

    def _pass_here(self) -> int:
        point = self.at
        assert point is not None
        return point.begun - 1 if self.phase == ENTER else point.ended
