"""A language model's output: transformers' own object, which a tuple indexes by position."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput

from nnsight_lab import LanguageModel
from tests.models.tiny import tiny_model, tiny_tokenizer


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return LanguageModel(tiny_model(), tokenizer=tiny_tokenizer())


@pytest.mark.parametrize(
    "key",
    [(0, -1, 7), (0, -1), (slice(None), -1), (..., 3), (0, torch.tensor([1, 2])), (0, None, -1)],
    ids=["numbers", "fewer", "slice", "ellipsis", "tensor", "new axis"],
)
def test_a_tuple_indexes_the_logits(model: LanguageModel, key: tuple[object, ...]) -> None:
    with torch.no_grad(), model.trace("abc"):
        inside = model.output[key]
        output = model.output
    plain = model._model(**model.tokenizer("abc", return_tensors="pt")).logits
    assert torch.equal(inside, plain[key])
    assert torch.equal(output[key], plain[key])


def test_other_keys_mean_what_they_meant(model: LanguageModel) -> None:
    with torch.no_grad(), model.trace("abc"):
        output = model.output
    fields = output.to_tuple()
    assert output[0] is output["logits"] is output.logits is fields[0]
    assert output[-1] is fields[-1]
    assert output[torch.tensor(0)] is fields[0]
    assert len(output[:1]) == 1
    assert output[:1][0] is fields[0]
    with pytest.raises(KeyError):
        output["nothing"]
    with pytest.raises(IndexError):
        output[9]


def test_an_output_without_logits_refuses_a_tuple_as_before(model: LanguageModel) -> None:
    assert model.tokenizer is not None
    with pytest.raises(TypeError, match="not tuple"):
        BaseModelOutput(last_hidden_state=torch.ones(1))[0, 0]
    with pytest.raises(TypeError, match="not tuple"):
        CausalLMOutput(loss=torch.ones(()))[0, 0]


def test_the_output_stays_transformers_own(model: LanguageModel) -> None:
    plain = model._model(**model.tokenizer("abc", return_tensors="pt"), use_cache=False)
    with torch.no_grad(), model.trace("abc", use_cache=False):
        output = model.output
    assert type(output) is type(plain)
    assert list(output) == list(plain) == ["logits"]
    for copied in (copy.copy(output), pickle.loads(pickle.dumps(output))):
        assert type(copied) is type(output)
        assert torch.equal(copied.logits, output.logits)
        assert torch.equal(copied[0, -1], output.logits[0, -1])


def test_a_second_wrapper_changes_nothing_more(model: LanguageModel) -> None:
    with torch.no_grad(), model.trace("abc"):
        before = type(model.output).__getitem__
    LanguageModel(tiny_model(), tokenizer=tiny_tokenizer())
    with torch.no_grad(), model.trace("abc"):
        assert type(model.output).__getitem__ is before
