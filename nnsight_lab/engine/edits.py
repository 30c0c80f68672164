"""`model.edit(...)`: functions that take part in every trace of a model, before the block's own reads.

An edit reads and assigns sites like a block does, and is a coroutine like the model is. It has its turns on the model's
side: where it waits for a site it leaves a change at that site's point; when the model gets there, carrying the change
out means giving the edit its turn, with the run standing at the point. What the edit makes of the value is what the
model, and then the user's block, goes on with.

An edit starts with the run, and again with every further call of the wrapped model: so it holds for each step of a
generation. Only in the first is it an error when the forward does not reach what it asks for.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import diagnosis
from .coroutine import Coroutine, hand_back
from .points import ENTER, Point

if TYPE_CHECKING:
    from .envoy import Envoy
    from .run import Run

EditFunction = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Edit:
    """A function of the model, and the wrapper whose `edit` it was given to.

    The function may address sites by either: by the model that it is given, or by that wrapper.
    """

    function: EditFunction
    made_on: Envoy


class EditBody:
    """One edit in one run.

    Attributes:
        again: whether this is not its first activation in the run.
        left: take back what it has assigned or skipped ahead, in this activation.
    """

    # Read by the taps, for which an edit is a caller that belongs to no run.
    observed: dict[Any, int] = {}  # noqa: RUF012
    forwards: dict[Any, Any] = {}  # noqa: RUF012
    is_body = True

    def __init__(self, run: Run, model: Envoy, edit: Edit) -> None:
        self._run = run
        self._edit = lambda: edit.function(model)
        self._made_on = edit.made_on
        self._context = contextvars.copy_context()  # in which the run is the open one
        self.again = False
        self.left: list[Callable[[], None]] = []
        self._turns: Coroutine | None = self._coroutine()

    def _coroutine(self) -> Coroutine:
        return self._context.run(Coroutine, self, self._edit)

    def speaks_of(self, owner: object) -> bool:
        """Whether the edit addresses its run's sites by `owner` too."""
        return owner is self._made_on and self._made_on._module is self._run.owner._module

    def start(self) -> None:
        """Run to the first site that the edit waits for. Raises what the edit raises."""
        self._turn()

    def restart(self) -> None:
        """Start over for another call of the model, unless the last activation still waits for something."""
        if self._turns is not None and self._turns.ended:
            self.again = True
            self.left = []
            self._turns.release()
            self._turns = self._coroutine()
            self._turn()

    def wait(self, point: Point, phase: str, index: int | None, awaited: int) -> None:
        """In the edit: let the model go on until it reaches a site, in the pass `awaited`."""
        run = self._run
        if not run.finished:
            change = self._arrived(point, phase)
            point.edit(phase, awaited, change)
            try:
                hand_back()
            finally:
                point.drop(phase, awaited, change)
        if run.at is not point:
            raise diagnosis.missed(run, point, phase, index)

    def _arrived(self, point: Point, phase: str) -> Callable[[Any], Any]:
        """The change that is left at the point: a turn for the edit."""

        def change(value: Any) -> Any:
            run = self._run
            if run.finished:  # the model is being taken down
                return value
            run.at, run.phase = point, phase
            try:
                if phase == ENTER:
                    point.args, point.kwargs = value
                    self._turn()
                    return point.args, point.kwargs
                point.value = value
                self._turn()
                return point.value
            finally:
                run.at = None
                point.let_go(phase)

        return change

    def _turn(self) -> None:
        run = self._run
        outer, run.editing = run.editing, self
        try:
            assert self._turns is not None
            self._turns.advance()
        finally:
            run.editing = outer

    def conclude(self) -> None:
        """After the model's end. Raises NotReachedError at the edit's line when it still waits for something."""
        if self.again:
            for undo in self.left:
                undo()
        if self._turns is None or self._turns.ended:
            return
        if self.again:
            self.close()
        else:
            self._turn()

    def close(self) -> None:
        """Take the edit down where it stands, and let go of everything. Idempotent."""
        turns, self._turns = self._turns, None
        self.left = []
        if turns is not None:
            try:
                turns.unwind()
            finally:
                turns.release()
