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

from .rewrite import Rewritten

_GATES = str(Path(__file__).with_name("gates.py"))  # whose frames stand between an operation and its callee
_MODULE_CALL = nn.Module._wrapped_call_impl.__code__


def call_in_flight(top: FrameType | None, found: Rewritten, label: str) -> tuple[bool, nn.Module | None]:
    """Whether an activation of `found` is at the operation `label`, and the module it calls there, if it calls one.

    Args:
        top: the paused model's innermost frame.
        found: the rewritten function in question; its comprehensions, lambdas and nested functions count as well.
        label: the operation's label.
    """
    span = found.spans[found.positions[label]]
    codes = found.codes
    inner: FrameType | None = None
    frame = top
    while frame is not None:
        if frame.f_code in codes and _position(frame.f_code, frame.f_lasti) == span:
            calls = inner is not None and inner.f_code is _MODULE_CALL
            return True, inner.f_locals["self"] if inner is not None and calls else None
        if frame.f_code.co_filename != _GATES:
            inner = frame
        frame = frame.f_back
    return False, None


def _position(code: CodeType, instruction: int) -> tuple[int | None, ...]:
    for number, position in enumerate(code.co_positions()):
        if number == instruction // 2:
            return position
    return ()
