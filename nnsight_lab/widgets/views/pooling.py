"""Reducing a 2-D slice to what a screen shows, and the range of its colours.

Entry i of n stands for cells floor(i * size / n) to floor((i + 1) * size / n). Where that cuts the slice into equal
pieces, torch reduces them in one go; else numpy does, piece by piece. A piece with a NaN in it is NaN.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ...plots.ranges import find_range
from .. import wire

# The quantile at which colours end is taken from a sample of this size; extremes and counts are exact.
_SAMPLE = 2**18


def pooled(cells: Tensor, rows: int, columns: int, pooling: wire.Pooling) -> np.ndarray:
    """Reduce float cells `[r, c]` to float32 `[rows, columns]`; both at most what there is."""
    if (rows, columns) == tuple(cells.shape):
        return cells.to(torch.float32).numpy()
    if pooling == "mean":
        return _reduced(cells, rows, columns, "mean").astype(np.float32)
    largest = smallest = np.empty(0)
    if pooling != "min":
        largest = _reduced(cells, rows, columns, "max")
    if pooling != "max":
        smallest = _reduced(cells, rows, columns, "min")
    if pooling == "max":
        return largest.astype(np.float32)
    if pooling == "min":
        return smallest.astype(np.float32)
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(smallest) > np.abs(largest), smallest, largest).astype(np.float32)


def _reduced(cells: Tensor, rows: int, columns: int, how: str) -> np.ndarray:
    height, width = cells.shape
    if height % rows == 0 and width % columns == 0:
        pieces = cells.reshape(rows, height // rows, columns, width // columns)
        if how == "mean":
            return pieces.mean(dim=(1, 3), dtype=torch.float64 if cells.dtype == torch.float64 else None).numpy()
        return (pieces.amax if how == "max" else pieces.amin)(dim=(1, 3)).numpy()
    array = cells.numpy()
    starts = [np.arange(n) * size // n for n, size in ((rows, height), (columns, width))]
    if how != "mean":
        reduce = np.maximum if how == "max" else np.minimum
        return reduce.reduceat(reduce.reduceat(array, starts[1], axis=1), starts[0], axis=0)
    sums = np.add.reduceat(np.add.reduceat(array, starts[1], axis=1, dtype=np.float64), starts[0], axis=0)
    sizes = [np.diff(np.append(start, size)) for start, size in zip(starts, (height, width), strict=True)]
    return sums / np.outer(*sizes)


def count_for(size: int, pixels: int) -> int:
    """How many entries to show `size` cells with on so many pixels; equal pieces where that costs no more than half."""
    pixels = max(1, pixels)
    if size <= pixels:
        return size
    equal = next((n for n in range(pixels, pixels // 2, -1) if size % n == 0), None)
    return equal if equal is not None else pixels


def as_cells(tensor: Tensor) -> Tensor:
    """Any tensor as float32 or float64; the magnitude of complex numbers."""
    if tensor.is_complex():
        tensor = tensor.abs()
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.to(torch.float32)


def odd_counts(cells: Tensor) -> wire.Counts:
    # A sum is finite only where every cell is, which is the usual case and fast to find out.
    if bool(torch.isfinite(cells.sum())):
        return wire.Counts()
    return wire.Counts(int(cells.isnan().sum()), int((cells == torch.inf).sum()), int((cells == -torch.inf).sum()))


def colour_range(cells: Tensor, odd: wire.Counts, trim: float | None, centre: float = 0.0) -> wire.ColourRange:
    """Ends of the scale, symmetric around `centre`. See `nnsight_lab.plots` for where outliers are trimmed."""
    if odd != wire.Counts():
        cells = cells[cells.isfinite()]
    if not cells.numel():
        return wire.ColourRange(centre - 1.0, centre + 1.0)
    smallest, largest = (float(value) for value in torch.aminmax(cells))
    flat = cells.reshape(-1)
    sample = flat[:: max(1, flat.numel() // _SAMPLE)].numpy() - centre
    extreme = max(abs(smallest - centre), abs(largest - centre))
    high = find_range(np.append(sample, extreme), trim).high
    low_end, high_end = centre - high, centre + high
    beyond_low = int((cells < low_end).sum()) if smallest < low_end else 0
    beyond_high = int((cells > high_end).sum()) if largest > high_end else 0
    return wire.ColourRange(low_end, high_end, beyond_low, beyond_high, smallest, largest)
