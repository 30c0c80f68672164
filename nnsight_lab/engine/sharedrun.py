"""One forward that several bodies read and edit, each for its own rows of the batch.

Every block under `tracer.invoke` is a coroutine of its own. `SharedRun` gives the turns: bodies run, in the order in
which they are written, until each waits for a site (or for a name or a barrier of another); then the model runs to the
nearest of those sites and pauses, and whoever waits for it gets its rows of the value. A body that became free in the
meantime may still read the site where the model stands.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol

import torch

from . import diagnosis
from .batch import Rows
from .bodies import Body, Handed, Input, hand
from .coroutine import hand_back
from .errors import InvokeError, TraceError, TraceStateError
from .instruments import Instruments
from .lifting import Block
from .names import FrameNames, Names
from .points import ENTER, LEAVE, Arguments, Point
from .run import Run, StopTrace
from .validation import checked


class Joining(Protocol):
    """How the blocks' inputs become one call of the model."""

    def prepare(self, *args: Any, **keywords: Any) -> Arguments:
        """What the call takes for one block's input. Raises for something that cannot be run."""

    def together(self, inputs: list[Arguments]) -> tuple[Callable[[], Any], list[int]]:
        """From what was prepared for each block: what calls the model on all of it, and how many rows each has."""


class SharedRun(Run):
    """A run whose bodies are invoke blocks. Without any it is a run like others.

    Args:
        owner, instruments: as in `Run`.
        alone: runs the model when there is no block.
        joining: makes one call of the blocks' inputs.
    """

    def __init__(self, owner: Any, instruments: Instruments, alone: Callable[[], Any], joining: Joining) -> None:
        super().__init__(owner, instruments, alone)
        self.joining: Joining | None = joining
        self.bodies: list[Body] = []
        self.turn: Body | None = None
        self.one_by_one = False
        self.alone: Run | None = None  # that of a block which runs one by one, while it is open
        self._frames: list[FrameNames] = []
        self._handed: list[Handed] = []
        self._replaced = False
        self._served = False

    def refuse_more(self) -> None:
        """Raises InvokeError where no block can be added any more."""
        if self.turn is not None:
            raise InvokeError("An invoke block cannot stand inside another one: write them one after the other.")
        if self._started or self.finished or self._served:
            raise InvokeError(
                "The model of this trace runs already, so no prompt can be added. Write all invoke blocks before "
                "anything that reads a site or the result."
            )

    def innermost(self) -> Run:
        return self if self.alone is None else self.alone

    @property
    def awaits_model(self) -> bool:
        """Whether the trace's own code stands behind blocks that have not run yet."""
        return bool(self.bodies) and self.turn is None and not self._served

    def run_by(self, joining: Joining) -> Any:
        """Run the blocks now by a call of the model that takes several steps. Returns what that call returned."""
        for body in self.bodies:
            if body.inputs is not None:
                body.inputs = body.inputs.prepared_by(joining)
        self.joining = joining
        self.stepwise = True
        self.finish()
        if not self.returned:
            raise TraceStateError("Every block stopped, so the model did not return: there is no result.")
        return self.outcome()

    def add(self, block: Block, frame: FrameType, inputs: Input | None, invoker: Any) -> None:
        """Take a block to run when the trace ends."""
        names = next((names for names in self._frames if names.frame is frame), None)
        if names is None:
            names = FrameNames(frame)
            self._frames.append(names)
        earlier = [body.names for body in self.bodies if body.names.frame is names]
        own = Names(block, names, earlier, self._wait_for_name, invoker)
        self.bodies.append(Body(block, frame, own, inputs))

    # The body's side

    def read(self, point: Point, phase: str, index: int | None = None) -> Any:
        if self.turn is None:
            self._refuse_outside(point)
            return super().read(point, phase, index)
        return self._hand(self._whole(point, phase, index), point, phase)

    def _whole(self, point: Point, phase: str, index: int | None) -> Any:
        """The value for all rows, for which the body whose turn it is waits."""
        here = self.at is point and (phase is ENTER or self.phase is LEAVE)
        if not (here and (index is None or index == self._pass_here())):
            self._reach(point, phase, index)
        return (point.args, point.kwargs) if phase is ENTER else point.value

    def _refuse_outside(self, point: Point) -> None:
        """Raises InvokeError for the trace's own code, which runs before the prompts do; edits are not meant."""
        if self.bodies and not self._served and self.editing is None:
            raise InvokeError(
                f"{point.address} was used outside the invoke blocks of its trace: the prompts run together when the "
                "trace ends. Read and assign it inside `with tracer.invoke(...):`."
            )

    def first_input(self, point: Point, index: int | None = None) -> Any:
        if self.turn is None:
            return super().first_input(point, index)
        args, kwargs = self._whole(point, ENTER, index)
        if args:
            return self._hand(args[0], point, ENTER, first=True)
        if kwargs:
            return self._hand(next(iter(kwargs.values())), point, ENTER, first=True)
        return super().first_input(point, index)  # which says what is wrong

    def write(self, point: Point, phase: str, change: Callable[[Any], Any], index: int | None = None) -> None:
        body = self.turn
        if body is None:
            self._refuse_outside(point)
        if body is None or body.rows.all:
            super().write(point, phase, change, index)
            return
        rows, place = body.rows, body.place()
        site = f"{point.address}.{phase}"

        def change_rows(whole: Any) -> Any:
            try:
                part = change(whole)
                if self.validate and phase == LEAVE:
                    checked(point.address, phase, lambda _: part)(rows.take(whole, site))
                return rows.put(whole, part, site)
            except InvokeError as error:
                error.add_note(f"Assigned at {place}.")
                raise

        super().write(point, phase, change_rows, index)
        if self.at is point and self.phase == phase:
            self._handed = [h for h in self._handed if h.body is not body or h.phase != phase]
            self._replaced = True

    def skip(self, point: Point, value: Any, index: int | None = None) -> None:
        """For some rows of a batch, a call is skipped by putting `value` in place of their result."""
        if self.turn is None:
            self._refuse_outside(point)
        if self.turn is None or self.turn.rows.all:
            super().skip(point, value, index)
            return
        if point.begun > point.ended and index is None and not (self.at is point and self.phase == ENTER):
            raise diagnosis.skip_too_late(point)
        self.write(point, LEAVE, lambda _: value, index)

    def outcome(self) -> Any:
        return self.result if self.turn is None else self.turn.rows.take(self.result, "tracer.result")

    def finish(self) -> None:
        body = self.turn
        if body is not None:
            body.for_end = True
            try:
                self._wait(body, "the model's end", lambda: self.finished)
            finally:
                body.for_end = False
            return
        if self.one_by_one and not self.bodies:
            self.stop()
            return
        if self.bodies and not self._served:
            self._served = True
            self._serve()
        super().finish()

    def _reach(self, point: Point, phase: str, index: int | None) -> None:
        body = self.turn
        if body is None:
            super()._reach(point, phase, index)
            return
        awaited = self._awaited(point, phase, index)
        if not self.finished:
            body.wait_at(point, phase, awaited, within_step=self.steps is not None and index is None)
        if self.at is not point:
            raise diagnosis.missed(self, point, phase, index)

    def to_call(self, point: Point, number: int) -> bool:
        if self.turn is None:
            self._refuse_outside(point)
            return super().to_call(point, number)
        self.turn.wait_at(point, ENTER, number)
        return self.at is point

    def _wait_for_name(self, name: str, condition: Callable[[], bool]) -> None:
        body = self.turn
        if body is not None:
            self._wait(body, f"the name {name!r}, which an earlier block binds", condition)

    def _wait(self, body: Body, words: str, condition: Callable[[], bool]) -> None:
        while not condition():
            body.until = (words, condition)
            try:
                body.pause()
            finally:
                body.until = None

    def barrier(self, count: int) -> Callable[[], None]:
        """What each of `count` blocks calls to wait for the others; it can be used again by all of them."""
        arrived = 0

        def wait() -> None:
            nonlocal arrived
            body = self.turn
            if body is None:
                raise InvokeError("A barrier is for invoke blocks: call it inside `with tracer.invoke(...):`.")
            arrived += 1
            needed = -(-arrived // count) * count
            self._wait(body, f"a barrier of {count} blocks", lambda: arrived >= needed)

        return wait

    def _hand(self, value: Any, point: Point, phase: str, first: bool = False) -> Any:
        body = self.turn
        assert body is not None
        given = value if body.rows.all else self._part(body, value, point, phase, first)
        if torch.is_grad_enabled():
            self.gradients.note(given, point.address, phase)
        return given

    def _part(self, body: Body, value: Any, point: Point, phase: str, first: bool) -> Any:
        for handed in self._handed:
            if handed.body is body and handed.phase == phase and handed.first == first:
                return handed.given
        handed = hand(body, value, point, phase, first)
        self._handed.append(handed)
        return handed.given

    # Turns

    def _serve(self) -> None:
        """Give turns until every body has ended."""
        self._allot()
        waiting = list(self.bodies)
        while waiting:
            ready = next((body for body in waiting if self._is_ready(body)), None)
            if ready is not None:
                self._give_turn(ready)
                if ready.ended:
                    waiting.remove(ready)
            elif any(body.site is not None or body.for_end for body in waiting):
                self._run_on(waiting)
            else:
                body = waiting[0]
                words = body.until[0] if body.until else "nothing"
                body.failure = InvokeError(
                    f"This block waits for {words}, and no other block is left that could get it there: blocks that "
                    "wait for one another, or a barrier of more blocks than call it."
                )
        for body in self.bodies:
            body.names.write_back()
        if all(body.stopped for body in self.bodies):
            self.stop()

    def _allot(self) -> None:
        """Put the prompts together and give each body its rows."""
        joining = self.joining
        assert joining is not None
        prompted = [body for body in self.bodies if body.inputs is not None]
        if not prompted:
            raise InvokeError("No block of this trace has a prompt: write `with tracer.invoke(prompt):`.")
        call, counts = joining.together([body.inputs.arguments for body in prompted if body.inputs is not None])
        assert self._model is not None
        self._model.replace(call)
        total, first = sum(counts), 0
        for body in self.bodies:
            body.rows = Rows(0, total, total)
            body.names.begin()
        for body, count in zip(prompted, counts, strict=True):
            body.rows = Rows(first, first + count, total)
            first += count

    def _is_ready(self, body: Body) -> bool:
        if body.failure is not None:
            return True
        if body.site is not None:
            point, phase, awaited = body.site
            return self.finished or (self.at is point and self.phase == phase and self._pass_here() == awaited)
        return body.until is None or body.until[1]()

    def _give_turn(self, body: Body) -> None:
        self.turn = body
        try:
            body.turns.advance()
        except StopTrace as stop:
            if stop.stopped is not self:
                raise
            body.stopped = True
        finally:
            self.turn = None
            body.names.ended = body.ended

    def _run_on(self, waiting: list[Body]) -> None:
        """Let the model run to the nearest site that a body waits for, or to its end."""
        sited = [body for body in waiting if body.site is not None]
        points: list[Point] = []
        for body in sited:
            assert body.site is not None
            point, phase, awaited = body.site
            points.append(point)
            set_to = point.wait_enter if phase is ENTER else point.wait_leave
            nearest = awaited if set_to < 0 else min(awaited, set_to)
            if phase is ENTER:
                point.wait_enter = nearest
            else:
                point.wait_leave = nearest
        try:
            self._advance()
        except Exception as error:  # belongs to the line of a body that waits for the model
            (sited or waiting)[0].failure = error
        finally:
            for point in points:
                point.wait_enter = point.wait_leave = -1

    # The model's side

    def fail(self, error: TraceError, whose: Body | None = None) -> None:
        if whose is None or whose.ended:
            super().fail(error)
        elif not self.finished:
            whose.failure = error
            hand_back()

    def end_step(self) -> None:
        late = [body for body in self.bodies if body.site is not None and body.within_step]
        if self.finished or not late:
            return
        for body in late:
            assert body.site is not None
            point, phase, _ = body.site
            body.failure = diagnosis.missed(self, point, phase, None)
        hand_back()

    def pause(self, point: Point, phase: str) -> None:
        super().pause(point, phase)
        handed, self._handed = self._handed, []
        replaced, self._replaced = self._replaced, False
        for each in handed:
            if each.phase == phase and (replaced or each.changed()):
                each.put_back(point)

    def _close(self) -> None:
        try:
            super()._close()
        finally:
            bodies, self.bodies = self.bodies, []
            self.turn = self.joining = None
            self._handed = []
            self.call = _nothing
            failure: BaseException | None = None
            for body in bodies:
                try:
                    body.turns.unwind()
                except BaseException as error:
                    failure = failure or error
                body.turns.release()
                del body.turns  # each holds the other
                body.names.release()
            for names in self._frames:
                names.release()
            self._frames = []
            if failure is not None:
                raise failure


def _nothing() -> None:
    return None
