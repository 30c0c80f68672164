"""The code blocks of the document "Accessing Intermediate Operations", as written but for import and model name.

What each must give comes from the plain model with torch hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

import nnsight_lab
from nnsight_lab import LanguageModel

PROMPT = "The Eiffel Tower is in the city of"


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return nnsight_lab.demo.load()


@contextmanager
def hooked(module: torch.nn.Module, hook: Callable[..., Any]) -> Iterator[None]:
    handle = module.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def plain_logits(model: LanguageModel) -> torch.Tensor:
    ids = model.tokenizer(PROMPT, return_tensors="pt").input_ids
    return model._model(ids).logits


def test_discovering_operations(model: LanguageModel, capsys: pytest.CaptureFixture[str]) -> None:
    print(model.transformer.h[0].mlp.source)
    rows = capsys.readouterr().out.split("\n")
    assert rows[0].startswith("                    * def forward(self, hidden_states")
    assert rows[1:6] == [
        " self_c_fc_0    ->  0     hidden_states = self.c_fc(hidden_states)",
        " self_act_0     ->  1     hidden_states = self.act(hidden_states)",
        " self_c_proj_0  ->  2     hidden_states = self.c_proj(hidden_states)",
        " self_dropout_0 ->  3     hidden_states = self.dropout(hidden_states)",
        "                    4     return hidden_states",
    ]


def test_getting_an_intermediate_value(model: LanguageModel) -> None:
    with model.trace("The Eiffel Tower is in the city of"):
        # Get the hidden states after the GELU activation (before projection)
        post_gelu = model.transformer.h[0].mlp.source.self_act_0.output.save()

    seen: list[torch.Tensor] = []
    with hooked(model._model.transformer.h[0].mlp.act, lambda m, a, value: seen.append(value)):
        plain_logits(model)
    assert torch.equal(post_gelu, seen[0])
    assert post_gelu.shape == (1, 8, model.config.n_embd * 4)


def test_setting_an_intermediate_value(model: LanguageModel) -> None:
    with model.trace("The Eiffel Tower is in the city of"):
        normal_logits = model.lm_head.output.save()

    with model.trace("The Eiffel Tower is in the city of"):
        # Zero the MLP's GELU output at layer 11
        model.transformer.h[11].mlp.source.self_act_0.output[:] = 0
        modified_logits = model.lm_head.output.save()

    normal = model.tokenizer.decode(normal_logits[0, -1].argmax(dim=-1))
    zeroed = model.tokenizer.decode(modified_logits[0, -1].argmax(dim=-1))

    assert torch.equal(normal_logits, plain_logits(model))
    with hooked(model._model.transformer.h[11].mlp.act, lambda m, a, value: torch.zeros_like(value)):
        assert torch.equal(modified_logits, plain_logits(model))
    assert normal == " Paris"
    assert zeroed != " Paris"


def test_patching_between_layers(model: LanguageModel) -> None:
    with model.trace("The Eiffel Tower is in the city of"):
        # Capture layer 0's post-GELU activations
        gelu_0 = model.transformer.h[0].mlp.source.self_act_0.output

        # Patch them into layer 5
        model.transformer.h[5].mlp.source.self_act_0.output = gelu_0

        logits = model.lm_head.output.save()

    taken: list[torch.Tensor] = []
    blocks = model._model.transformer.h
    with (
        hooked(blocks[0].mlp.act, lambda m, a, value: taken.append(value)),
        hooked(blocks[5].mlp.act, lambda m, a, value: taken[0]),
    ):
        assert torch.equal(logits, plain_logits(model))


def test_recursive_source_tracing(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    with model.trace("The Eiffel Tower is in the city of"):
        # Trace into the attention interface -> access the SDPA call's input (the query tensor)
        sdpa = model.transformer.h[0].attn.source.attention_interface_0.source
        query = sdpa.torch_nn_functional_scaled_dot_product_attention_0.input.save()

    queries: list[torch.Tensor] = []
    attend = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        torch.nn.functional,
        "scaled_dot_product_attention",
        lambda query, *args, **kwargs: queries.append(query) or attend(query, *args, **kwargs),
    )
    plain_logits(model)
    assert torch.equal(query, queries[0])
    assert query.shape == (1, 12, 8, model.config.n_embd // 12)  # [batch, heads, seq_len, head_dim]


def test_viewing_a_specific_operation(model: LanguageModel, capsys: pytest.CaptureFixture[str]) -> None:
    print(model.transformer.h[0].attn.source.self_c_proj_0)
    rows = capsys.readouterr().out.split("\n")
    marked = [row for row in rows if row.startswith("-->")]
    assert len(marked) == 1
    assert "attn_output = self.c_proj(attn_output)" in marked[0]
    assert marked[0].endswith("<--")


def test_source_of_a_submodule_is_addressed_on_the_model(model: LanguageModel) -> None:
    with pytest.raises(nnsight_lab.UnknownNameError, match="'self_c_proj_0'"):
        model.transformer.h[0].attn.source.self_c_proj.source
    with pytest.raises(nnsight_lab.CalleeIsModuleError, match=r"model\.transformer\.h\[0\]\.attn\.c_proj\.source"):
        model.transformer.h[0].attn.source.self_c_proj_0.source
    assert "x_view_0" in str(model.transformer.h[0].attn.c_proj.source)
