"""Names of a tensor's axes, read off its shape, and which two of them are drawn."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from .. import wire


def axes_of(
    value: Tensor, tokens: Sequence[str], heads: Sequence[int] = (), vocabulary: int = 0
) -> tuple[wire.AxisView, ...]:
    """Every axis of a value with its name.

    Two axes as long as the prompt are those of attention weights where the rows add up to 1; otherwise the last is as
    long by chance.

    Args:
        tokens: texts of the prompt's tokens, which label an axis of that length.
        heads: numbers of heads that the model has (queries, keys and values).
        vocabulary: number of tokens that logits are over; 0 for none.
    """
    length, shape = len(tokens), tuple(value.shape)
    names = [f"axis {number}" for number in range(len(shape))]
    if len(shape) > 1:
        names[0] = "batch"
    # The last axis is as long as the prompt by chance only, but in attention weights.
    inner = range(1 if len(shape) > 1 else 0, len(shape))
    long = [axis for axis in inner if length and shape[axis] == length]
    last = len(shape) - 1
    if len(shape) == 4 and long[-2:] == [last - 1, last] and _adds_up(value):
        names[last - 1], names[last] = "query position", "key position"
        long = long[-2:]
    elif long:
        at = long[0] if not (len(long) > 1 and len(shape) == 4 and shape[1] in heads) else long[1]
        names[at] = "position"
        long = [at]
    for axis in inner:
        if names[axis].startswith("axis") and axis != last and shape[axis] in heads:
            names[axis] = "head"
            break
    # More than batch, position and features, and none of them known: of what kind the last is, is not known either.
    known = len(shape) <= 3 or any(name in ("position", "head") for name in names)
    if len(shape) > 1 and names[last].startswith("axis") and known:
        names[last] = "vocabulary" if vocabulary and shape[last] == vocabulary else "neuron"
    labelled = set(long)
    return tuple(
        wire.AxisView(name, size, tuple(tokens) if axis in labelled else ())
        for axis, (name, size) in enumerate(zip(names, shape, strict=True))
    )


def _adds_up(value: Tensor) -> bool:
    """Whether the rows are weights that add up to 1, as far as their precision goes."""
    if not value.is_floating_point() or not value.numel():
        return False
    rows = value[0, 0].float()
    return bool((rows >= 0).all()) and bool(((rows.sum(-1) - 1).abs() < 0.01).all())


def complete_slice(asked: wire.Slice, axes: Sequence[wire.AxisView]) -> wire.Slice:
    """The slice with both axes chosen and an index for each of the others.

    By default columns are the last axis and rows the positions, else the longest of the others.

    Raises:
        ValueError: an axis or index that the tensor does not have.
    """
    count = len(axes)
    for axis in (asked.row_axis, asked.column_axis):
        if axis is not None and not 0 <= axis < count:
            raise ValueError(f"There is no axis {axis}: the value has {count}.")
    if count < 2:
        return wire.Slice(None, 0 if count else None, ())
    column = asked.column_axis
    row = asked.row_axis
    if column is None:
        column = count - 1 if row != count - 1 else count - 2
    if row is None:
        others = [axis for axis in range(count) if axis != column]
        named = [axis for axis in others if "position" in axes[axis].name]
        row = named[-1] if named else max(others, key=lambda axis: (axes[axis].size, axis))
    if row == column:
        raise ValueError("Rows and columns are two different axes.")
    rest = [axis for axis in range(count) if axis not in (row, column)]
    index = [*asked.index[: len(rest)], *(0 for _ in rest[len(asked.index) :])]
    for axis, number in zip(rest, index, strict=True):
        if not 0 <= number < axes[axis].size:
            raise ValueError(f"The axis {axes[axis].name!r} has {axes[axis].size} entries; {number} is none of them.")
    return wire.Slice(row, column, tuple(index))
