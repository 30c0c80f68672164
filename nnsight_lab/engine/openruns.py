"""Which trace a line belongs to.

Open runs are kept in a context variable, so that threads and asyncio tasks each see their own. Bodies that share a
context (generators, a trace inside a trace) are told apart by the frame that executes the `with` block.
"""

from __future__ import annotations

import contextvars
import sys
from types import FrameType
from typing import TYPE_CHECKING

from .errors import OutsideTraceError

if TYPE_CHECKING:
    from .run import Run

_open: contextvars.ContextVar[tuple[Run, ...]] = contextvars.ContextVar("nnsight_lab_runs", default=())


def enter(run: Run) -> None:
    """Add `run` to those of this context."""
    _open.set((*(other for other in _open.get() if not other.closed), run))


def leave(run: Run) -> None:
    """Take `run` off those of this context."""
    _open.set(tuple(other for other in _open.get() if other is not run))


def current_run(owner: object) -> Run | None:
    """The open run of `owner`'s model that the calling code belongs to, or None.

    Of several it is the innermost whose `with` block is being executed; when no block is on the stack (a trace opened
    by a helper), the one opened last.
    """
    runs = _open.get()
    if len(runs) == 1:
        run = runs[0]
        return run if _is_of(run, owner) else None
    found = [run for run in runs if _is_of(run, owner)]
    if len(found) < 2:
        return found[0] if found else None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        for run in reversed(found):
            if run.block == (id(frame), frame.f_code):
                return run
        frame = frame.f_back
    return found[-1]


def _is_of(run: Run, owner: object) -> bool:
    if run.closed:
        return False
    return run.owner is owner or (run.editing is not None and run.editing.speaks_of(owner))


def open_runs() -> list[Run]:
    """The open runs of this context, of whichever model, the outermost first."""
    return [run for run in _open.get() if not run.closed]


def any_open() -> bool:
    """Whether the calling code is inside a trace, of whichever model."""
    return bool(open_runs())


def outside_trace(address: str) -> OutsideTraceError:
    """The error for a site's value that was asked for while no trace of its model was open."""
    if any_open():
        return OutsideTraceError(
            f"{address} belongs to another model (or another wrapper of it) than the one whose trace is open: it has a "
            "value only inside a trace of its own. Traces of two models can be nested."
        )
    return OutsideTraceError(
        f"{address} has a value only while a trace is open. Write it inside `with model.trace(...):` "
        "(values read there stay usable after the block)."
    )
