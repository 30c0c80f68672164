"""Pictures of tensors: a 2-D slice of any rank, pooled to the pixels there are, as CSV, and as a small snapshot."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from .. import wire
from .axes import axes_of, complete_slice
from .pooling import as_cells, colour_range, count_for, odd_counts, pooled

# A page without kernel shows a picture of at most so many cells.
SNAPSHOT_ROWS, SNAPSHOT_COLUMNS = 48, 192


def picture(
    request: wire.AskTensor,
    tensor: Tensor,
    label: str,
    tokens: Sequence[str] = (),
    heads: Sequence[int] = (),
    vocabulary: int = 0,
) -> tuple[wire.Picture, np.ndarray]:
    """The picture that a request asks for, and its cells, float32 `[rows, columns]`.

    Args:
        tensor: of the target, on the CPU: clean, edited, or their difference.
        tokens, heads, vocabulary: what axes are recognised by, see `axes_of`.

    Raises:
        ValueError: an axis, index or window that the tensor does not have.
    """
    axes = axes_of(tensor, tokens, heads, vocabulary)
    chosen = complete_slice(request.slice, axes)
    cells = as_cells(sliced(tensor, chosen))
    height, width = cells.shape
    window = _checked(request.window, height, width)
    part = cells[window.row : window.row_end, window.column : window.column_end]
    rows, columns = count_for(part.shape[0], request.height), count_for(part.shape[1], request.width)
    odd = odd_counts(cells)
    values = pooled(part, rows, columns, request.pooling)
    return (
        wire.Picture(
            id=request.id,
            run=request.run,
            target=request.target,
            which=request.which,
            label=label,
            dtype=str(tensor.dtype).removeprefix("torch."),
            shape=tuple(tensor.shape),
            axes=axes,
            slice=chosen,
            window=window,
            rows=rows,
            columns=columns,
            pooling=request.pooling,
            colours=colour_range(cells, odd, request.trim),
            odd=odd,
        ),
        np.ascontiguousarray(values, dtype="<f4"),
    )


def sliced(tensor: Tensor, chosen: wire.Slice) -> Tensor:
    """The 2-D slice of a tensor; a vector is one row, a number one cell."""
    tensor = tensor.detach()
    if chosen.row_axis is None or chosen.column_axis is None:
        return tensor.reshape(1, -1)
    index = iter(chosen.index)
    drawn = (chosen.row_axis, chosen.column_axis)
    part = tensor[tuple(slice(None) if axis in drawn else next(index) for axis in range(tensor.dim()))]
    return part if drawn[0] < drawn[1] else part.T


def _checked(window: wire.Window | None, height: int, width: int) -> wire.Window:
    if window is None:
        return wire.Window(0, height, 0, width)
    inside = 0 <= window.row <= window.row_end <= height and 0 <= window.column <= window.column_end <= width
    if not inside:
        raise ValueError(f"The slice has {height} rows and {width} columns; the window lies outside.")
    return window


def table_csv(
    request: wire.AskTable, tensor: Tensor, label: str, tokens: Sequence[str] = (), heads: Sequence[int] = ()
) -> wire.Table:
    """The whole slice as CSV: a header of column names, then a row each with its name.

    Numbers are written such that reading them gives the tensor's own. Raises ValueError as `picture` does.
    """
    axes = axes_of(tensor, tokens, heads)
    chosen = complete_slice(request.slice, axes)
    part = sliced(tensor, chosen)
    if part.dtype in (torch.bfloat16, torch.float16):
        part = part.float()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    row_axis = axes[chosen.row_axis] if chosen.row_axis is not None else None
    column_axis = axes[chosen.column_axis] if chosen.column_axis is not None else None
    corner = " \\ ".join(axis.name for axis in (row_axis, column_axis) if axis is not None)
    writer.writerow([corner, *_names(column_axis, part.shape[1])])
    for name, row in zip(_names(row_axis, part.shape[0]), part.numpy(), strict=True):
        writer.writerow([name, *(str(value) for value in row)])
    name = "-".join((*label.replace(".", " ").split(), request.which))
    return wire.Table(request.id, f"{name}.csv", text.getvalue())


def _names(axis: wire.AxisView | None, count: int) -> list[str]:
    if axis is None or not axis.labels:
        return [str(number) for number in range(count)]
    return [f"{number} {text}" for number, text in enumerate(axis.labels)]


def snapshot(
    target: wire.Target, label: str, tensor: Tensor, tokens: Sequence[str] = (), heads: Sequence[int] = ()
) -> wire.Snapshot:
    """A picture of a value that is small enough to be saved with a notebook."""
    axes = axes_of(tensor, tokens, heads)
    cells = as_cells(sliced(tensor, complete_slice(wire.Slice(), axes)))
    rows, columns = (
        count_for(size, most) for size, most in zip(cells.shape, (SNAPSHOT_ROWS, SNAPSHOT_COLUMNS), strict=True)
    )
    colours = colour_range(cells, odd_counts(cells), 0.995)
    data = np.ascontiguousarray(pooled(cells, rows, columns, "extreme"), dtype="<f4").tobytes()
    shape = tuple(tensor.shape)
    return wire.Snapshot(
        target, label, shape, rows, columns, colours.low, colours.high, base64.b64encode(data).decode()
    )
