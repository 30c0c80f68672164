"""`with tracer.invoke(prompt):` - one of several prompts that a trace runs in one forward.

Entering lifts the block out of its frame (see `lifting`) and lets the frame pass over it; the run gives it its turns
when the trace ends. Where the source of the block cannot be found, it stays in place and its prompt gets a forward of
its own, which gives the same values, only slower.
"""

from __future__ import annotations

import sys
import warnings
from types import FrameType, TracebackType

from .bodies import Input
from .errors import InvokeError, TraceStateError
from .lifting import Skip, find_block
from .points import Arguments
from .run import Run, StopTrace
from .sharedrun import SharedRun


class Invoker:
    """The handle of one block. Made by `tracer.invoke`; used once."""

    def __init__(self, run: SharedRun, inputs: Input | None) -> None:
        self._input = inputs
        self._run: SharedRun | None = run
        self._skip: Skip | None = None
        self._own: Run | None = None
        self._shared: SharedRun | None = None

    @property
    def inputs(self) -> Arguments | None:
        """What the model's forward takes for this block, as (args, kwargs); None for all rows."""
        return None if self._input is None else self._input.arguments

    def __enter__(self) -> Invoker:
        run, self._run = self._run, None
        self._shared = run
        if run is None:
            raise TraceStateError("This block has been used already. Call tracer.invoke(...) again for another one.")
        run.refuse_more()
        frame = sys._getframe(1)
        looked_through = frame.f_globals.get("__name__") == "contextlib"
        block = None if looked_through else find_block(frame)
        if block is not None:
            run.add(block, frame, self._input, self)
            self._skip = Skip(frame)
        else:
            while frame.f_back is not None and frame.f_globals.get("__name__") == "contextlib":
                frame = frame.f_back
            self._run_alone(run, frame)
        return self

    def _run_alone(self, run: SharedRun, frame: FrameType) -> None:
        where = f"{frame.f_code.co_filename}, line {frame.f_lineno}"
        if self._input is None:
            raise InvokeError(
                f"{where}: the source of this block cannot be found, so its prompts run one at a time and there is no "
                "batch for `tracer.invoke()` to see. Define the code in a file or a notebook cell."
            )
        if not run.one_by_one:
            run.one_by_one = True
            warnings.warn(
                f"{where}: the source of this block cannot be found, so each prompt of this trace runs in a forward of "
                "its own. The values are the same; define the code in a file or a notebook cell to run them together.",
                stacklevel=4,
            )
        assert run.joining is not None
        own = self._own = Run(run.owner, run.instruments, run.joining.together([self._input.arguments])[0])
        own.validate = run.validate
        own.stepwise = run.stepwise
        try:
            own.open(frame)
            run.alone = own
        except BaseException:
            own.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        skip, self._skip = self._skip, None
        shared, self._shared = self._shared, None
        if skip is not None:
            return skip.swallow(error)
        own, self._own = self._own, None
        if own is None:
            return False
        assert shared is not None
        shared.alone = None
        try:
            if error is None:
                own.finish()
        finally:
            own.close()
        return isinstance(error, StopTrace) and error.stopped is shared
