"""Compare two forwards of a model bit for bit, whatever its output is made of.

`flatten` walks an output down to its leaves (tensors and plain values) and names each by its path; `bit_identical`
compares leaf by leaf. Two NaNs at one place are equal; -0.0 and 0.0 are not; dtype and shape count.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

_PLAIN = (str, bytes, bool, int, float, complex, type(None), torch.dtype, torch.device, torch.Size)


def flatten(output: Any) -> list[tuple[str, Any]]:
    """Every leaf of `output` with its path, such as `past_key_values.layers[0].keys`, in a fixed order.

    Mappings (ModelOutput too), sequences, dataclasses and objects with attributes (caches) are walked; an object met
    again is not walked twice. A leaf is a tensor, a plain value, or an object with nothing inside.
    """
    return list(_leaves("", output, set()))


def _leaves(path: str, value: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (Tensor, *_PLAIN)):
        yield path, value
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    children = _children(value)
    if not children:
        yield path, value
    for step, child in children:
        yield from _leaves(f"{path}{step}".removeprefix("."), child, seen)


def _children(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [(f".{key}" if isinstance(key, str) else f"[{key!r}]", child) for key, child in value.items()]
    if isinstance(value, (list, tuple)):
        return [(f"[{i}]", child) for i, child in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f".{field.name}", getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, type) or callable(value):
        return []
    return [(f".{name}", child) for name, child in getattr(value, "__dict__", {}).items()]


def bit_identical(first: Any, second: Any) -> list[str]:
    """The paths at which two outputs differ; empty when they are the same bit for bit.

    A path that only one of them has is among them.
    """
    left, right = dict(flatten(first)), dict(flatten(second))
    return [
        path
        for path in dict.fromkeys([*left, *right])
        if path not in left or path not in right or not _same(left[path], right[path])
    ]


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return _same_tensor(first, second)
    if type(first) is not type(second):
        return False
    if isinstance(first, float):
        return first == second or (first != first and second != second)
    # Objects with nothing inside that can be compared are told apart by their type alone.
    return first == second if isinstance(first, _PLAIN) else True


def _same_tensor(first: Tensor, second: Tensor) -> bool:
    if first.dtype != second.dtype or first.shape != second.shape or first.layout != second.layout:
        return False
    if first.is_meta or second.is_meta:
        return first.is_meta == second.is_meta
    first, second = first.detach().cpu(), second.detach().cpu()
    if first.is_complex():
        first, second = torch.view_as_real(first), torch.view_as_real(second)
    if not first.is_floating_point():
        return torch.equal(first, second)
    nans = torch.isnan(first)
    if not torch.equal(nans, torch.isnan(second)):
        return False
    first, second = first.masked_fill(nans, 0.0), second.masked_fill(nans, 0.0)
    return torch.equal(first, second) and torch.equal(torch.signbit(first), torch.signbit(second))
