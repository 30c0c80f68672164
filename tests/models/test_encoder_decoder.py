"""Encoder-decoder text models: a trace runs one step of the decoder, a generation gives plain `generate`'s ids."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import BartConfig, BartForConditionalGeneration, T5Config, T5ForConditionalGeneration

from nnsight_lab import LanguageModel
from tests.models.tiny import tiny_tokenizer

START = 255
GREEDY = {"max_new_tokens": 4, "do_sample": False}
_IDS = {
    "vocab_size": 257, "decoder_start_token_id": START, "eos_token_id": 256, "pad_token_id": 256, "bos_token_id": 256,
    "forced_eos_token_id": None,
}  # fmt: skip


def made(kind: str) -> Any:
    torch.manual_seed(0)
    if kind == "t5":
        config = T5Config(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, **_IDS)
        return T5ForConditionalGeneration(config).eval()
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
    config = BartConfig(
        d_model=32, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64, init_std=0.5, **sizes, **_IDS
    )
    return BartForConditionalGeneration(config).eval()


@pytest.fixture(params=["t5", "bart"])
def model(request: Any) -> LanguageModel:
    return LanguageModel(made(request.param), tokenizer=tiny_tokenizer())


def parts(model: LanguageModel) -> tuple[Any, Any]:
    body = model if hasattr(model._model, "encoder") else model.model
    return body.encoder, body.decoder


def test_a_text_runs_one_step_of_the_decoder(model):
    with model.trace("hello there"):
        logits = model.lm_head.output
    encoded = model.tokenizer("hello there", return_tensors="pt")
    expected = model._model(**encoded, decoder_input_ids=torch.tensor([[START]])).logits
    assert logits.shape == (1, 1, 257)
    torch.testing.assert_close(logits, expected)


@pytest.mark.parametrize("name", ["decoder_input_ids", "labels"])
def test_ids_of_the_decoders_own_are_left_alone(model, name):
    ids = torch.tensor([[START, 5, 7]])
    with model.trace("hello there", **{name: ids}):
        output = model.output
    encoded = model.tokenizer("hello there", return_tensors="pt")
    assert torch.equal(output.logits, model._model(**encoded, **{name: ids}).logits)


def test_texts_of_different_lengths_run_as_they_do_alone(model):
    texts = ["hello", "a rather longer text"]
    with model.trace(texts):
        both = model.lm_head.output
    for row, text in enumerate(texts):
        with model.trace(text):
            alone = model.lm_head.output
        torch.testing.assert_close(both[row], alone[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("texts", ["hello there", ["hello", "a rather longer text"]])
def test_generation_with_encoder_and_decoder_read(model, texts):
    encoder, decoder = parts(model)
    steps = []
    with model.generate(texts, **GREEDY) as tracer:
        encoded = encoder.output[0]
        for _ in tracer.iter[:]:
            steps.append(decoder.output[0])
    seen: list[Any] = []
    kept: list[Any] = []
    handles = [
        encoder._module.register_forward_hook(lambda m, a, output: kept.append(output[0])),
        decoder._module.register_forward_hook(lambda m, a, output: seen.append(output[0])),
    ]
    inputs = model.tokenizer(texts, return_tensors="pt", padding=True)
    ids = model._model.generate(inputs.input_ids, attention_mask=inputs.attention_mask, **GREEDY)
    for handle in handles:
        handle.remove()
    assert torch.equal(tracer.result, ids)
    assert torch.equal(encoded, kept[0])
    assert len(steps) == 4
    assert all(map(torch.equal, steps, seen))


def test_an_edit_of_the_encoder_before_the_first_step(model):
    encoder, _ = parts(model)
    final = encoder.final_layer_norm if hasattr(encoder._module, "final_layer_norm") else encoder.layers[1]
    with model.generate("hello there", **GREEDY) as tracer:
        final.output = final.output * -2
        last = [model.lm_head.output for _ in tracer.iter[:]][-1]
    head: list[Any] = []
    handles = [
        final._module.register_forward_hook(lambda m, a, output: output * -2),
        model._model.lm_head.register_forward_hook(lambda m, a, output: head.append(output)),
    ]
    ids = model._model.generate(**model.tokenizer("hello there", return_tensors="pt"), **GREEDY)
    for handle in handles:
        handle.remove()
    assert torch.equal(tracer.result, ids)
    assert torch.equal(last, head[-1])


def test_a_folder_of_an_encoder_decoder_model_is_loaded_as_one(tmp_path):
    plain = made("t5")
    plain.save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    model = LanguageModel(tmp_path)
    assert isinstance(model._model, T5ForConditionalGeneration)
    assert model.tokenizer.padding_side == "right"
    with model.generate("hello there", **GREEDY) as tracer:
        pass
    assert torch.equal(tracer.result, plain.generate(**model.tokenizer("hello there", return_tensors="pt"), **GREEDY))


def test_a_model_without_a_start_token_says_what_to_pass():
    module = made("t5")
    for configuration in (module.config, module.generation_config):
        configuration.decoder_start_token_id = configuration.bos_token_id = None
    with pytest.raises(ValueError, match="pass decoder_input_ids"):
        LanguageModel(module, tokenizer=tiny_tokenizer()).trace("hello")
