"""`trace(validate=True)`: an assignment must have the structure, shapes, dtypes and devices of what it replaces."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from torch import Tensor

from .errors import ValidationError
from .points import ENTER

_OWN = os.path.dirname(__file__)


def checked(address: str, phase: str, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`change`, which makes a site's new value of its present one, with a check of the new one.

    What is returned raises ValidationError, with the line that assigned.
    """
    line = _line(sys._getframe(1))

    def checked_change(old: Any) -> Any:
        new = change(old)
        for path, wrong in _differences(old, new, ""):
            raise ValidationError(f"{_spelled(address, phase, path)} {wrong} (assigned at {line}).")
        return new

    return checked_change


def _spelled(address: str, phase: str, path: str) -> str:
    if phase != ENTER:
        return f"{address}.output{path}"
    return f"{address}.input{path.removeprefix('[0][0]')}" if path.startswith("[0][0]") else f"{address}.inputs{path}"


def _line(frame: FrameType | None) -> str:
    """The innermost line outside the engine."""
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return "an unknown line" if frame is None else f"{frame.f_code.co_filename}, line {frame.f_lineno}"


def _described(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"shape {list(value.shape)}, {str(value.dtype).removeprefix('torch.')} on {value.device}"
    if isinstance(value, (tuple, list, Mapping)):
        return f"a {type(value).__name__} of {len(value)}"
    return repr(value) if isinstance(value, (int, float, bool, complex, str, type(None))) else type(value).__name__


def _differences(old: Any, new: Any, path: str) -> Iterator[tuple[str, str]]:
    """Where `new` cannot stand for `old`: pairs of a path inside the value and what is wrong there."""
    if old is new:
        return
    expected = f"must be {_described(old)} like the site's own value, but was given"
    if isinstance(old, Tensor):
        if not isinstance(new, Tensor):
            number = isinstance(new, (int, float, bool, complex))
            cure = ": a number is not spread over the tensor; assign in place, [:] = ..." if number else ""
            yield path, f"{expected} {_described(new)}{cure}"
        elif (old.shape, old.dtype, old.device) != (new.shape, new.dtype, new.device):
            yield path, f"{expected} {_described(new)}"
        return
    if all(type(value) in (int, float) for value in (old, new)):
        return
    parts = _parts(old)
    if type(new) is not type(old) or (parts is not None and parts.keys() != (_parts(new) or {}).keys()):
        yield path, f"{expected} {_described(new)}"
    elif parts is not None:
        given = _parts(new) or {}
        for name, part in parts.items():
            yield from _differences(part, given[name], path + name)


def _parts(value: Any) -> dict[str, Any] | None:
    """What a container holds, by how it is addressed; None for anything else."""
    if isinstance(value, (tuple, list)):
        return {f"[{number}]": part for number, part in enumerate(value)}
    if isinstance(value, Mapping):
        return {f"[{name!r}]": part for name, part in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f".{field.name}": getattr(value, field.name) for field in dataclasses.fields(value)}
    return None
