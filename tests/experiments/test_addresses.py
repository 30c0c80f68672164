"""Sites as listings, messages and code write them, and what a wrong one is answered with."""

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from nnsight_lab import NNsight
from nnsight_lab.demo import BRANDENBURG, EIFFEL
from nnsight_lab.experiments import Capture, Patch, Recipe, UnknownSiteError, Zero, sweep
from nnsight_lab.experiments.addresses import read_names
from nnsight_lab.experiments.grid import expand_sites
from nnsight_lab.experiments.sites import parse_site, site_code

from .sweep_models import tiny


@pytest.fixture(scope="module")
def llama():
    return tiny("llama")


@pytest.mark.parametrize(
    ("written", "site"),
    [
        ("transformer.h.5.mlp", "transformer.h.5.mlp"),
        ("model.transformer.h[5].mlp", "transformer.h.5.mlp"),
        ("transformer.h[5].mlp", "transformer.h.5.mlp"),
        ("transformer.h[-1]", "transformer.h.11"),
        ('model.child("transformer").h[5]', "transformer.h.5"),
        ("model.transformer.child('h').child('5').mlp", "transformer.h.5.mlp"),
        ("transformer['h'][5]", "transformer.h.5"),
        ("model.transformer.h[5].mlp.source.self_act_0", "transformer.h.5.mlp.source.self_act_0"),
        (
            "model.transformer.h[5].mlp.source(everything=True).return_0",
            "transformer.h.5.mlp.source.return_0",
        ),
        ("model", ""),
        ("", ""),
    ],
)
def test_every_way_of_writing_a_site_means_the_same(atlas, written, site):
    assert str(parse_site(atlas, written, "site")) == site


def test_what_a_run_prints_can_be_written_into_a_recipe(atlas):
    written = Recipe(base=EIFFEL, steps=[Zero("model.transformer.h[5].mlp"), Capture("model.transformer.h[5].mlp")])
    dotted = Recipe(base=EIFFEL, steps=[Zero("transformer.h.5.mlp")])
    result = written.run(atlas)
    assert torch.equal(result.edited_logits, dotted.run(atlas).edited_logits)
    assert list(result.activations) == ["transformer.h.5.mlp"]
    assert [step.site for step in result.recipe.steps] == ["transformer.h.5.mlp"] * 2
    patched = Recipe(
        base=EIFFEL, steps=[Patch("lm_head", from_prompt="base", from_site="model.lm_head", enabled=False)]
    )
    assert patched.bind(atlas).steps[0].from_site == "lm_head"


@pytest.mark.parametrize(
    ("written", "site"),
    [
        ("model.layers.0", "model.layers.0"),
        ("model.layers[0]", "model.layers.0"),
        ("model.model.layers[0].mlp", "model.layers.0.mlp"),
        ("model.lm_head", "lm_head"),
        ("model", "model"),
        ("model.source.self_lm_head_0", "source.self_lm_head_0"),
        ("model.source.self_norm_0", "model.source.self_norm_0"),
    ],
)
def test_a_child_called_model_comes_before_the_wrapper_of_that_name(llama, written, site):
    assert str(parse_site(llama, written, "site")) == site


def test_the_address_of_every_module_is_read_back(atlas, llama):
    for model in (atlas, llama):
        for path, _ in model._model.named_modules(remove_duplicate=False):
            if path:
                assert str(parse_site(model, site_code(model, parse_site(model, path, "site")), "site")) == path


def test_a_module_called_output_is_a_site():
    module = nn.Sequential()
    module.add_module("output", nn.Linear(2, 2))
    assert str(parse_site(NNsight(module), "output", "site")) == "output"
    assert str(parse_site(NNsight(nn.ModuleDict({"a b": module})), "model['a b'].output", "site")) == "a b.output"


@pytest.mark.parametrize(
    ("site", "says"),
    [
        ("transformer.h.5x", "'transformer.h' (ModuleList) has no submodule '5x'. Did you mean '5'? It has 0 to 11."),
        ("model.transformer.h[12]", "'transformer.h' (ModuleList) has no submodule '12'. It has 0 to 11."),
        ("model.transformer.h[5x]", "'transformer.h' (ModuleList) has no submodule '5x'. Did you mean '5'?"),
        ("transformer.h[2:5].mlp", "'transformer.h[2:5].mlp' is a pattern: a step has one site."),
        ("transformer.h.*", "'transformer.h.*' is a pattern: a step has one site."),
        ("transformer.h.mlp", "It has 0 to 11. Each has 'mlp': did you mean '0.mlp' or, in a sweep, '*.mlp'?"),
        ("transformer.h.5.mpl", "has no submodule 'mpl'. Did you mean 'mlp'?"),
        ("transformer.h.5.xyz", "has no submodule 'xyz'. It has ln_1, attn, ln_2, mlp."),
        ("tranformer.h.5", "the model (GPT2LMHeadModel) has no submodule 'tranformer'. Did you mean 'transformer'?"),
        ("lm_head.weight", "'lm_head' (Linear) has no submodule 'weight'. It has no submodules."),
        ("transformer.h.5.mlp.output", "write 'transformer.h.5.mlp', and io=\"output\"."),
        ("model.transformer.h[5].mlp.input", "write 'transformer.h.5.mlp', and io=\"input\"."),
        (
            "transformer.h.5.mlp.source.self_act_0.output",
            "write 'transformer.h.5.mlp.source.self_act_0', and io=\"output\".",
        ),
        ("transformer.h.5.mlp.source.self_act_0[1]", "one call of an operation is chosen by the step, call=1."),
        ("transformer.h.5.mlp.source", "pairs of .source and an operation's label"),
    ],
)
def test_a_wrong_site_is_answered_with_the_right_ones(atlas, site, says):
    with pytest.raises(UnknownSiteError, match=re.escape(says)):
        parse_site(atlas, site, "site")


@pytest.mark.parametrize(
    ("pattern", "sites"),
    [
        ("model.transformer.h[*].mlp", [f"transformer.h.{i}.mlp" for i in range(12)]),
        ("transformer.h[2:5]", [f"transformer.h.{i}" for i in (2, 3, 4)]),
        ("transformer.h.-2:", ["transformer.h.10", "transformer.h.11"]),
        ("transformer.h[::6].mlp.source.self_act_*", [f"transformer.h.{i}.mlp.source.self_act_0" for i in (0, 6)]),
        ("model.transformer.h[3]", ["transformer.h.3"]),
    ],
)
def test_patterns_are_written_either_way(atlas, pattern, sites):
    assert list(expand_sites(atlas, pattern)) == sites


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("transformer.h.*.mpl", "'transformer.h.0' (GPT2Block) has no submodule 'mpl'. Did you mean 'mlp'?"),
        ("transformer.g.*", "'transformer' (GPT2Model) has no submodule 'g'."),
        ("transformer.h[20:]", "has no submodule '20:'. It has 0 to 11."),
        ("transformer.h.*.mlp.output", "write 'transformer.h.*.mlp', and io=\"output\"."),
        ("transformer.h.*.mlp.source.self_act_0.input", "write 'transformer.h.*.mlp.source.self_act_0', and io="),
        ("transformer.h.*.mlp.source", "pairs of .source and an operation's label"),
    ],
)
def test_a_pattern_that_means_nothing_is_answered_with_names(atlas, pattern, says):
    with pytest.raises(UnknownSiteError, match=re.escape(says)):
        expand_sites(atlas, pattern)


def test_a_sweep_takes_addresses_and_its_cells_run(atlas):
    step = Patch("model.transformer.h[3:5]", from_site="model.transformer.h[2]", positions=[2])
    grid = sweep(
        atlas, step, base=EIFFEL, source=BRANDENBURG, metric=(" Paris", " Berlin"), positions=None, progress=False
    )
    assert grid.axis("site").labels == ("transformer.h.3", "transformer.h.4")
    alone = grid.cell(1).run(atlas).metric.edited
    assert alone == pytest.approx(float(grid.values[1]), abs=1e-3)


names = st.lists(st.text(st.characters(categories=["L", "N"], include_characters="_"), min_size=1), min_size=1)


@given(names)
def test_dots_brackets_and_child_calls_read_alike(parts):
    dotted = ".".join(parts)
    assert read_names(dotted) == tuple(parts)
    assert read_names(parts[0] + "".join(f"[{name!r}]" for name in parts[1:])) == tuple(parts)
    assert read_names(parts[0] + "".join(f'.child("{name}")' for name in parts[1:])) == tuple(parts)
    if all(name.isascii() for name in parts[1:] if name.isdigit()):
        mixed = parts[0] + "".join(f"[{name}]" if name.isdigit() else f".{name}" for name in parts[1:])
        assert read_names(mixed) == tuple(parts)


@pytest.mark.parametrize("text", ["h[", "h]", "a..b", ".a", "h[]", "a b", "h[1]x"])
def test_what_is_no_address_has_no_names(text):
    assert read_names(text) is None
