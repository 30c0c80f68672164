"""From a step's scope to the entries of the value at its site.

Which axis is the position and which the head is read off the shape: the position axis has the length of the prompt,
the head axis the model's number of heads and stands beside it, or heads are cut out of the last axis. Where several
axes have the prompt's length (12 heads and 12 tokens), the shape that the value has for a prompt one token longer
decides: the position is the axis that grew, the first of them where attention weights have two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from .errors import ScopeError
from .plan import AxisIndex, Selection
from .steps import Edit
from .tokens import resolve_indices

# The shape of a value for a prompt that is one token longer, or None where that cannot be had.
LongerShape = Callable[[], tuple[int, ...] | None]


def position_axis(shape: Sequence[int], length: int, longer: LongerShape, where: str) -> int:
    """The axis of `shape` that is the token position.

    Raises:
        ScopeError: none is, or several may be.
    """
    candidates = [axis for axis, size in enumerate(shape) if size == length]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        grown = longer()
        if grown is not None and len(grown) == len(shape):
            growing = [axis for axis in candidates if grown[axis] == length + 1]
            if growing:
                return growing[0]
            candidates = []
    if candidates:
        raise ScopeError(
            f"{where}: the value has shape {list(shape)}, in which axes {candidates} all have the prompt's length "
            f"{length}; which one is the position cannot be told. Use a prompt of another length."
        )
    raise ScopeError(
        f"{where}: the value has shape {list(shape)}, in which no axis is the position of a prompt of {length} "
        "tokens. Leave positions out to edit the whole value."
    )


@dataclass(frozen=True)
class HeadShape:
    """A model's attention heads: how many there are, of queries and of keys and values, and how wide one is."""

    counts: tuple[int, ...]
    width: int

    @classmethod
    def of(cls, config: Any) -> HeadShape | None:
        """Read off a transformers configuration; None where it says nothing of heads."""
        config = config.get_text_config() if hasattr(config, "get_text_config") else config
        heads = getattr(config, "num_attention_heads", None)
        width = getattr(config, "head_dim", None) or getattr(config, "hidden_size", 0) // (heads or 1)
        if not isinstance(heads, int) or not isinstance(width, int) or width < 1:
            return None
        shared = getattr(config, "num_key_value_heads", None)
        return cls(tuple(dict.fromkeys((heads, shared if isinstance(shared, int) else heads))), width)


def head_axis(shape: Sequence[int], position: int | None, heads: HeadShape | None, where: str) -> tuple[int, int]:
    """The axis of the heads and, when they have to be cut out of the last axis, into how many (else 0).

    Raises:
        ScopeError: the model has no number of heads, or the value no axis for them.
    """
    if heads is None:
        raise ScopeError(f"{where}: the model's configuration does not say how many attention heads it has.")
    if len(shape) == 4:
        beside = [1, 2] if position is None else [axis for axis in (1, 2) if axis != position]
        fitting = [axis for axis in beside if shape[axis] in heads.counts]
        if fitting:
            return fitting[0], 0
    elif len(shape) in (2, 3):
        for count in heads.counts:
            if shape[-1] == count * heads.width:
                return len(shape) - 1, count
    counts = " or ".join(map(str, heads.counts))
    raise ScopeError(
        f"{where}: a value of shape {list(shape)} has no axis of {counts} heads: it is neither [batch, heads, "
        f"position, head_dim] nor [batch, position, heads, head_dim], nor is its last axis {counts} times "
        f"{heads.width} wide."
    )


def select(
    edit: Edit,
    shape: Sequence[int],
    positions: tuple[int, ...] | None,
    position: int | None,
    heads: HeadShape | None,
    where: str,
) -> Selection:
    """The entries that `edit` means in a value of `shape`.

    Args:
        positions: the resolved positions; None means all.
        position: the position axis, where it is known.
        heads: the model's attention heads.
        where: the step, for messages: "steps[0]".
    """
    axes: list[AxisIndex] = [None] * len(shape)
    sizes, split = list(shape), 0
    if positions is not None:
        assert position is not None  # worked out by the caller, who has the prompt
        axes[position] = positions
    if edit.heads is not None:
        axis, split = head_axis(shape, position, heads, f"{where}.heads")
        if split:
            sizes[-1:] = [split, shape[-1] // split]
            axes.append(None)
        axes[axis] = resolve_indices(edit.heads, sizes[axis], f"{where}.heads", "heads")
    if edit.index is not None:
        if not sizes:
            raise ScopeError(f"{where}.index: the value is a single number, it has no axis to index.")
        if axes[-1] is not None:
            raise ScopeError(f"{where}.index: the last axis of {list(shape)} is already limited by positions or heads.")
        axes[-1] = resolve_indices(edit.index, sizes[-1], f"{where}.index", "entries of the last axis")
    return Selection(tuple(axes), split)


def index_of(selection: Selection, sizes: Sequence[int]) -> tuple[Any, ...]:
    """The torch index of a selection: lists that broadcast against each other, slices where an axis is whole.

    Args:
        sizes: shape of the value after the split.

    Axes between two limited ones are listed in full, because torch moves lists that slices separate to the front.
    """
    limited = [axis for axis, numbers in enumerate(selection.axes) if numbers is not None]
    if not limited:
        return (...,)
    first, last = limited[0], limited[-1]
    index: list[Any] = [slice(None)] * first
    for axis in range(first, last + 1):
        numbers = selection.axes[axis]
        listed: Any = list(range(sizes[axis]) if numbers is None else numbers)
        for _ in range(last - axis):
            listed = _wrap(listed)
        index.append(listed)
    return tuple(index)


def _wrap(nested: list[Any]) -> list[Any]:
    """`[[0], [1]]` with one more axis of size 1 at the end."""
    return [_wrap(item) if isinstance(item, list) else [item] for item in nested]


def view_of(value: Tensor, selection: Selection) -> Tensor:
    """`value` with the last axis cut into heads where the selection says so; the same memory."""
    return value.unflatten(-1, (selection.split, -1)) if selection.split else value
