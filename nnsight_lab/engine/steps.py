"""Steps of a run in which the root module is called several times, as in a generation: step i is its call i.

Where a run has steps, a read or an assignment that names no call means the present step. The root's point stands on the
border between two of them, on the model's side: what was to come in the step that ends there and did not come is told
to the body as an error, and every point notes how many passes lie behind it.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from . import diagnosis
from .errors import NotReachedError, OutOfOrderError, TraceError, TraceStateError
from .points import ENTER, LEAVE, Point
from .taps import Tap, tap_of

if TYPE_CHECKING:
    from .bodies import Body
    from .run import Run


class RootPoint(Point):
    """The point of the root module: each of its calls begins a step."""

    __slots__ = ()

    def visit(self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.run.steps is not None:
            self.run.steps.border()
        return super().visit(call, args, kwargs)


class Steps:
    """The steps of one run.

    Attributes:
        due: assignments and skips that are to be carried out in the present step, and the block that each is of.
    """

    __slots__ = ("_before", "_calls", "_observed", "_origins", "_stands", "_tap", "due", "root", "run")

    def __init__(self, run: Run) -> None:
        self.run = run
        self.root = run.root_point()
        self._tap = tap_of(run.instruments.root)
        self.due: list[tuple[Point, str, int, Body | None]] = []
        self._calls: dict[Tap, int] = {}
        self._before: dict[Tap, int] = {}
        self._observed: dict[Tap, int] = {}
        # The step that a block's loop or `tracer.next` went to last; from there modules count their own `next`.
        self._origins: dict[Body | None, int] = {}
        self._stands: dict[tuple[Body | None, Tap], int] = {}

    @property
    def present(self) -> int:
        """The number of the step that the model is in; 0 before the first one too."""
        return max(self.root.begun - 1, 0)

    def calls_before(self, tap: Tap) -> int:
        """How often the tapped module had been called when the present step began."""
        if tap in self._observed:
            return self._observed[tap]
        return self._calls.get(tap, 0) - self._before.get(tap, 0)

    def border(self) -> None:
        """On the model's side: one step ends (unless this is the first) and the next one begins."""
        run = self.run
        if self.root.begun:
            error, whose = self.unmet()
            if error is not None:
                run.fail(error, whose)
            run.end_step()
        self._calls = {tap: tap.calls() for tap in run.taps}
        self._before = dict(run.before)
        self._observed = dict(run.observed)
        self._observed[self._tap] -= 1  # its call has been counted when it comes here
        for point in run.all_points():
            point.base = point.begun
        for table in run.all_tables():
            table.note_counts()

    def unmet(self) -> tuple[TraceError | None, Body | None]:
        """The error for an assignment or skip that the step just ended did not carry out, and the block that it is of.

        All of them are withdrawn.
        """
        found: tuple[TraceError | None, Body | None] = None, None
        for point, attribute, index, whose in self.due:
            if point.withdraw(attribute, index) and found[0] is None:
                phase = LEAVE if attribute == LEAVE else ENTER
                found = diagnosis.missed(self.run, point, phase, None, attribute), whose
        self.due.clear()
        return found

    def go(self, number: int) -> bool:
        """Let the model run to the beginning of step `number`, unless it is in it. False: it ended before.

        Raises:
            OutOfOrderError: that step is over.
        """
        run, root = self.run, self.root
        if run.closed:
            raise TraceStateError("The steps of a trace can be gone through inside its own `with` block only.")
        if run.editing is not None:
            raise TraceStateError(
                "An edit holds for every step of a generation; it cannot go from one to another itself."
            )
        begun = root.begun
        if number == begun - 1 and not run.finished:
            return True
        if number < begun:
            stands = "the model has ended" if run.finished else f"the model is in step {begun - 1}"
            raise OutOfOrderError(
                f"Step {number} was asked for, but it is over: {stands}. Steps can be gone through once, in order."
            )
        return run.to_call(root, number)

    def begin_at(self, number: int) -> bool:
        """`go`, for the whole model."""
        if not self.go(number):
            return False
        turn = self.run.turn
        self._origins[turn] = number
        self._stands = {key: step for key, step in self._stands.items() if key[0] is not turn}
        return True

    def forward(self, count: int) -> None:
        """Go to the step `count` after the present one. Raises NotReachedError when there is none."""
        number = self.present + count
        if not self.begin_at(number):
            raise self._never(number)

    def forward_for(self, tap: Tap, count: int) -> None:
        """Go to the step `count` after the one that the tapped module was taken to last."""
        turn = self.run.turn
        number = self._stands.get((turn, tap), self._origins.get(turn, 0)) + count
        if not self.go(number):
            raise self._never(number)
        self._stands[turn, tap] = number

    def _never(self, number: int) -> NotReachedError:
        return NotReachedError(f"Step {number} never came: the model made {self.root.begun} steps.")


class StepLoop:
    """Some of the steps of a run, to be gone through with `for`: the loop's variable is the step's number."""

    __slots__ = ("_numbers", "_steps", "_text")

    def __init__(self, steps: Steps, numbers: Callable[[], Iterable[int]], text: str) -> None:
        self._steps = steps
        self._numbers = numbers
        self._text = text

    def __iter__(self) -> Iterator[int]:
        for number in self._numbers():
            if not self._steps.begin_at(number):
                return
            yield number

    def __enter__(self) -> NoReturn:
        raise TraceStateError(
            f"`with {self._text}:` would run its block several times, which a `with` block in place cannot do: write "
            f"`for step in {self._text}:`."
        )

    def __exit__(self, *error: object) -> None: ...

    def __repr__(self) -> str:
        return f"<steps {self._text}: go through them with `for step in {self._text}:`>"


class StepSelector:
    """`tracer.iter`: choose steps with `[...]`."""

    __slots__ = ("_steps",)

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def __getitem__(self, key: Any) -> StepLoop:
        """The steps of a slice (open: to the end), of one number or of a list of numbers, which count from 0.

        A slice without a start begins with the present step. Steps that do not come, because the generation ends
        before, end the loop.

        Raises:
            ValueError: negative numbers, a slice that does not go forward, a list that is not in ascending order.
            TypeError: anything else.
        """
        steps = self._steps
        if isinstance(key, slice):
            start, stop, stride = (None if part is None else _number(part) for part in (key.start, key.stop, key.step))
            if stride == 0:
                raise ValueError("tracer.iter[...]: a slice goes forward by 1 or more, not by 0.")

            def numbers() -> Iterable[int]:
                first = start if start is not None else steps.root.begun if steps.run.finished else steps.present
                return itertools.count(first, stride or 1) if stop is None else range(first, stop, stride or 1)

            parts = [key.start, key.stop] if key.step is None else [key.start, key.stop, key.step]
            text = ":".join("" if part is None else str(part) for part in parts)
            return StepLoop(steps, numbers, f"tracer.iter[{text}]")
        if isinstance(key, (list, tuple, range)):
            chosen = [_number(part) for part in key]
            if any(later <= earlier for earlier, later in itertools.pairwise(chosen)):
                raise ValueError(
                    f"tracer.iter[{chosen}]: steps come in ascending order, each once: write {sorted(set(chosen))}."
                )
            return StepLoop(steps, lambda: chosen, f"tracer.iter[{chosen}]")
        number = _number(key)
        return StepLoop(steps, lambda: (number,), f"tracer.iter[{number}]")

    def __iter__(self) -> Iterator[int]:
        return iter(self[:])

    def __enter__(self) -> NoReturn:
        self[:].__enter__()

    def __exit__(self, *error: object) -> None: ...


def _number(key: Any) -> int:
    try:
        number = operator.index(key)
    except TypeError:
        raise TypeError(f"tracer.iter[...] takes a slice, a number or a list of numbers, not {key!r}.") from None
    if number < 0:
        raise ValueError(
            f"tracer.iter[...]: steps count from 0 at the first one, and how many there will be is not known: {number} "
            "cannot be asked for."
        )
    return number
