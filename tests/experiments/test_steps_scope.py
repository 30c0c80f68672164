"""Scopes as numbers: positions, indices and the entries they select, against plain Python and boolean masks."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM

from nnsight_lab import LanguageModel
from nnsight_lab.experiments import Recipe, Scale, ScopeError, Token, Zero
from nnsight_lab.experiments.plan import Selection
from nnsight_lab.experiments.scope import index_of, position_axis, view_of
from nnsight_lab.experiments.tokens import resolve_indices, resolve_positions, token_texts, visible

LENGTH = 12
bound = st.none() | st.integers(-15, 15)


def written(start, stop, step=None):
    parts = [start, stop] if step is None else [start, stop, step]
    return ":".join("" if part is None else str(part) for part in parts)


@given(bound, bound, st.none() | st.integers(-4, 4).filter(bool))
def test_a_slice_means_what_it_means_in_python(start, stop, step):
    expected = list(range(LENGTH))[start:stop:step]
    text = written(start, stop, step)
    if expected:
        assert list(resolve_positions([text], (), LENGTH, "positions")) == expected
        assert list(resolve_indices(text, LENGTH, "index", "neurons")) == expected
    else:
        with pytest.raises(ScopeError):
            resolve_positions([text], (), LENGTH, "positions")


@given(st.lists(st.integers(-LENGTH, LENGTH - 1), min_size=1, max_size=6))
def test_numbers_count_from_either_end_and_are_taken_once(numbers):
    expected = list(dict.fromkeys(range(LENGTH)[number] for number in numbers))
    assert list(resolve_positions(numbers, (), LENGTH, "positions")) == expected
    text = ",".join(map(str, numbers))
    assert list(resolve_indices(text, LENGTH, "index", "neurons")) == expected
    assert list(resolve_indices(tuple(numbers), LENGTH, "index", "neurons")) == expected


@given(st.integers() | st.integers(LENGTH, 10**9) | st.integers(max_value=-LENGTH - 1))
def test_a_number_is_a_position_only_inside_the_prompt(number):
    if -LENGTH <= number < LENGTH:
        assert resolve_positions([number], (), LENGTH, "positions") == (number % LENGTH,)
    else:
        with pytest.raises(ScopeError, match=f"no position {number} in a prompt of {LENGTH} tokens"):
            resolve_positions([number], (), LENGTH, "positions")


tokens = st.lists(st.sampled_from([" a", "b", " ab", "ab", "c", ":", "2:5"]), min_size=1, max_size=8)


@given(tokens, st.data())
def test_a_token_is_found_by_its_text_or_refused(texts, data):
    place = data.draw(st.integers(0, len(texts) - 1))
    token = Token(texts[place], occurrence=data.draw(st.none() | st.integers(0, 2)))
    spans = [
        list(range(start, stop))
        for start in range(len(texts))
        for stop in range(start + 1, len(texts) + 1)
        if "".join(texts[start:stop]) == token.text
    ]
    if (token.occurrence is None and len(spans) > 1) or (token.occurrence or 0) >= len(spans):
        with pytest.raises(ScopeError):
            resolve_positions([token], texts, len(texts), "positions")
    else:
        found = resolve_positions([token], texts, len(texts), "positions")
        assert list(found) == spans[token.occurrence or 0]


def test_text_that_looks_like_a_slice_is_one_unless_it_is_a_token():
    texts = ("a", ":", "b")
    assert resolve_positions([":"], texts, 3, "positions") == (0, 1, 2)
    assert resolve_positions([Token(":")], texts, 3, "positions") == (1,)


@given(st.data())
def test_a_selection_selects_the_entries_of_the_product_of_its_axes(data):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    split = data.draw(st.sampled_from([0, *(d for d in (2, 3) if shape[-1] % d == 0)]))
    sizes = [*shape[:-1], split, shape[-1] // split] if split else shape
    axes = tuple(
        data.draw(st.none() | st.lists(st.integers(0, size - 1), min_size=1, unique=True).map(tuple)) for size in sizes
    )
    selection = Selection(axes, split)
    mask = torch.ones(sizes, dtype=torch.bool)
    for axis, numbers in enumerate(axes):
        if numbers is not None:
            alone = torch.zeros(sizes[axis], dtype=torch.bool)
            alone[list(numbers)] = True
            mask &= alone.view([-1 if i == axis else 1 for i in range(len(sizes))])
    value = torch.zeros(shape)
    view = view_of(value, selection)
    view[index_of(selection, view.shape)] = 1
    assert torch.equal(value.bool(), mask.reshape(shape))


def test_the_position_axis_is_the_one_that_grows_with_the_prompt():
    assert position_axis((1, 5, 8), 5, lambda: None, "x") == 1
    assert position_axis((1, 4, 4, 8), 4, lambda: (1, 4, 5, 8), "x") == 2
    assert position_axis((1, 4, 4, 8), 4, lambda: (1, 5, 4, 8), "x") == 1
    assert position_axis((1, 4, 4, 4), 4, lambda: (1, 4, 5, 5), "x") == 2
    with pytest.raises(ScopeError, match="no axis is the position"):
        position_axis((1, 4, 4), 4, lambda: (1, 4, 4), "x")
    with pytest.raises(ScopeError, match="cannot be told"):
        position_axis((1, 4, 4), 4, lambda: None, "x")


@pytest.mark.parametrize(("text", "shown"), [(" a\n", " a\\n"), ("\t", "\\t"), ("é€", "é€"), ("\u200b", "\\u200b")])
def test_control_characters_are_shown_escaped(text, shown):
    assert visible(text) == shown


def test_pieces_of_a_character_are_shown_as_bytes(atlas):
    texts = token_texts(atlas.tokenizer, atlas.tokenizer(" Paris\n€")["input_ids"])
    assert texts[0] == " Paris"
    assert texts[1] == "\\n"
    assert "".join(texts[2:]) == "\\xe2\\x82\\xac"


@pytest.fixture(scope="module")
def grouped():
    """Two heads of keys and values for four of queries."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    return LanguageModel(LlamaForCausalLM(config).eval())


@pytest.mark.parametrize(("site", "head", "columns"), [("q_proj", 3, slice(24, 32)), ("k_proj", 1, slice(8, 16))])
def test_grouped_queries_have_heads_of_their_own(grouped, site, head, columns):
    path = f"model.layers.0.self_attn.{site}"
    module = grouped._model.get_submodule(path)

    def hook(_module, _args, output):
        output = output.clone()
        output[..., columns] *= 3.0
        return output

    handle = module.register_forward_hook(hook)
    with torch.no_grad():
        expected = grouped._model(input_ids=torch.tensor([[3, 1, 4, 1]])).logits[:, -1]
    handle.remove()
    found = Recipe(base=[3, 1, 4, 1], steps=[Scale(path, factor=3.0, heads=[head])]).run(grouped)
    assert torch.equal(found.edited_logits, expected)
    with pytest.raises(ScopeError, match="no axis of 4 or 2 heads"):
        Recipe(base=[3, 1], steps=[Zero("model.layers.0.mlp.gate_proj", heads=[0])]).run(grouped)
