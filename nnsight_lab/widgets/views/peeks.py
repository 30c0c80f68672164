"""One value as a debugger shows it: structure, statistics, a small picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ...experiments.observation import Seen
from .. import wire
from .axes import axes_of, complete_slice
from .listings import tensor_facts, why_not_reached
from .pictures import sliced
from .pooling import as_cells, colour_range, count_for, odd_counts, pooled

ROWS, COLUMNS = 24, 64


def peek(
    request: wire.AskPeek,
    label: str,
    seen: Seen | None,
    calls: int = 0,
    reason: str = "",
    tokens: Sequence[str] = (),
    heads: Sequence[int] = (),
) -> tuple[wire.Peek, np.ndarray | None]:
    """A value, and the cells of its picture, float32 `[rows, columns]`, where it has one.

    Args:
        seen: the value; None where the forward did not compute it, for `reason`.
    """
    target = request.target
    if seen is None:
        return wire.Peek(request.id, target, label, "", calls=calls, reason=why_not_reached(reason)), None
    facts = tensor_facts(seen)
    element = target.element if target.element is not None else facts[0].element if facts else None
    tensor = seen.kept.get(element) if element is not None else None
    if tensor is None or not tensor.numel():
        return wire.Peek(request.id, target, label, seen.structure, facts, calls=calls), None
    cells = as_cells(tensor)
    odd = odd_counts(cells)
    shown = sliced(cells, complete_slice(wire.Slice(), axes_of(tensor, tokens, heads)))
    rows, columns = count_for(shown.shape[0], ROWS), count_for(shown.shape[1], COLUMNS)
    found = wire.Peek(
        id=request.id,
        target=target,
        label=label,
        structure=seen.structure,
        tensors=facts,
        statistics=statistics(cells, odd),
        odd=odd,
        calls=calls,
        rows=rows,
        columns=columns,
        colours=colour_range(shown, odd_counts(shown), 0.995),
    )
    return found, np.ascontiguousarray(pooled(shown, rows, columns, "extreme"), dtype="<f4")


def statistics(cells: Tensor, odd: wire.Counts) -> wire.Statistics:
    """Of the finite cells, computed in float64; the standard deviation is that of the cells themselves (over n)."""
    finite = cells if odd == wire.Counts() else cells[cells.isfinite()]
    if not finite.numel():
        return wire.Statistics(None, None, None, None, None)
    exact = finite.to(torch.float64)
    smallest, largest = torch.aminmax(exact)
    numbers = (smallest, largest, exact.mean(), exact.std(correction=0), exact.norm())
    return wire.Statistics(*(float(number) for number in numbers))
