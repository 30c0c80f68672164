"""Edits under gradient checkpointing.

`torch.utils.checkpoint` drops what a region computed and runs the region again in backward, when the trace and its
edits are gone: the gradients would be those of another forward. So an edit inside such a region is refused where a
backward could follow. Reads are safe: what the body computes from them is kept apart from the region's own tensors.
"""

from __future__ import annotations

import inspect
from types import CodeType, FrameType

import torch
from torch.utils.checkpoint import checkpoint

from .errors import RecomputedEditError

_CHECKPOINT: CodeType = inspect.unwrap(checkpoint).__code__


def refuse_edit_if_recomputed(address: str, frame: FrameType | None, grad: bool) -> None:
    """Raise RecomputedEditError when the model stands in a region that backward will run again.

    Args:
        address: the edited site, for the message.
        frame: the model's innermost frame.
        grad: whether gradients are recorded on the model's side.
    """
    while frame is not None:
        if frame.f_code is _CHECKPOINT:
            arguments = frame.f_locals.get("args", ())
            # The reentrant kind switches gradients off inside, and recomputes when an argument asks for one.
            if grad or any(isinstance(value, torch.Tensor) and value.requires_grad for value in arguments):
                raise RecomputedEditError(
                    f"{address} lies in a region under gradient checkpointing: backward would run it again "
                    "without this edit and give the gradients of another forward. Turn checkpointing off for this "
                    "trace (model.gradient_checkpointing_disable()), or run it under torch.no_grad()."
                )
            return
        frame = frame.f_back
