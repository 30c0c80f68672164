"""Whether an edit can have reached the output, and the words for it where it did not show.

A difference of zero does not tell: the edit may have been too small, or the value may not be read at all. So the
question is put to the model: the forward is run twice more with the edited entries replaced by large random numbers,
everything else as in the edited run. If both runs give exactly the numbers of the edited one, nothing that is read
depends on these entries (a causal mask, an overwritten value, another branch): "no downstream effect". If one of them
differs, the edit reaches the output. Where a recipe has a single edit and the output has changed, that is proof
enough and no further run is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

import torch
from torch import Tensor

# The output with the entries of a step's edit replaced at random, given the step and a seed.
ScrambledOutput = Callable[[int, int], Tensor]
_SEEDS = (1, 2)


def same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are equal bit for bit, but for the sign of zero and the kind of NaN."""
    if one.shape != other.shape:
        return False
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def reaching(edits: Collection[int], clean: Tensor, edited: Tensor, scrambled: ScrambledOutput) -> dict[int, bool]:
    """For each edit (a step's number), whether the output that is read depends on the entries it edits."""
    if len(edits) == 1 and not same(clean, edited):
        return dict.fromkeys(edits, True)
    return {step: any(not same(scrambled(step, seed), edited) for seed in _SEEDS) for step in edits}


def rounding_level(clean: Tensor) -> float:
    """The difference up to which two outputs are equal to rounding: four times the relative spacing of their dtype at
    the largest finite absolute value (about 1e-5 for logits of 20 in float32, 0.6 in bfloat16)."""
    if not clean.is_floating_point():
        return 0.0
    largest = float(torch.stack(clean.aminmax()).abs().max()) if clean.numel() else 1.0
    if not math.isfinite(largest):
        finite = clean[clean.isfinite()]
        largest = float(finite.abs().max()) if finite.numel() else 1.0
    return 4 * torch.finfo(clean.dtype).eps * largest
