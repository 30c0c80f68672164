"""`with model.edit() as (tracer, edited):` - an edit written as a block.

The block is lifted out of its frame like those of `tracer.invoke` (see `lifting`), and becomes the function that the
edited model runs in its traces. Its names keep the values that they had where the block stands.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FunctionType, TracebackType
from typing import Any, Generic, TypeVar

from .edits import EditFunction
from .errors import SourceUnavailableError, TraceStateError
from .lifting import Skip, find_block
from .names import KeptNames

M = TypeVar("M")


class EditBlock(Generic[M]):
    """What `model.edit()` without a function gives: a decorator, and a context for a block. Used once as a context.

    Args:
        take: makes the edited model of a function.
    """

    def __init__(self, take: Callable[[EditFunction], M]) -> None:
        self._take = take
        self._edited: M | None = None
        self._skip: Skip | None = None

    def __call__(self, function: EditFunction) -> M:
        return self._take(function)

    def __enter__(self) -> EditBlock[M]:
        if self._edited is not None:
            raise TraceStateError("This edit has been used already. Call model.edit() again for another one.")
        frame = sys._getframe(1)
        block = find_block(frame)
        if block is None:
            raise SourceUnavailableError(
                f"{frame.f_code.co_filename}, line {frame.f_lineno}: the source of this block cannot be found, so it "
                "cannot be kept for later traces. Write the edit as a function: edited = model.edit(function)."
            )
        names = KeptNames(block, frame, self)
        function = FunctionType(block.code, frame.f_globals)
        self._edited = self._take(lambda model: function(names.begun()))
        self._skip = Skip(frame, block.target)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        skip, self._skip = self._skip, None
        return skip is not None and skip.swallow(error)

    def __iter__(self) -> Iterator[Any]:
        """`(tracer, edited)`: this object, and the edited model."""
        if self._edited is None:
            raise TraceStateError("There is no edited model yet: write `with model.edit() as (tracer, edited):`.")
        return iter((self, self._edited))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"This is the edit, not the edited model, and has no {name!r}: write "
            "`with model.edit() as (tracer, edited):`."
        )
