"""Recipes as a person writes them: single entries, reprs, examples, and what is answered to a slip."""

import doctest
import pydoc

import numpy as np
import pytest
import torch

from nnsight_lab import experiments
from nnsight_lab.demo import EIFFEL
from nnsight_lab.experiments import (
    Add,
    Capture,
    ExperimentError,
    LogitDiff,
    Mean,
    Noise,
    Patch,
    Recipe,
    RecipeError,
    Replace,
    Scale,
    Sweep,
    Token,
    TopK,
    Zero,
    sweep,
)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (Zero("a", positions=-1), Zero("a", positions=(-1,))),
        (Zero("a", positions=" Tower"), Zero("a", positions=(" Tower",))),
        (Zero("a", positions=Token(" the", 1)), Zero("a", positions=(Token(" the", 1),))),
        (Zero("a", positions=range(2, 5)), Zero("a", positions=(2, 3, 4))),
        (Zero("a", positions=slice(2, None)), Zero("a", positions=("2:",))),
        (Zero("a", positions=slice(None, None, 2)), Zero("a", positions=("::2",))),
        (Zero("a", positions=torch.tensor([1, 2])), Zero("a", positions=(1, 2))),
        (Zero("a", heads=3, index=np.int64(4)), Zero("a", heads=(3,), index=(4,))),
        (Capture("a", element=0), Capture("a", element=(0,))),
        (Capture("a", element="logits"), Capture("a", element=("logits",))),
        (Add("a", vector=torch.tensor([0.5, 2.0])), Add("a", vector=(0.5, 2.0))),
        (Replace("a", value=np.array([[1.0], [2.0]])), Replace("a", value=[[1.0], [2.0]])),
        (Patch("a", positions=1, from_positions=2), Patch("a", positions=(1,), from_positions=(2,))),
        (Recipe(steps=Zero("a")), Recipe(steps=(Zero("a"),))),
        (Recipe(metric=(" Paris", 5)), Recipe(metric=LogitDiff(" Paris", 5))),
        (Recipe("atlas", "a prompt"), Recipe(model="atlas", base="a prompt")),
    ],
)
def test_a_single_entry_and_arrays_mean_the_tuple(written, meant):
    assert written == meant
    recipe = written if isinstance(written, Recipe) else Recipe(steps=written, source="b")
    assert Recipe.from_json(recipe.to_json()) == recipe


def test_a_sweep_takes_single_entries(atlas):
    grid = sweep(
        atlas,
        Zero("lm_head"),
        base=EIFFEL,
        metric=(" Paris", " Berlin"),
        sites="transformer.h[1:3].attn.c_proj",
        positions=-1,
        logits=" Paris",
        progress=False,
    )
    assert grid.shape == (2, 1)
    assert grid.logits.shape == (2, 1, 1)
    with pytest.raises(RecipeError, match=r'heads: \'0:4\' may be one entry or several: write \("0:4",\)'):
        Sweep(step=Zero("a"), base="a", metric=LogitDiff(0, 1), heads="0:4")


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda model: Recipe(model=model), r"model: the name of a model, not LanguageModel: .*recipe.run\(model\)"),
        (lambda model: Recipe(EIFFEL).run(), r"no name of a model; a prompt goes by its name, base='The Eiffel"),
        (lambda model: Recipe("atlas", [Zero("a")]), r"base: text or token ids, not a step: .* steps=\[...\]"),
        (lambda model: Recipe("atlas", EIFFEL, Zero("a")), r"source: text or token ids, not a step"),
        (lambda model: Recipe(metric=LogitDiff).validate(), r"metric: LogitDiff is a kind of metric; make one"),
        (lambda model: Zero("a", [-1]), r'io is "output" or "input", not \[-1\]; give other fields by name'),
        (lambda model: Zero(5), "site is text"),
        (lambda model: Zero("a", positions=[]), "positions is empty"),
        (lambda model: Zero("a", positions=True) and Recipe(steps=Zero("a", positions=True)).validate(), "positions"),
    ],
)
def test_a_slip_is_answered_with_what_to_write(atlas, write, says):
    with pytest.raises(ValueError, match=says):
        write(atlas)


def test_reprs_leave_defaults_out_and_can_be_pasted(atlas):
    recipe = Recipe(
        base=EIFFEL,
        steps=[
            Zero("transformer.h.5.mlp.source.self_act_0", positions=[Token(" Tower"), -1]),
            Scale("lm_head", factor=2.0),
        ],
    )
    assert repr(recipe) == (
        f"Recipe(base='{EIFFEL}', steps=(Zero(site='transformer.h.5.mlp.source.self_act_0', "
        "positions=(Token(text=' Tower'), -1)), Scale(site='lm_head', factor=2.0)))"
    )
    assert eval(repr(recipe)) == recipe
    bound = recipe.bind(atlas)
    assert bound.fingerprints
    assert repr(bound) == repr(recipe)
    assert repr(TopK()) == "TopK()"
    assert repr(Sweep(step=Zero("a"), base="b", metric=LogitDiff(1, 2))) == (
        "Sweep(step=Zero(site='a'), base='b', metric=LogitDiff(correct=1, wrong=2))"
    )


def test_the_example_of_the_recipe_runs():
    (example,) = doctest.DocTestFinder(recurse=False).find(Recipe, "Recipe", globs={})
    assert len(example.examples) >= 5
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.parametrize("kind", [Capture, Zero, Mean, Scale, Noise, Add, Replace, Patch])
def test_the_examples_of_each_step_are_steps(kind, atlas):
    lines = [line.strip() for line in kind.__doc__.splitlines() if line.strip().startswith(f"{kind.__name__}(")]
    assert lines
    names = {**vars(experiments), "direction": torch.linspace(-1, 1, 96)}
    for line in lines:
        step = eval(line, names)
        recipe = Recipe(base=EIFFEL, source="The Brandenburg Gate is in the city of", steps=step)
        result = recipe.run(atlas, reach=False)
        assert result.sites[0].outcome in ("changed", "captured")


def test_help_teaches():
    text = pydoc.render_doc(Zero, renderer=pydoc.plaintext)
    for part in ("x = 0", "positions=-1", "heads=[3]", 'io="input"'):
        assert part in text
    for part in ("transformer.h[5].mlp", '"2:5"', '" Tower"', "occurrence=1", "source.self_act_0"):
        assert part in experiments.__doc__


def test_the_json_of_single_entries_is_what_was_meant():
    assert '"positions": [\n        -1' in Recipe(steps=Zero("a", positions=-1)).to_json()
    with pytest.raises(ExperimentError, match=r"steps\[0\].positions"):
        Recipe.from_json('{"steps": [{"kind": "zero", "site": "a", "positions": -1}]}')
