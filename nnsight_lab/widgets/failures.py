"""Errors as the page shows them: the message, the class, and the traceback from the user's or the model's side."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType

from .wire import Failure

_PACKAGE = str(Path(__file__).parents[1])
_LONGEST = 20_000


def failure_of(error: BaseException) -> Failure:
    """An error as data. Frames of this package at the top of the traceback, which led to it, are left out."""
    lines = traceback.format_exception(type(error), error, _beyond_the_package(error.__traceback__))
    text = "".join(lines)
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]}\n...\n{text[-_LONGEST // 2 :]}"
    return Failure(message(error), type(error).__name__, text)


def message(error: BaseException) -> str:
    """What an error says; of one that says nothing, its kind."""
    return str(error) or f"{type(error).__name__} was raised without a message."


def _beyond_the_package(trace: TracebackType | None) -> TracebackType | None:
    first = trace
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        trace = trace.tb_next
    return trace if trace is not None else first
