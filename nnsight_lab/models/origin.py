"""How a wrapped model was made, as a line of Python, so that exported code can make it again.

Only what can be written down is remembered: a name or path with plain options. A module wrapped by hand has no such
line. Weights that were changed after loading are not part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

_KEY = "_made_by"


def remember_origin(model: Any, line: str) -> None:
    """Note that `line` makes a model like the wrapper `model`. It may use `nnsight_lab` and `torch`."""
    model.__dict__[_KEY] = line


def origin_of(model: Any) -> str:
    """The line that makes a model like this wrapper, or an empty string where it is not known."""
    line = model.__dict__.get(_KEY, "")
    return line if isinstance(line, str) else ""


def loading_line(name: str, options: Mapping[str, Any]) -> str:
    """The call of `LanguageModel` with the options that are not None; empty where one cannot be written down.

    An access token is left out: the line is meant to be shown and passed on.
    """
    parts = [repr(name)]
    for key, value in options.items():
        if value is None or key == "token":
            continue
        written = _written(value)
        if written is None or not key.isidentifier():
            return ""
        parts.append(f"{key}={written}")
    return f"nnsight_lab.LanguageModel({', '.join(parts)})"


def _written(value: Any) -> str | None:
    """A value as Python, or None where that is not possible."""
    if isinstance(value, torch.dtype):
        return str(value)
    if isinstance(value, torch.device):
        return f"torch.device({str(value)!r})"
    if isinstance(value, dict):
        entries = [(_written(key), _written(item)) for key, item in value.items()]
        if any(key is None or item is None for key, item in entries):
            return None
        return "{" + ", ".join(f"{key}: {item}" for key, item in entries) + "}"
    return repr(value) if type(value) in (str, int, float, bool) else None
