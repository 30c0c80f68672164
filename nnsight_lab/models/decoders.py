"""Encoder-decoder models: which models are, and what the decoder of one begins with.

A forward of such a model needs ids for both sides. A prompt is the encoder's; unless the decoder is given some of its
own, it gets its start token, so that a trace of a text runs one step of the decoder.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

_OF_THE_DECODER = ("decoder_input_ids", "decoder_inputs_embeds", "labels")


def is_encoder_decoder(module: nn.Module) -> bool:
    """Whether the model's forward takes a prompt for an encoder and ids for a decoder."""
    if not getattr(getattr(module, "config", None), "is_encoder_decoder", False):
        return False
    return "decoder_input_ids" in inspect.signature(module.forward).parameters


def decoder_start(module: nn.Module, batch: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The decoder's ids, `[batch, 1]` of int64, for a forward on `batch`; nothing where it needs none.

    Raises:
        ValueError: the model's configuration names no token to begin with.
    """
    if any(batch.get(name) is not None for name in _OF_THE_DECODER) or not is_encoder_decoder(module):
        return {}
    given = next((batch[name] for name in ("input_ids", "inputs_embeds") if batch.get(name) is not None), None)
    if given is None:
        return {}
    configurations = [getattr(module, name, None) for name in ("generation_config", "config")]
    for name in ("decoder_start_token_id", "bos_token_id"):
        for configuration in configurations:
            start = getattr(configuration, name, None)
            if isinstance(start, int):
                return {"decoder_input_ids": torch.full((given.shape[0], 1), start, dtype=torch.long)}
    raise ValueError(
        "The configuration of this encoder-decoder model names no decoder_start_token_id: pass decoder_input_ids."
    )
