"""Several prepared prompts as one batch, for the blocks of `tracer.invoke`.

Prompts of different lengths are padded on the left, with a mask and position ids that start at each row's first real
token, so that a row computes what it would compute alone. An encoder's are padded on the right.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..engine.batch import concatenate
from .decoders import is_encoder_decoder
from .prompts import PromptError, accepted, accepts

# Keywords with a position dimension, which comes second, and what fills them.
_PADDED = {"attention_mask": 0, "position_ids": 0, "labels": -100, "inputs_embeds": 0, "token_type_ids": 0}


def join(
    module: nn.Module, tokenizer: Any, inputs: list[dict[str, Any]], *, positions: bool = True
) -> tuple[dict[str, Any], list[int]]:
    """The forward's keywords for all of `inputs` together, and how many rows each of them has.

    Args:
        positions: give padded rows their position ids; `generate` makes its own.

    Raises:
        PromptError: prompts of different lengths for a model that takes no attention mask.
        InvokeError: keywords that do not go together.
    """
    if len(inputs) == 1:
        return concatenate(inputs)
    lengths = [_length(prepared) for prepared in inputs]
    known = [length for length in lengths if length is not None]
    longest = max(known, default=0)
    parameters = accepted(module)
    takes_mask = accepts(parameters, "attention_mask")
    ragged = len(set(known)) > 1
    if ragged and not takes_mask:
        raise PromptError(
            "The prompts have different lengths, and this model's forward takes no attention_mask that could hide the "
            "padding of the shorter ones. Give prompts of one length, or a trace to each."
        )
    masked = any("attention_mask" in prepared for prepared in inputs)
    left = not is_encoder_decoder(module)
    made = []
    for prepared, length in zip(inputs, lengths, strict=True):
        row = dict(prepared)
        if takes_mask and length is not None and (masked or ragged) and "attention_mask" not in row:
            row["attention_mask"] = _ones(row, length)
        made.append(_pad(row, length, longest, tokenizer, left=left) if length is not None else row)
    masks = [row.get("attention_mask") for row in made]
    padded = any(isinstance(mask, Tensor) and mask.dim() == 2 and not bool(mask.all()) for mask in masks)
    some = any("position_ids" in row for row in made)
    if positions and (padded or some) and parameters and "position_ids" in parameters:
        for row, mask in zip(made, masks, strict=True):
            if "position_ids" not in row and isinstance(mask, Tensor):
                row["position_ids"] = (mask.long().cumsum(-1) - 1).clamp(min=0)
    return concatenate(made)


def _length(prepared: dict[str, Any]) -> int | None:
    for name in ("input_ids", "inputs_embeds"):
        value = prepared.get(name)
        if isinstance(value, Tensor) and value.dim() >= 2:
            return value.shape[1]
    return None


def _ones(prepared: dict[str, Any], length: int) -> Tensor:
    tensor = prepared.get("input_ids", prepared.get("inputs_embeds"))
    assert isinstance(tensor, Tensor)
    return torch.ones(tensor.shape[0], length, dtype=torch.long, device=tensor.device)


def _pad(prepared: dict[str, Any], length: int, longest: int, tokenizer: Any, *, left: bool) -> dict[str, Any]:
    missing = longest - length
    padding = (missing, 0) if left else (0, missing)
    if not missing:
        return prepared
    pad = getattr(tokenizer, "pad_token_id", None)
    fills = {**_PADDED, "input_ids": 0 if pad is None else pad}
    made = {}
    for name, value in prepared.items():
        if name in fills and isinstance(value, Tensor) and value.dim() >= 2 and value.shape[1] == length:
            value = functional.pad(value, (0, 0) * (value.dim() - 2) + padding, value=fills[name])
        made[name] = value
    return made
