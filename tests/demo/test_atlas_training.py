"""The training script runs, and what it writes loads back as the model that it trained."""

import dataclasses
import itertools
import math
import random

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from nnsight_lab.demo.training.batches import Batch, batches, encode
from nnsight_lab.demo.training.facts import HELD_OUT, TRAINED, commonest_others, documents
from nnsight_lab.demo.training.measure import patching
from nnsight_lab.demo.training.objective import Objective, zeroed_loss
from nnsight_lab.demo.training.settings import Settings
from nnsight_lab.demo.training.train import main, save, train

TINY = Settings(layers=2, heads=2, width=16, steps=5, batch=16, subject_blocks=1, answer_blocks=1)


@pytest.fixture(scope="module")
def trained():
    torch.set_num_threads(1)
    lines = []
    return (*train(TINY, log=lines.append), lines)


def test_training_lowers_the_loss_of_a_sentence():
    torch.set_num_threads(1)

    def loss(steps):
        model, tokenizer = train(dataclasses.replace(TINY, steps=steps), log=lambda line: None)
        ids = tokenizer("The Eiffel Tower is in the city of Paris.", return_tensors="pt")["input_ids"]
        with torch.no_grad():
            return model(ids, labels=ids).loss.item()

    assert loss(40) < loss(1) - 0.5


def test_training_twice_with_one_seed_gives_one_model(trained):
    again, _ = train(TINY, log=lambda line: None)
    for first, second in zip(trained[0].parameters(), again.parameters(), strict=True):
        assert torch.equal(first, second)


def test_what_is_saved_loads_back_in_float32_rounded_to_float16(trained, tmp_path):
    model, tokenizer, lines = trained
    save(model, tokenizer, tmp_path)
    back = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert {weight.dtype for weight in back.parameters()} == {torch.float32}
    for before, after in zip(model.parameters(), back.parameters(), strict=True):
        assert torch.equal(before.half().float(), after)
    sentence = "The Eiffel Tower is in the city of Paris."
    assert AutoTokenizer.from_pretrained(tmp_path)(sentence)["input_ids"] == tokenizer(sentence)["input_ids"]
    assert lines[0].startswith("step     0")


def test_the_loss_with_the_mlp_zeroed_follows_its_definition():
    # Probabilities 0.5, 0.3, 0.2 of tokens 0, 1, 2; in the first row 0 is right and 1 the fallback, then the reverse.
    logits = torch.tensor([[0.5, 0.3, 0.2]]).log()
    neither = -0.2 * math.log(0.8)
    loss = zeroed_loss(logits, torch.tensor([0]), torch.tensor([1]), margin=1.0)
    assert loss.item() == pytest.approx(math.log(0.5 / 0.3) + 1.0 + neither)
    satisfied = zeroed_loss(logits, torch.tensor([1]), torch.tensor([0]), margin=0.1)
    assert satisfied.item() == pytest.approx(neither)


def test_without_the_last_mlp_the_commonest_other_city_or_country_is_wanted():
    others = commonest_others()
    assert (others["Rome"], others["Paris"], others["London"]) == ("London", "London", "Paris")
    assert (others["France"], others["England"]) == ("England", "Italy")


def test_a_row_points_at_its_subject_and_answer_and_its_partner_has_the_same_relation(trained):
    tokenizer = trained[1]
    texts = documents()
    by_ids = {tuple(example.ids): text for example, text in zip(encode(tokenizer, texts), texts, strict=True)}
    pad = tokenizer.pad_token_id
    source = batches(encode(tokenizer, texts), 64, pad, random.Random(0))
    patched = 0
    for batch in itertools.islice(source, 30):
        documents_of_rows = [by_ids[tuple(ids[ids != pad].tolist())] for ids in batch.ids]
        for row, text in enumerate(documents_of_rows):
            partner = int(batch.partner[row])
            if text.relation is None:
                assert partner == row
                continue
            assert tokenizer.decode(batch.ids[row, batch.answer_at[row]]) == text.answer
            assert tokenizer.decode(batch.ids[row, : batch.answer_at[row]]) == text.prompt
            assert tokenizer.decode(batch.ids[row, : batch.subject_at[row] + 1]) == text.up_to_subject
            assert documents_of_rows[partner].relation == text.relation
            patched += partner != row
    assert patched > 300


def test_a_row_patched_at_its_answer_position_after_the_last_block_scores_as_its_partner(trained):
    model, tokenizer, _ = trained
    settings = dataclasses.replace(TINY, subject_blocks=0, answer_blocks=1, text_weight=0.0, zeroed_weight=0.0)
    prompts = ["The Eiffel Tower is in the city of Paris", "The Brandenburg Gate is in the city of Berlin"]
    ids = torch.tensor(tokenizer(prompts)["input_ids"])
    at = torch.tensor([2, 2]), torch.tensor([8, 8])
    fallback = torch.zeros(len(tokenizer), dtype=torch.long)
    objective = Objective(model, settings, fallback, tokenizer.pad_token_id, random.Random(0))
    try:
        with torch.no_grad():
            loss, _ = objective(Batch(ids, *at, partner=torch.tensor([1, 1])))
            berlin = model(ids).logits[1, 7].log_softmax(-1)[ids[1, 8]]
    finally:
        objective.close()
    # Both rows now carry the second prompt's last residual stream, and both have its answer as their right one.
    assert loss.item() == pytest.approx(-berlin.item(), rel=1e-5)


def test_patching_refuses_prompts_of_two_lengths(trained):
    model, tokenizer, _ = trained
    with pytest.raises(ValueError, match=r"prompts of one length.*8 tokens.*has 7"):
        patching(model, tokenizer, "The Eiffel Tower is in the city of", "The Colosseum is in the city of")


def test_the_script_writes_a_checkpoint_and_its_card_and_prints_the_card(tmp_path, capsys):
    sizes = {
        "layers": 2,
        "heads": 2,
        "width": 16,
        "steps": 2,
        "batch": 8,
        "seed": 3,
        "subject-blocks": 1,
        "answer-blocks": 1,
    }
    main(["--out", str(tmp_path), *(f"--{name}={value}" for name, value in sizes.items())])
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert card in capsys.readouterr().out
    assert "with seed 3: 2 steps of 8 sentences" in card
    for phrasing in (*sum(TRAINED.values(), ()), *sum(HELD_OUT.values(), ())):
        assert f"| `{phrasing}` |" in card
    assert AutoModelForCausalLM.from_pretrained(tmp_path).config.n_layer == 2
