"""`.save()`: what marks a value for the way home from a remote run, and returns it unchanged here.

Values read at a site are the model's own objects, so `.save()` has to exist on them: on tensors as a method of
`torch.Tensor`, set when the engine is imported; on plain Python values (tuple, list, dict, number, str, None and their
subclasses) as an attribute of the builtin type, set the first time that a site returns such a value.
"""

from __future__ import annotations

import ctypes
import gc
from typing import Any, TypeVar

import torch

T = TypeVar("T")

_BUILTINS = (tuple, list, dict, set, frozenset, int, float, complex, str, bytes, type(None))
_mounted = False


def save(value: T) -> T:
    """Mark `value` as wanted after the trace and return it unchanged. Works on any object.

    In a local trace values survive anyway; in a remote one only saved values are sent back.
    """
    return value


def _save_method(self: T) -> T:
    """Mark this value as wanted after the trace and return it unchanged."""
    return save(self)


def mount_on_builtins() -> None:
    """Give the builtin types a `.save()`. They take no attributes from Python, so their dictionaries are reached by
    way of the garbage collector; only a type that has no `save` of its own is changed."""
    global _mounted
    if _mounted:
        return
    for kind in _BUILTINS:
        if not hasattr(kind, "save"):
            namespace = gc.get_referents(kind.__dict__)[0]
            namespace["save"] = _save_method
            ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
    _mounted = True


def with_save(value: Any) -> Any:
    """`value` itself, after making sure that `value.save()` works."""
    if not _mounted and not isinstance(value, torch.Tensor) and not hasattr(value, "save"):
        mount_on_builtins()
    return value


if not hasattr(torch.Tensor, "save"):
    torch.Tensor.save = _save_method  # type: ignore[attr-defined]
