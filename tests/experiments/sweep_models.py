"""Tiny random models of the shapes that sweeps meet, and edited runs of them by plain torch hooks."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from nnsight_lab import LanguageModel

BASE = (5, 17, 3, 29, 11, 2, 23, 8, 14)
SOURCE = (5, 40, 41, 29, 11, 2, 23, 8, 14)
VOCABULARY = 64


def tiny(name: str, seed: int = 0) -> LanguageModel:
    """A random model of an architecture, wrapped, without a tokenizer."""
    import transformers as t

    torch.manual_seed(seed)
    common = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 1,
    }
    match name:
        case "gpt2":
            config = t.GPT2Config(vocab_size=VOCABULARY, n_positions=32, n_embd=32, n_layer=4, n_head=4, eos_token_id=1)
        case "llama":
            config = t.LlamaConfig(**common)
        case "gemma2":
            config = t.Gemma2Config(**common, sliding_window=4, query_pre_attn_scalar=8)
        case "gemma3":
            config = t.Gemma3TextConfig(**common, sliding_window=4, query_pre_attn_scalar=8, sliding_window_pattern=2)
        case "qwen2_moe":
            config = t.Qwen2MoeConfig(
                **common,
                moe_intermediate_size=16,
                shared_expert_intermediate_size=16,
                num_experts=4,
                num_experts_per_tok=2,
            )
        case "bloom":
            config = t.BloomConfig(vocab_size=VOCABULARY, hidden_size=32, n_layer=4, n_head=4)
        case "mamba":
            config = t.MambaConfig(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=4, state_size=4)
        case "albert":
            config = t.AlbertConfig(
                vocab_size=VOCABULARY,
                embedding_size=16,
                hidden_size=32,
                num_hidden_layers=4,
                num_attention_heads=4,
                intermediate_size=48,
            )
        case "bert":
            config = t.BertConfig(
                vocab_size=VOCABULARY,
                hidden_size=32,
                num_hidden_layers=4,
                num_attention_heads=4,
                intermediate_size=48,
                max_position_embeddings=32,
            )
    auto = t.AutoModelForMaskedLM if name in ("albert", "bert") else t.AutoModelForCausalLM
    module = auto.from_config(config).eval()
    with torch.no_grad():
        for parameter in module.parameters():  # larger than the initial weights, so that edits matter
            parameter.add_(0.2 * torch.randn_like(parameter))
    return LanguageModel(module)


def edited_logits(module: nn.Module, path: str, change: Callable[[Tensor], Tensor], ids: tuple[int, ...]) -> Tensor:
    """Last logits `[vocabulary]` of a run in which a forward hook changes the output of the module at `path`."""

    def hook(_module: nn.Module, _args: object, output: object) -> object:
        if isinstance(output, tuple):
            return (change(output[0].clone()), *output[1:])
        assert isinstance(output, Tensor)
        return change(output.clone())

    handle = module.get_submodule(path).register_forward_hook(hook)
    try:
        with torch.no_grad():
            return module(input_ids=torch.tensor([ids])).logits[0, -1].double()
    finally:
        handle.remove()


def outputs_of(module: nn.Module, path: str, ids: tuple[int, ...]) -> Tensor:
    """The (first) output tensor of the module at `path` in a clean run."""
    kept: list[Tensor] = []

    def keep(value: Tensor) -> Tensor:
        kept.append(value)
        return value

    edited_logits(module, path, keep, ids)
    return kept[0]
