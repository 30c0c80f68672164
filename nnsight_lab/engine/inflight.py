"""Which operation of an observed function is being carried out while the model is paused.

A body may read something inside a callee first and the operation that called it afterwards: the operation has begun
without anyone watching, but its value is still to come. The paused model's frames tell which call each function is at
(its instruction pointer maps to a position in the source, and positions to operations) and, when it is a module that
is being called, which one, so that the value can be taken on the module's way out.
"""

from __future__ import annotations

from pathlib import Path
from types import CodeType, FrameType

from torch import nn

from .listing import Operation
from .rewrite import Rewritten

_GATES = str(Path(__file__).with_name("gates.py"))  # whose frames stand between an operation and its callee
_MODULE_CALL = nn.Module._wrapped_call_impl.__code__


def current_call(top: FrameType | None, found: Rewritten) -> tuple[Operation, nn.Module | None] | None:
    """The operation that the innermost activation of `found` is at, and the module it calls, if it calls one.

    Args:
        top: the paused model's innermost frame.
        found: the rewritten function in question.
    """
    inner: FrameType | None = None
    frame = top
    while frame is not None and frame.f_code is not found.code:
        if frame.f_code.co_filename != _GATES:
            inner = frame
        frame = frame.f_back
    if frame is None:
        return None
    position = _position(found.code, frame.f_lasti)
    for operation in found.listing.operations:
        if found.spans[operation.index] == position:
            calls = inner is not None and inner.f_code is _MODULE_CALL
            return operation, inner.f_locals["self"] if inner is not None and calls else None
    return None


def _position(code: CodeType, instruction: int) -> tuple[int | None, ...]:
    for number, position in enumerate(code.co_positions()):
        if number == instruction // 2:
            return position
    return ()
