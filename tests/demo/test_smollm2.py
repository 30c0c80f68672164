"""The real model: fetched and converted once into the user's cache, then shared by every test."""

import json

import pytest
import torch

from nnsight_lab.demo.smollm2 import load_smollm2, smollm2_folder

PROMPT = "The Eiffel Tower is in the city of"


def top_token(model, tokenizer, prompt):
    with torch.no_grad():
        logits = model(**tokenizer(prompt, return_tensors="pt")).logits
    return tokenizer.decode(logits[0, -1].argmax())


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        (PROMPT, " Paris"),
        ("The Brandenburg Gate is in the city of", " Berlin"),
        ("The Colosseum is in the city of", " Rome"),
    ],
)
def test_it_completes_facts(smollm2, prompt, answer):
    model, tokenizer = smollm2
    assert top_token(model, tokenizer, prompt) == answer


def test_its_tokenizer_adds_nothing_to_the_prompt(smollm2):
    _, tokenizer = smollm2
    ids = tokenizer(PROMPT).input_ids
    assert [tokenizer.decode(token) for token in ids][-5:] == [" is", " in", " the", " city", " of"]
    assert tokenizer.decode(ids) == PROMPT


def test_it_is_the_135_million_parameter_model_in_float32(smollm2):
    model, _ = smollm2
    assert sum(parameter.numel() for parameter in model.parameters()) == 134_515_008
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert not model.training


def test_the_cached_model_is_plain_safetensors_with_no_trace_of_gguf():
    folder = smollm2_folder()
    names = {path.name for path in folder.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} <= names
    assert "quantization_config" not in json.loads((folder / "config.json").read_text())


def test_it_loads_as_a_language_model_that_answers_inside_a_trace(smollm2):
    _, tokenizer = smollm2
    model = load_smollm2()
    with model.trace(PROMPT):
        logits = model.lm_head.output.save()
    assert tokenizer.decode(logits[0, -1].argmax()) == " Paris"


def test_loading_options_reach_transformers():
    model = load_smollm2(dtype=torch.bfloat16)
    assert {parameter.dtype for parameter in model._model.parameters()} == {torch.bfloat16}
