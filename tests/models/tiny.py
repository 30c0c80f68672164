"""Tiny random language models with a byte-level tokenizer, built without a hub."""

from __future__ import annotations

import functools
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    LlamaConfig,
    MixtralConfig,
    PreTrainedTokenizerFast,
)

_SIZES = {"vocab_size": 257, "bos_token_id": 256, "eos_token_id": 256, "pad_token_id": 256}
_ROTARY = dict(
    _SIZES,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
)

CONFIGS: dict[str, Any] = {
    "gpt2": functools.partial(GPT2Config, n_embd=32, n_layer=2, n_head=4, n_positions=64, **_SIZES),
    "llama": functools.partial(LlamaConfig, **_ROTARY),
    "mixtral": functools.partial(MixtralConfig, num_local_experts=4, num_experts_per_tok=2, **_ROTARY),
}


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """A token for every byte, and one that ends a text; it has no pad token."""
    letters = {letter: index for index, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(BPE(vocab={**letters, "<|end|>": 256}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", bos_token="<|end|>")


def tiny_model(kind: str = "gpt2", seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return AutoModelForCausalLM.from_config(CONFIGS[kind]()).eval()


class Fixed(torch.nn.Module):
    """A model whose forward takes two arguments and no other."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask=None):
        return self.model(input_ids, attention_mask=attention_mask)
