"""Recipes as data: JSON there and back, and what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnsight_lab.demo import EIFFEL
from nnsight_lab.experiments import (
    KL,
    Add,
    Capture,
    ExperimentError,
    LogitDiff,
    Mean,
    Noise,
    Patch,
    Probability,
    Rank,
    Recipe,
    RecipeError,
    Replace,
    Scale,
    StoredTensor,
    Token,
    TopK,
    UnknownSiteError,
    Zero,
)

names = st.text(min_size=1, max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False)
position = st.one_of(st.integers(-50, 50), names, st.builds(Token, names, occurrence=st.none() | st.integers(0, 5)))
indices = st.lists(st.integers(-50, 50), min_size=1, max_size=4) | st.sampled_from(["0:10,17", "3", "-2:", "::2"])
common = {
    "site": names,
    "io": st.sampled_from(["output", "input"]),
    "element": st.none() | st.lists(st.integers(0, 3) | names, max_size=3),
    "call": st.none() | st.integers(0, 5),
    "enabled": st.booleans(),
}
scope = {
    **common,
    "positions": st.none() | st.lists(position, min_size=1, max_size=4),
    "heads": st.none() | indices,
    "index": st.none() | indices,
}
stored = st.builds(StoredTensor, names, names)
vector = st.lists(numbers, min_size=1, max_size=4)
steps = st.one_of(
    st.builds(Capture, **common),
    st.builds(Zero, **scope),
    st.builds(Mean, over=st.sampled_from(["positions", "batch"]), **scope),
    st.builds(Scale, factor=numbers, **scope),
    st.builds(Noise, std=st.floats(0, 10), seed=st.integers(0, 2**31), **scope),
    st.builds(Add, vector=vector | stored, **scope),
    st.builds(Replace, value=numbers | st.lists(vector, min_size=1, max_size=3) | stored, **scope),
    st.builds(Patch, from_site=st.none() | names, **scope),
)
answers = st.integers(0, 10**6) | names
metrics = st.one_of(
    st.none(),
    st.builds(TopK, st.integers(1, 100)),
    st.builds(LogitDiff, answers, answers),
    st.builds(Probability, answers),
    st.builds(Rank, answers),
    st.just(KL()),
)


@given(
    st.builds(
        Recipe,
        model=st.none() | names,
        base=names | st.lists(st.integers(0, 10**6), max_size=5),
        source=names,
        steps=st.lists(steps, max_size=4),
        metric=metrics,
    )
)
def test_a_recipe_survives_its_json(recipe):
    text = recipe.to_json()
    json.loads(text)
    assert Recipe.from_json(text) == recipe


def test_the_json_says_its_version_and_leaves_defaults_out():
    data = json.loads(Recipe(base="a", steps=[Zero("x", positions=[-1])]).to_json())
    assert data == {"version": 1, "base": "a", "steps": [{"kind": "zero", "site": "x", "positions": [-1]}]}


def test_a_recipe_can_be_kept_in_a_file(tmp_path):
    recipe = Recipe(base="a", steps=[Scale("x", factor=2.0)])
    recipe.save(tmp_path / "r.json")
    assert Recipe.load(tmp_path / "r.json") == recipe


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ('{"version": 2}', "version: .* version 2"),
        ('{"stepz": []}', "unknown field `stepz`"),
        ('{"steps": [{"kind": "zap", "site": "x"}]}', r"steps\[0\].kind: .*'zap'; there are: add, capture, mean"),
        (
            '{"steps": [{"kind": "zero", "site": "x"}, {"kind": "zero", "site": "x", "positions": [1.5]}]}',
            r"^steps\[1\].positions\[0\]: ",
        ),
        ('{"steps": [{"kind": "zero", "site": "x", "heads": "a:b"}]}', r"^steps\[0\]: heads 'a:b' is not an index"),
        ('{"steps": [{"kind": "zero", "site": "x", "positions": []}]}', r"^steps\[0\]: positions is empty"),
        ('{"steps": [{"kind": "scale", "site": "x"}]}', r"^steps\[0\]: .*required field `factor`"),
        ('{"steps": [{"kind": "noise", "site": "x", "std": -1}]}', r"^steps\[0\]: std .* negative"),
        ('{"steps": [{"kind": "capture", "site": "x", "positions": [0]}]}', "unknown field `positions`"),
        ('{"steps": [{"kind": "zero", "site": "x", "generation_step": 1}]}', r"^steps\[0\].generation_step: "),
        ('{"base": "a", "steps": [{"kind": "patch", "site": "x"}]}', r"^steps\[0\].from_prompt: .* no source prompt"),
        ('{"steps": [{"kind": "patch", "site": "x", "from_prompt": "base"}]}', "would change nothing"),
        ('{"metric": {"kind": "top_k", "k": 0}}', "^metric: k is at least 1"),
        ('{"metric": {"kind": "accuracy"}}', "^metric.kind: .* there are: kl, logit_diff"),
    ],
)
def test_what_is_not_valid_is_refused_with_the_field(text, says):
    with pytest.raises(RecipeError, match=says):
        Recipe.from_json(text)


def test_a_recipe_made_in_python_is_checked_like_one_that_is_loaded(atlas):
    with pytest.raises(RecipeError, match=r"steps\[0\].positions\[0\]"):
        Recipe(base="a", steps=[Zero("lm_head", positions=[1.5])]).run(atlas)
    with pytest.raises(RecipeError, match=r"steps\[1\]: a step such as"):
        Recipe(base="a", steps=[Zero("lm_head"), {"kind": "zero"}]).run(atlas)


@pytest.mark.parametrize(
    ("site", "says"),
    [
        ("transformer.hh.0", r"steps\[0\].site: 'transformer' \(GPT2Model\) has no submodule 'hh'.* 'h'"),
        ("transformer.h.0.mlp.source.self_acts_0", r"no operation 'self_acts_0'.*'self_act_0'"),
        ("transformer.h.0.mlp.self_act_0", r"an operation of its forward: transformer.h.0.mlp.source.self_act_0"),
        ("transformer.h.0.mlp.source", "is not a site"),
        ("transformer.h.0.mlp.source.self_act_0.output", "is not a site"),
        (
            "transformer.h.0.attn.source.attention_interface_0.source.torch_nn_functional_softmax_9",
            "has no operation 'torch_nn_functional_softmax_9'",
        ),
        ("transformer.h.0.mlp.source.self_act_0.source.x_0", "calls the module"),
    ],
)
def test_an_unknown_site_is_refused_with_the_nearest_names(atlas, site, says):
    with pytest.raises(UnknownSiteError, match=says):
        Recipe(base=EIFFEL, steps=[Zero(site)]).run(atlas)


def test_a_run_needs_a_model_and_a_prompt(atlas):
    with pytest.raises(ExperimentError, match="names no model"):
        Recipe(base=EIFFEL).run()
    with pytest.raises(ExperimentError, match="base: there is nothing to run"):
        Recipe().run(atlas)
    with pytest.raises(ExperimentError, match="a wrapped model is needed, not GPT2LMHeadModel"):
        Recipe(base=EIFFEL).run(atlas._model)


def test_the_named_model_is_loaded():
    result = Recipe(model="atlas", base=EIFFEL).run()
    assert "".join(result.tokens) == EIFFEL
