"""Whether a way of computing many cells at once is right for the model at hand: some of them, run alone, tell.

What is found sound is remembered by model, kind of site (numbers of layers aside), prompt length and way, because
whether a model's layers can be entered in the middle depends on these and not on the prompt.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..engine import NNsight
from .prefix import Prefix
from .rolling import Row, run_rows

_sound: weakref.WeakKeyDictionary[nn.Module, set[tuple[Any, ...]]] = weakref.WeakKeyDictionary()

# A logit is the end of long sums of rounded products: rounding errors of up to some hundred units in the last place of
# the largest one are normal, whatever the way.
_ROUNDINGS = 256


class UnsoundError(RuntimeError):
    """A way gave other numbers than a full run."""


def known_sound(model: NNsight, prefix: Prefix, way: str, row: Row) -> bool:
    """Whether `way` was found sound for cells like `row`."""
    return _kind(prefix, way, row) in _sound.get(model._model, ())


def check(model: NNsight, prefix: Prefix, way: str, reuse: bool, rows: Sequence[Row], logits: Tensor) -> bool:
    """Compare some of the rows with full runs of each alone.

    Args:
        reuse: whether the way enters the layers in the middle.
        logits: `[row, vocabulary]` as the way gave them.

    Returns:
        Whether an edit among them had an effect, so that the comparison says something.

    Raises:
        UnsoundError: the numbers differ by more than rounding.
    """
    effects = (logits.double() - prefix.logits.double()).abs().amax(-1).nan_to_num(nan=-1.0, posinf=-1.0)
    effective = False
    for number in _samples(rows, effects.tolist(), len(prefix.layers) if reuse else 0):
        alone = run_rows(model, prefix, [rows[number]], 0, reuse=False)[0].double()
        off = float((alone - logits[number].double()).abs().nan_to_num(nan=0.0).max())
        bound = _ROUNDINGS * torch.finfo(logits.dtype).eps * float(alone.abs().nan_to_num(nan=0.0, posinf=0.0).max())
        if off > bound or bool((alone.isnan() != logits[number].isnan()).any()):
            raise UnsoundError(f"a cell is off by {off:.3g} from a full run (at most {bound:.3g} is rounding)")
        effective |= float(effects[number]) > 4 * bound
    if effective:
        _sound.setdefault(model._model, set()).add(_kind(prefix, way, rows[0]))
    return effective


def _kind(prefix: Prefix, way: str, row: Row) -> tuple[Any, ...]:
    names = tuple("*" if name.isdigit() else name for name in row.path.module.split("."))
    return (way, names, row.path.operations, row.place.io, row.element, prefix.length)


def _samples(rows: Sequence[Row], effects: Sequence[float], depth: int) -> list[int]:
    """The rows of largest effect: one that begins early, one in the middle, one late, where prefixes are reused.

    What layers hand on beside the residual stream, a row lacks from the layers before its own; so where it begins
    decides whether that shows. A row that begins after the last layer lacks nothing.

    Args:
        depth: number of layers; 0 where no prefix is reused.
    """
    best: dict[int, int] = {}
    for number, row in enumerate(rows):
        part = min(row.join * 3 // depth, 3) if depth else 0
        if part not in best or effects[number] > effects[best[part]]:
            best[part] = number
    return sorted(number for part, number in best.items() if part < 3 or len(best) == 1)
