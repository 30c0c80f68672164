"""Prompts of different lengths in one forward: each row equals the plain model's run of its prompt alone.

The rows are padded on the left, so a prompt's own positions are its last ones. Sums over other shapes round differently;
the tolerances are absolute, on activations and logits of the size that the models have.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    PreTrainedModel,
    Qwen2MoeConfig,
    Qwen2MoeForCausalLM,
)

from nnsight_lab import InvokeError, LanguageModel, ValidationError, demo
from nnsight_lab.models.prompts import PromptError

PROMPTS = ["The Eiffel Tower is in the city of", "Rome", "The cat sat on the mat and"]
IDS = [[5, 9, 2, 40, 17], [3], [8, 1, 30]]
_SMALL: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
_BUILD: dict[str, Callable[[], PreTrainedModel]] = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**_SMALL)),
    "mixtral": lambda: MixtralForCausalLM(MixtralConfig(**_SMALL, num_local_experts=4, num_experts_per_tok=2)),
    "qwen2moe": lambda: Qwen2MoeForCausalLM(
        Qwen2MoeConfig(
            **_SMALL,
            num_experts=4,
            num_experts_per_tok=2,
            moe_intermediate_size=24,
            shared_expert_intermediate_size=24,
        )
    ),
}


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return demo.load()


@pytest.fixture(params=list(_BUILD))
def random_model(request: pytest.FixtureRequest) -> PreTrainedModel:
    torch.manual_seed(0)
    return _BUILD[request.param]().eval()


def hidden_of(module: nn.Module, path: str, **inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The output of the submodule at `path` and the logits, of the plain model."""
    kept = []

    def keep(_module: nn.Module, _args: Any, output: Any) -> None:
        kept.append(output[0] if isinstance(output, tuple) else output)

    handle = module.get_submodule(path).register_forward_hook(keep)
    try:
        with torch.no_grad():
            logits = module(**inputs).logits
    finally:
        handle.remove()
    return kept[0], logits


def own(rows: torch.Tensor, count: int) -> torch.Tensor:
    """A prompt's own positions, without the padding on their left."""
    return rows[:, -count:]


def test_prompts_of_different_lengths_equal_their_single_runs(model: LanguageModel) -> None:
    hidden, logits = [], []
    with torch.no_grad(), model.trace() as tracer:
        for prompt in PROMPTS:
            with tracer.invoke(prompt):
                hidden.append(model.transformer.h[7].output)
                logits.append(model.output.logits)
    for prompt, rows, scores in zip(PROMPTS, hidden, logits, strict=True):
        inputs = model.tokenizer(prompt, return_tensors="pt")
        count = inputs["input_ids"].shape[1]
        expected, expected_logits = hidden_of(model._model, "transformer.h.7", **inputs)
        assert torch.allclose(own(rows, count), expected, atol=2e-4)
        assert torch.allclose(own(scores, count), expected_logits, atol=2e-3)


def test_rotary_and_expert_models_equal_their_single_runs(random_model: PreTrainedModel) -> None:
    model = LanguageModel(random_model)
    hidden, logits, mlp = [], [], []
    with torch.no_grad(), model.trace() as tracer:
        for ids in IDS:
            with tracer.invoke(ids):
                mlp.append(model.model.layers[0].mlp.output)
                hidden.append(model.model.layers[1].output)
                logits.append(model.output.logits)
    for ids, rows, scores, inner in zip(IDS, hidden, logits, mlp, strict=True):
        inputs = {"input_ids": torch.tensor([ids])}
        expected, expected_logits = hidden_of(random_model, "model.layers.1", **inputs)
        expected_inner, _ = hidden_of(random_model, "model.layers.0.mlp", **inputs)
        assert torch.allclose(own(inner, len(ids)), expected_inner, atol=1e-5)
        assert torch.allclose(own(rows, len(ids)), expected, atol=1e-5)
        assert torch.allclose(own(scores, len(ids)), expected_logits, atol=1e-5)


def test_an_edit_of_one_prompt_leaves_the_others_as_they_were(random_model: PreTrainedModel) -> None:
    model = LanguageModel(random_model)
    with torch.no_grad(), model.trace() as tracer:
        with tracer.invoke(IDS[0]):
            model.model.layers[0].output[:] = 0
            edited = model.output.logits
        with tracer.invoke(IDS[2]):
            other = model.output.logits

    handle = random_model.get_submodule("model.layers.0").register_forward_hook(
        lambda _module, _args, output: torch.zeros_like(output)
    )
    with torch.no_grad():
        expected = random_model(input_ids=torch.tensor([IDS[0]])).logits
        handle.remove()
        clean = random_model(input_ids=torch.tensor([IDS[2]])).logits
    assert torch.allclose(edited, expected, atol=1e-5)
    assert torch.allclose(own(other, len(IDS[2])), clean, atol=1e-5)


@pytest.mark.parametrize("name", ["mixtral", "qwen2moe"])
def test_a_router_that_sees_the_tokens_of_all_prompts_in_one_list_is_refused(name: str) -> None:
    module = _BUILD[name]().eval()
    model = LanguageModel(module)
    with pytest.raises(InvokeError, match=r"mlp.gate.input is a tensor of shape \[10, 32\]"), model.trace() as tracer:
        with tracer.invoke(IDS[0]):
            model.model.layers[0].mlp.gate.input
        with tracer.invoke(IDS[1]):
            pass
    with torch.no_grad(), model.trace() as tracer:
        with tracer.invoke(IDS[0]):
            block = model.model.layers[0].mlp.input
        with tracer.invoke(IDS[1]):
            pass
        with tracer.invoke():
            flat = model.model.layers[0].mlp.gate.input
    assert torch.equal(flat[:5], block[0])


@pytest.mark.parametrize("kind", ["list", "tensor", "mapping", "masked"])
def test_every_kind_of_prompt_makes_up_the_batch(model: LanguageModel, kind: str) -> None:
    ids = model.tokenizer(PROMPTS[0])["input_ids"]
    given: Any = {
        "list": ids,
        "tensor": torch.tensor([ids]),
        "mapping": {"input_ids": torch.tensor([ids])},
        "masked": {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)},
    }[kind]
    with torch.no_grad(), model.trace() as tracer:
        with tracer.invoke(given):
            first = model.output.logits
        with tracer.invoke([PROMPTS[2], PROMPTS[1]]):
            pair = model.output.logits
            mask = model.inputs[1]["attention_mask"]
    assert first.shape[0] == 1
    assert pair.shape[0] == 2
    for prompt, rows in ((PROMPTS[0], first), (PROMPTS[2], pair[:1]), (PROMPTS[1], pair[1:])):
        inputs = model.tokenizer(prompt, return_tensors="pt")
        count = inputs["input_ids"].shape[1]
        with torch.no_grad():
            assert torch.allclose(own(rows, count), model._model(**inputs).logits, atol=2e-3)
    assert mask.sum(-1).tolist() == [len(model.tokenizer(prompt)["input_ids"]) for prompt in (PROMPTS[2], PROMPTS[1])]


def test_prompts_of_one_length_are_not_padded(model: LanguageModel) -> None:
    with torch.no_grad(), model.trace() as tracer:
        with tracer.invoke([5, 6, 7]):
            first = model.transformer.wte.output
        with tracer.invoke([8, 9, 10]):
            keywords = model.inputs[1]
    assert first.shape[:2] == (1, 3)
    assert keywords["input_ids"].tolist() == [[8, 9, 10]]
    assert "position_ids" not in keywords


def test_gradients_of_each_prompt_are_those_of_its_single_run(model: LanguageModel) -> None:
    grads = []
    with model.trace() as tracer:
        for prompt in PROMPTS[:2]:
            with tracer.invoke(prompt):
                hidden = model.transformer.h[5].output
                model.output.logits[0, -1].logsumexp(-1).backward(retain_graph=True)
                grads.append(hidden.grad)
    for prompt, grad in zip(PROMPTS[:2], grads, strict=True):
        kept = []
        handle = model._model.get_submodule("transformer.h.5").register_forward_hook(
            lambda _module, _args, output, kept=kept: (output.retain_grad(), kept.append(output))[0]
        )
        inputs = model.tokenizer(prompt, return_tensors="pt")
        model._model(**inputs).logits[0, -1].logsumexp(-1).backward()
        handle.remove()
        count = inputs["input_ids"].shape[1]
        assert torch.allclose(own(grad, count), kept[0].grad, atol=1e-4)


def test_a_kept_edit_acts_on_every_prompt(model: LanguageModel) -> None:
    def double(edited: Any) -> None:
        edited.transformer.h[3].output[:] *= 2

    model = model.edit(double)
    logits = []
    with torch.no_grad(), model.trace() as tracer:
        for prompt in PROMPTS[:2]:
            with tracer.invoke(prompt):
                logits.append(model.output.logits)
    handle = model._model.get_submodule("transformer.h.3").register_forward_hook(lambda _m, _a, output: output * 2)
    try:
        for prompt, rows in zip(PROMPTS, logits, strict=False):
            inputs = model.tokenizer(prompt, return_tensors="pt")
            with torch.no_grad():
                expected = model._model(**inputs).logits
            assert torch.allclose(own(rows, expected.shape[1]), expected, atol=2e-3)
    finally:
        handle.remove()


def test_a_model_without_a_mask_takes_prompts_of_one_length_only() -> None:
    class Bare(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(16, 4)

        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            return self.embed(input_ids).cumsum(1)

    module = Bare()
    model = LanguageModel(module)
    with model.trace() as tracer:
        with tracer.invoke([1, 2]):
            first = model.output
        with tracer.invoke([3, 4]):
            second = model.output
    assert torch.equal(first, module(torch.tensor([[1, 2]])))
    assert torch.equal(second, module(torch.tensor([[3, 4]])))
    with pytest.raises(PromptError, match="takes no attention_mask"), model.trace() as tracer:
        with tracer.invoke([1, 2]):
            pass
        with tracer.invoke([3]):
            pass


def test_a_keyword_that_has_no_rows_must_be_the_same_in_all_blocks(model: LanguageModel) -> None:
    with torch.no_grad(), model.trace() as tracer:
        with tracer.invoke("a", use_cache=False):
            cache = model.output.past_key_values
        with tracer.invoke("b", use_cache=False):
            pass
    assert cache is None
    with pytest.raises(InvokeError, match=r"use_cache.* differs among them"), model.trace() as tracer:
        with tracer.invoke("a", use_cache=False):
            pass
        with tracer.invoke("b", use_cache=True):
            pass


def test_a_prompt_that_is_none_is_refused_at_its_block() -> None:
    model = LanguageModel(GPT2LMHeadModel(GPT2Config(vocab_size=20, n_embd=8, n_layer=1, n_head=2)))
    with pytest.raises(PromptError, match="without a tokenizer") as caught, model.trace() as tracer:
        with tracer.invoke([1]):
            pass
        with tracer.invoke("text"):
            pass
    lines = [str(entry.statement).strip() for entry in caught.traceback if str(entry.path) == __file__]
    assert lines[-1].startswith('with tracer.invoke("text")')


@pytest.mark.parametrize("name", ["mixtral", "qwen2moe"])
def test_experts_are_refused_even_where_the_number_of_tokens_is_the_batch_size(name: str) -> None:
    torch.manual_seed(0)
    module = _BUILD[name]().eval()
    module.set_experts_implementation("eager")
    model = LanguageModel(module)
    experts = model.model.layers[0].mlp.experts
    operations = [name for name in dir(experts.source) if re.search(r"_\d+$", name)]
    with torch.no_grad(), model.trace() as tracer:
        with tracer.invoke([5]):
            with pytest.raises(InvokeError, match="does not tell which part"):
                for operation in operations:
                    value = getattr(experts.source, operation).output
                    assert not isinstance(value, torch.Tensor)
            whole = experts.output  # one token a row: the sum over the experts is in the rows' order
        with tracer.invoke([7]):
            pass
    assert whole.shape == (1, 32)


def test_numbers_of_positions_are_not_taken_for_rows() -> None:
    class Positioned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Identity()
            self.embed = nn.Embedding(16, 4)

        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            return self.body(self.embed(input_ids), cache_position=torch.arange(input_ids.shape[1]))

    class Body(nn.Module):
        def forward(self, hidden: torch.Tensor, cache_position: torch.Tensor) -> torch.Tensor:
            return hidden + cache_position[:, None]

    module = Positioned()
    module.body = Body()
    model = LanguageModel(module)
    with torch.no_grad(), model.trace() as tracer:
        with tracer.invoke([1, 2]):
            _, keywords = model.body.inputs
            positions = keywords["cache_position"]
            keywords["cache_position"] = positions.clone()
            first = model.output
        with tracer.invoke([3, 4]):
            second = model.output
    assert positions.tolist() == [0, 1]
    assert torch.equal(first, module(torch.tensor([[1, 2]])))
    assert torch.equal(second, module(torch.tensor([[3, 4]])))


def test_a_scan_and_the_checks_of_assignments_hold_for_blocks(model: LanguageModel) -> None:
    with torch.no_grad(), model.trace(scan=True, validate=True) as tracer:
        with tracer.invoke(PROMPTS[0]):
            model.transformer.h[2].output = torch.zeros_like(model.transformer.h[2].output)
            edited = model.output.logits
        with tracer.invoke(PROMPTS[1]):
            other = model.output.logits
    plain = hidden_of(model._model, "lm_head", **model.tokenizer(PROMPTS[1], return_tensors="pt"))[1]
    assert torch.allclose(own(other, plain.shape[1]), plain, atol=2e-3)
    assert not torch.allclose(edited[:, -1], other[:, -1], atol=1e-2)
    with pytest.raises(ValidationError, match=r"transformer\.h\[2\]"), model.trace(validate=True) as tracer:
        with tracer.invoke(PROMPTS[0]):
            model.transformer.h[2].output = torch.zeros(1, 2, 3)


def test_a_cache_is_of_the_whole_batch(model: LanguageModel) -> None:
    with torch.no_grad(), model.trace() as tracer:
        cache = tracer.cache(modules=[model.transformer.h[2]])
        for prompt in PROMPTS:
            with tracer.invoke(prompt):
                pass
    assert cache["transformer.h.2"].output.shape[0] == len(PROMPTS)
    with pytest.raises(InvokeError, match="above the invoke blocks"), model.trace() as tracer:
        with tracer.invoke(PROMPTS[0]):
            tracer.cache()
