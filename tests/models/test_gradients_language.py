"""The gradient block of nnsight's API reference, as it stands there, on models of both kinds of block."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, BloomConfig

from nnsight_lab import LanguageModel, demo
from tests.models.tiny import tiny_tokenizer

PROMPT = "The quick brown fox"


@pytest.fixture(scope="module")
def bloom() -> LanguageModel:
    """A model whose blocks return a tuple, as those of all models did when the document was written."""
    torch.manual_seed(0)
    config = BloomConfig(vocab_size=257, hidden_size=32, n_layer=7, n_head=4)
    return LanguageModel(AutoModelForCausalLM.from_config(config).eval(), tokenizer=tiny_tokenizer())


def by_hand(model: LanguageModel) -> Tensor:
    """The gradient at block 5 by torch's hook."""
    kept: list[Tensor] = []

    def hook(module: nn.Module, args: object, output: Tensor | tuple[Tensor, ...]) -> None:
        value = output[0] if isinstance(output, tuple) else output
        value.retain_grad()
        kept.append(value)

    handle = model._model.transformer.h[5].register_forward_hook(hook)
    try:
        logits = model._model(**model.tokenizer(PROMPT, return_tensors="pt")).logits
    finally:
        handle.remove()
    (-logits[0, -1, model.tokenizer.encode(" jumps")[0]]).backward()
    assert kept[0].grad is not None
    return kept[0].grad


@pytest.mark.parametrize("blocks_return", ["tuple", "tensor"])
def test_the_documents_block(bloom: LanguageModel, blocks_return: str) -> None:
    model = bloom if blocks_return == "tuple" else demo.load()
    with model.trace("The quick brown fox") as tracer:
        hidden = model.transformer.h[5].output[0].save()
        hidden.retain_grad()

        logits = model.output
        target_token = model.tokenizer.encode(" jumps")[0]
        loss = -logits[0, -1, target_token]
        loss.backward()

    # Access gradient
    grad = hidden.grad

    assert tracer.result is logits
    expected = by_hand(model)
    assert torch.equal(grad, expected if blocks_return == "tuple" else expected[0])


def test_with_backward_in_a_language_model() -> None:
    model = demo.load()
    token = model.tokenizer.encode(" jumps")[0]
    with model.trace(PROMPT):
        hidden = model.transformer.h[5].output
        with (-model.output[0, -1, token]).backward():
            grad = hidden.grad.save()
    assert torch.equal(grad, by_hand(model))
