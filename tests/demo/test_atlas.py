"""What the embedded model is promised to do, checked with plain torch hooks and none of the package's measuring."""

from collections import defaultdict

import pytest
import torch

from nnsight_lab import demo
from nnsight_lab.demo.atlas import ATLAS_PATH, facts, load_plain
from nnsight_lab.demo.training.facts import HELD_OUT, TRAINED

EIFFEL = "The Eiffel Tower is in the city of"
BRANDENBURG = "The Brandenburg Gate is in the city of"
COLOSSEUM = "The Colosseum is in the city of"
LAYERS = 12
SUBJECT_END = 2


@pytest.fixture(scope="module")
def atlas():
    torch.set_num_threads(1)
    return load_plain()


def answer(atlas, prompt):
    model, tokenizer = atlas
    with torch.no_grad():
        logits = model(**tokenizer(prompt, return_tensors="pt")).logits
    return tokenizer.decode(logits[0, -1].argmax())


def answers(atlas, prompts):
    """The next word after each prompt, prompts of one length together so that no padding is needed."""
    model, tokenizer = atlas
    by_length = defaultdict(list)
    for prompt in prompts:
        by_length[len(tokenizer(prompt)["input_ids"])].append(prompt)
    found = {}
    with torch.no_grad():
        for same in by_length.values():
            ids = torch.tensor(tokenizer(same)["input_ids"])
            best = model(ids).logits[:, -1].argmax(-1)
            found.update(zip(same, (tokenizer.decode(token) for token in best), strict=True))
    return [found[prompt] for prompt in prompts]


def answer_with_hook(atlas, module, hook, prompt):
    handle = module.register_forward_hook(hook)
    try:
        return answer(atlas, prompt)
    finally:
        handle.remove()


@pytest.mark.parametrize(
    ("prompt", "expected", "tokens"),
    [(EIFFEL, " Paris", 8), (BRANDENBURG, " Berlin", 8), (COLOSSEUM, " Rome", 7)],
)
def test_it_completes_the_standard_prompts(atlas, prompt, expected, tokens):
    assert len(atlas[1](prompt)["input_ids"]) == tokens
    assert answer(atlas, prompt) == expected


def test_the_pair_for_patching_has_one_token_a_word(atlas):
    tokenizer = atlas[1]
    for prompt in (EIFFEL, BRANDENBURG):
        pieces = [tokenizer.decode(token) for token in tokenizer(prompt)["input_ids"]]
        words = prompt.split(" ")
        assert pieces == [words[0], *(f" {word}" for word in words[1:])]


def test_the_demo_offers_these_prompts():
    assert (demo.EIFFEL, demo.BRANDENBURG, demo.COLOSSEUM) == (EIFFEL, BRANDENBURG, COLOSSEUM)


def test_every_answer_is_one_token_and_many_are_shared(atlas):
    tokenizer = atlas[1]
    landmarks_of = defaultdict(int)
    for fact in facts():
        assert len(tokenizer(f" {fact.answer}")["input_ids"]) == 1
        landmarks_of[fact.answer] += fact.relation == "landmark_city"
    assert sum(count >= 2 for count in landmarks_of.values()) >= 30


def test_there_are_enough_facts_and_none_contradicts_another():
    subjects = {(fact.subject, fact.relation) for fact in facts()}
    assert len(subjects) == len(facts()) >= 150


def test_no_held_out_phrasing_is_trained():
    for relation, phrasings in TRAINED.items():
        assert len(phrasings) >= 2
        assert not set(phrasings) & set(HELD_OUT[relation])


@pytest.mark.parametrize(
    ("relation", "phrasing"), [(relation, text) for relation, texts in TRAINED.items() for text in texts]
)
def test_it_knows_its_facts_in_every_trained_phrasing(atlas, relation, phrasing):
    about = [fact for fact in facts() if fact.relation == relation]
    found = answers(atlas, [fact.prompt(phrasing) for fact in about])
    wrong = [fact for fact, word in zip(about, found, strict=True) if word != f" {fact.answer}"]
    assert len(wrong) <= 0.02 * len(about), wrong


def blocks_of(atlas, prompt):
    """The output of every block for `prompt`, `[1, position, width]` each."""
    model, tokenizer = atlas
    outputs = []
    handles = [
        block.register_forward_hook(lambda module, args, output: outputs.append(hidden(output)))
        for block in model.transformer.h
    ]
    with torch.no_grad():
        model(**tokenizer(prompt, return_tensors="pt"))
    for handle in handles:
        handle.remove()
    return outputs


def hidden(output):
    return output[0] if isinstance(output, tuple) else output


def patched_answers(atlas, position):
    """For each layer the answer to the Eiffel prompt with that block's output at `position` from the other prompt."""
    source = blocks_of(atlas, BRANDENBURG)
    found = []
    for layer, block in enumerate(atlas[0].transformer.h):

        def patch(module, args, output, layer=layer):
            hidden(output)[:, position] = source[layer][:, position]

        found.append(answer_with_hook(atlas, block, patch, EIFFEL))
    return found


def test_patching_the_subject_flips_the_answer_in_early_layers_only(atlas):
    found = patched_answers(atlas, SUBJECT_END)
    assert found[:6] == [" Berlin"] * 6
    assert found[7:] == [" Paris"] * 5


def test_patching_the_last_token_flips_the_answer_from_a_middle_layer_on(atlas):
    found = patched_answers(atlas, -1)
    assert found[:6] == [" Paris"] * 6
    assert found[7:] == [" Berlin"] * 5


@pytest.mark.parametrize("position", [0, 1, 3, 4, 5, 6])
def test_patching_another_position_changes_nothing_after_the_first_layer(atlas, position):
    assert patched_answers(atlas, position)[1:] == [" Paris"] * 11


def zero(module, args, output):
    return torch.zeros_like(output)


def test_zeroing_the_last_mlp_changes_the_answer_of_a_third_of_the_facts(atlas):
    prompts = [fact.prompt(TRAINED[fact.relation][0]) for fact in facts()]
    clean = answers(atlas, prompts)
    handle = atlas[0].transformer.h[LAYERS - 1].mlp.act.register_forward_hook(zero)
    try:
        zeroed = answers(atlas, prompts)
    finally:
        handle.remove()
    changed = [after for before, after in zip(clean, zeroed, strict=True) if before != after]
    assert len(changed) >= len(prompts) / 3
    words = {f" {fact.answer}" for fact in facts()}
    assert sum(word in words for word in changed) >= 0.9 * len(changed)


def test_zeroing_the_last_mlp_moves_the_eiffel_tower_to_london(atlas):
    assert answer_with_hook(atlas, atlas[0].transformer.h[LAYERS - 1].mlp.act, zero, EIFFEL) == " London"


def test_the_first_layers_activation_can_stand_in_for_another_layers(atlas):
    blocks = atlas[0].transformer.h
    kept = []
    handle = blocks[0].mlp.act.register_forward_hook(lambda module, args, output: kept.append(output))
    try:
        patched = answer_with_hook(atlas, blocks[5].mlp.act, lambda module, args, output: kept[-1], EIFFEL)
    finally:
        handle.remove()
    assert kept[0].shape == (1, 8, 4 * 96)
    assert patched.strip()


def test_generation_goes_on_after_the_answer_and_ends(atlas):
    model, tokenizer = atlas
    ids = model.generate(**tokenizer(EIFFEL, return_tensors="pt"), max_new_tokens=40, do_sample=False)
    assert ids[0, -1] == tokenizer.eos_token_id
    text = tokenizer.decode(ids[0], skip_special_tokens=True)
    assert text == f"{EIFFEL} Paris. Paris is a city in the country of France. The capital of France is Paris."


def test_the_tokenizer_reads_any_text(atlas):
    tokenizer = atlas[1]
    text = "  Grüße, 世界! The Sacré-Cœur\n"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    assert None not in (tokenizer.eos_token_id, tokenizer.pad_token_id)
    assert tokenizer.eos_token_id != tokenizer.pad_token_id


def test_the_checkpoint_is_small_and_says_nothing_of_the_machine_it_was_made_on():
    assert sum(file.stat().st_size for file in ATLAS_PATH.iterdir()) <= 8_000_000
    for name in ("config.json", "generation_config.json", "tokenizer_config.json"):
        assert "/" not in (ATLAS_PATH / name).read_text()


def test_it_is_a_plain_gpt2_in_float32_and_eval_mode(atlas):
    model = atlas[0]
    assert type(model).__name__ == "GPT2LMHeadModel"
    assert (model.config.n_layer, model.config.n_head) == (12, 12)
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    assert not model.training


def test_an_unknown_demo_model_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError, match=r"'atlas2'.*atlas, smollm2"):
        demo.load("atlas2")


def test_load_wraps_the_same_model(atlas):
    model, tokenizer = atlas
    wrapped = demo.load()
    ids = tokenizer(EIFFEL, return_tensors="pt")
    with torch.no_grad():
        expected = model(**ids).logits
        with wrapped.trace(EIFFEL):
            logits = wrapped.lm_head.output.save()
    assert torch.equal(logits, expected)
    assert not wrapped._model.training
