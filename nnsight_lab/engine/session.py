"""`with model.session() as session:` - several traces as one piece of work.

Here each trace runs in place, when its block is reached, as it would outside; values go from one to the next as
Python's own. A session gives the whole one end (`session.stop()`).
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from .errors import TraceStateError
from .run import StopTrace
from .trace import Tracer

if TYPE_CHECKING:
    from .wrapper import NNsight


class Session:
    """The handle of a session. Made by `model.session()`; used once."""

    def __init__(self, model: NNsight) -> None:
        self._model = model
        self._state = "new"

    def __enter__(self) -> Session:
        if self._state != "new":
            raise TraceStateError("This session has been used already. Call .session() again for another one.")
        self._state = "open"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self._state = "closed"
        return isinstance(error, StopTrace) and error.stopped is self

    def trace(self, *args: Any, **kwargs: Any) -> Tracer:
        """A trace of the session's model; the same as `model.trace(...)`."""
        return self._model.trace(*args, **kwargs)

    def stop(self) -> None:
        """End the session's block here, and the trace that is open in it. Code after the block goes on.

        Raises:
            TraceStateError: the session's block is not open.
        """
        if self._state != "open":
            raise TraceStateError("session.stop() works inside its own `with` block only.")
        raise StopTrace(self)
