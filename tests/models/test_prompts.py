"""Every form of prompt runs the forward that it names; batched rows equal single runs."""

import numpy
import pytest
import torch
from transformers import BatchEncoding

from nnsight_lab import LanguageModel
from nnsight_lab.models import PromptError
from tests.models.tiny import CONFIGS, Fixed, tiny_model, tiny_tokenizer

TEXT = "The Eiffel Tower"


@pytest.fixture(scope="module")
def plain():
    return tiny_model()


@pytest.fixture
def model(plain):
    return LanguageModel(plain, tokenizer=tiny_tokenizer())


IDS = tiny_tokenizer()(TEXT)["input_ids"]


def logits_of(model, *args, **kwargs):
    with model.trace(*args, **kwargs) as tracer:
        pass
    return tracer.result.logits


@pytest.mark.parametrize(
    "prompt",
    [
        TEXT,
        [TEXT],
        (TEXT,),
        IDS,
        tuple(IDS),
        [IDS],
        torch.tensor(IDS),
        torch.tensor([IDS]),
        torch.tensor(IDS, dtype=torch.int32),
        numpy.array(IDS),
        [torch.tensor(i) for i in IDS],
        {"input_ids": torch.tensor([IDS])},
        BatchEncoding({"input_ids": torch.tensor([IDS]), "attention_mask": torch.ones(1, len(IDS), dtype=torch.long)}),
    ],
    ids=lambda prompt: type(prompt).__name__,
)
def test_every_form_of_one_prompt_gives_the_plain_logits(model, plain, prompt):
    expected = plain(torch.tensor([IDS])).logits
    torch.testing.assert_close(logits_of(model, prompt), expected, rtol=0, atol=0)


def test_a_tokenizers_own_encoding_is_a_prompt(model, plain):
    encoded = tiny_tokenizer()(TEXT, return_tensors="pt")
    assert torch.equal(logits_of(model, encoded), plain(encoded["input_ids"]).logits)


def test_a_mapping_of_ragged_lists_says_how_to_pad(model):
    with pytest.raises(PromptError, match="padding=True"):
        model.trace(tiny_tokenizer()(["a", "bcd"]))


def test_a_mapping_of_lists_is_a_prompt(model, plain):
    encoded = tiny_tokenizer()([TEXT])
    assert torch.equal(logits_of(model, encoded), plain(torch.tensor(encoded["input_ids"])).logits)


@pytest.mark.parametrize("prompt", [IDS[0], torch.tensor(IDS[0]), [IDS[0]], numpy.int64(IDS[0])])
def test_a_single_token_is_a_prompt(model, plain, prompt):
    assert torch.equal(logits_of(model, prompt), plain(torch.tensor([[IDS[0]]])).logits)


def test_keyword_tensors_go_to_the_forward(model, plain):
    ids = torch.tensor([IDS])
    embeds = plain.transformer.wte(ids)
    assert torch.equal(logits_of(model, input_ids=ids), plain(ids).logits)
    assert torch.equal(logits_of(model, inputs_embeds=embeds), plain(inputs_embeds=embeds).logits)
    with model.trace(TEXT, output_hidden_states=True) as tracer:
        pass
    assert len(tracer.result.hidden_states) == 3


def test_an_unknown_keyword_is_refused_as_by_the_model_itself():
    strict = Fixed(tiny_model())
    with pytest.raises(TypeError) as expected:
        strict(torch.tensor([IDS]), no_such_thing=1)
    with pytest.raises(TypeError) as refused, LanguageModel(strict).trace(IDS, no_such_thing=1):
        pass
    assert str(refused.value) == str(expected.value)


def test_a_keyword_that_the_model_swallows_is_passed_on(model, plain):
    expected = plain(torch.tensor([IDS]), no_such_thing=1).logits
    assert torch.equal(logits_of(model, TEXT, no_such_thing=1), expected)


LENGTHS = ["a", "The Eiffel Tower is in", "Rome and"]


@pytest.mark.parametrize("kind", CONFIGS)
def test_rows_of_a_left_padded_batch_equal_single_runs(kind):
    """Within 2e-6 of the logits: another batch shape adds up in another order."""
    plain = tiny_model(kind)
    tokenizer = tiny_tokenizer()
    model = LanguageModel(plain, tokenizer=tokenizer)
    batch = logits_of(model, LENGTHS)
    for row, text in enumerate(LENGTHS):
        ids = torch.tensor([tokenizer(text)["input_ids"]])
        single = plain(ids).logits[0]
        torch.testing.assert_close(batch[row, -ids.shape[1] :], single, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("kind", CONFIGS)
def test_ragged_ids_are_padded_like_text(kind):
    model = LanguageModel(tiny_model(kind), tokenizer=tiny_tokenizer())
    ids = [tiny_tokenizer()(text)["input_ids"] for text in LENGTHS]
    assert torch.equal(logits_of(model, ids), logits_of(model, LENGTHS))
    assert torch.equal(logits_of(model, [torch.tensor(row) for row in ids]), logits_of(model, LENGTHS))


def test_padding_is_on_the_left_with_positions_from_the_first_real_token(model):
    with model.trace(LENGTHS):
        _, keywords = model.inputs
    ids, mask, positions = (keywords[key] for key in ("input_ids", "attention_mask", "position_ids"))
    width = len(LENGTHS[1])
    assert ids.shape == mask.shape == positions.shape == (3, width)
    assert mask.sum(-1).tolist() == [len(text) for text in LENGTHS]
    assert mask[0].tolist() == [0] * (width - 1) + [1]
    assert positions[2].tolist() == [0] * (width - 8) + list(range(8))
    assert positions[1].tolist() == list(range(width))


def test_prompts_of_equal_length_need_no_padding(model, plain):
    ids = torch.tensor([tiny_tokenizer()(text)["input_ids"] for text in ("Rome", "Bonn")])
    torch.testing.assert_close(logits_of(model, ["Rome", "Bonn"]), plain(ids).logits, rtol=1e-5, atol=2e-6)


def test_the_users_own_mask_and_positions_win(model, plain):
    ids, mask = torch.tensor([IDS]), torch.ones(1, len(IDS), dtype=torch.long)
    mask[0, :3] = 0
    assert torch.equal(logits_of(model, TEXT, attention_mask=mask), plain(ids, attention_mask=mask).logits)
    positions = torch.arange(len(IDS))[None] + 5
    expected = plain(ids, attention_mask=mask, position_ids=positions).logits
    assert torch.equal(logits_of(model, TEXT, attention_mask=mask, position_ids=positions), expected)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("", "has no tokens"),
        (["a", ""], "has no tokens"),
        ([], "no tokens"),
        ([[]], "no tokens"),
        (torch.zeros(0, dtype=torch.long), "no tokens"),
        (torch.ones(1, 3), "must be integers"),
        (torch.ones(1, 3, dtype=torch.bool), "must be integers"),
        (torch.ones(1, 1, 3, dtype=torch.long), r"\[position\] or \[batch, position\]"),
        ([1, "a"], "Token ids must be integers"),
        ([1.5, 2.0], "must be integers"),
        (3.5, "not float"),
        (object(), "not object"),
        ([[1, 2], 3], "Token ids must be integers"),
        ({}, "nothing to run"),
        (b"bytes", "not bytes"),
    ],
)
def test_what_is_no_prompt_is_refused_with_the_reason(model, prompt, message):
    with pytest.raises(PromptError, match=message):
        model.trace(prompt)


def test_no_prompt_at_all_is_refused(model):
    with pytest.raises(PromptError, match="nothing to run"), model.trace():
        pass
    with pytest.raises(PromptError, match="nothing to run"), model.trace() as tracer:
        tracer.invoke({})


def test_an_id_beyond_the_vocabulary_is_refused_with_its_number(model):
    with pytest.raises(PromptError, match=r"Token id 300 .* ids 0 to 256"):
        model.trace([1, 300])
    with pytest.raises(PromptError, match="Token id -1"):
        model.trace([1, -1])


def test_text_without_a_tokenizer_is_refused(plain):
    model = LanguageModel(plain)
    with pytest.raises(PromptError, match="without a tokenizer"):
        model.trace(TEXT)
    with pytest.raises(PromptError, match="need a tokenizer"):
        model.trace([[1, 2], [3]])
    assert torch.equal(logits_of(model, IDS), plain(torch.tensor([IDS])).logits)


def test_a_prompt_error_leaves_no_trace_open(model):
    with pytest.raises(PromptError):
        model.trace("")
    assert logits_of(model, TEXT).shape == (1, len(IDS), 257)
