"""`.save()`: what marks a value for the way home from a remote run, and returns it unchanged here.

Values read at a site are the model's own objects, so `.save()` has to exist on them: on tensors as a method of
`torch.Tensor`, set when the engine is imported; on plain Python values (tuple, list, dict, number, str, None and their
subclasses) as an attribute of the builtin type, set the first time that a site returns such a value; on a value of any
other type (a dataclass, an array) as an attribute of that type. A type that has a `save` of its own keeps it.
"""

from __future__ import annotations

import ctypes
import gc
from typing import Any, TypeVar

import torch

T = TypeVar("T")

_BUILTINS = (tuple, list, dict, set, frozenset, int, float, complex, str, bytes, type(None))


def save(value: T) -> T:
    """Mark `value` as wanted after the trace and return it unchanged. Works on any object.

    In a local trace values survive anyway; in a remote one only saved values are sent back.
    """
    return value


def _save_method(self: T) -> T:
    """Mark this value as wanted after the trace and return it unchanged."""
    return save(self)


def _mount(kind: type) -> None:
    """Give `kind` a `.save()`. Types written in C take no attributes from Python, so their dictionary is reached by
    way of the garbage collector."""
    if kind is object or issubclass(kind, type) or hasattr(kind, "save"):
        return
    try:
        kind.save = _save_method  # type: ignore[attr-defined]
    except TypeError:
        namespace = gc.get_referents(kind.__dict__)[0]
        namespace["save"] = _save_method
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def with_save(value: Any) -> Any:
    """`value` itself, after making sure that `value.save()` works."""
    if not isinstance(value, torch.Tensor) and not hasattr(type(value), "save"):
        for kind in _BUILTINS:
            _mount(kind)
        _mount(type(value))
    return value


if not hasattr(torch.Tensor, "save"):
    torch.Tensor.save = _save_method  # type: ignore[attr-defined]
