"""`rename=`: aliases lead to the same modules, and every message keeps the real names."""

import copy
import pickle

import pytest
import torch
from torch import nn

import nnsight_lab as nl
from nnsight_lab import LanguageModel, NNsight, demo

from .trace_toys import Block, Mlp, recorded, same, sample, toy

NAMES = {"h": "layers", "mlp": ["feed_forward", "ff"], "mlp.act": "activation", "head": "unembed"}


@pytest.fixture
def model():
    return NNsight(toy(), rename=NAMES)


def test_an_alias_is_the_module_itself(model):
    assert model.layers is model.h
    assert model.layers[1].feed_forward is model.h[1].mlp is model.layers[1].ff
    assert model.h[2].activation is model.h[2].mlp.act
    assert model.get("layers.0.ff.up") is model.h[0].mlp.up
    assert model.child("unembed") is model.head


def test_values_are_read_and_edited_through_aliases(model):
    x = sample()
    with model.trace(x) as tracer:
        cache = tracer.cache(["layers.2"])
        inner = model.layers[0].activation.output
        model.layers[1].ff.output = torch.zeros(2, 3, 8)
        logits = model.unembed.output
    plain = model._model
    assert same(inner, recorded(plain, plain.h[0].mlp.act, x)[0])
    handle = plain.h[1].mlp.register_forward_hook(lambda *_: torch.zeros(2, 3, 8))
    assert same(logits, plain(x))
    assert same(cache["h.2"].output, recorded(plain, plain.h[2], x)[0])
    handle.remove()
    assert cache["layers.2"] is cache["h.2"]


def test_messages_and_paths_keep_the_real_name(model):
    assert model.layers[0].ff.path == "model.h[0].mlp"
    assert dict(model.named_modules())["h.0.mlp"] is model.layers[0].ff
    with pytest.raises(nl.OutsideTraceError, match=r"model\.h\[0\]\.mlp\.output"):
        model.layers[0].ff.output


def test_the_tree_shows_the_aliases(model):
    lines = str(model).splitlines()
    assert "  .h: ModuleList (also .layers)" in lines
    assert any(line.endswith(".mlp: Mlp (also .feed_forward, .ff)") for line in lines)
    assert any(".act: GELU" in line and "(also model.h[0].activation)" in line for line in lines)
    assert "also" not in str(NNsight(toy()))


def test_aliases_are_offered_by_completion_and_hints(model):
    assert {"layers", "unembed"} <= set(dir(model))
    assert "ff" in dir(model.h[0])
    assert "ff" not in dir(model)
    with pytest.raises(nl.UnknownNameError, match="Did you mean 'layers'"):
        model.layer
    with pytest.raises(nl.UnknownNameError, match=r"'ff'.* It is an alias of mlp, which this module does not have"):
        model.ff


def test_one_mapping_serves_models_that_spell_it_differently():
    names = {"mlp": "ff", "linear": "ff", "nowhere.at.all": "ghost"}
    other = NNsight(nn.ModuleDict({"linear": nn.Linear(2, 2)}), rename=names)
    assert other.ff is other.child("linear")
    assert NNsight(toy(), rename=names).h[0].ff._module.__class__ is Mlp


def test_a_class_and_a_star_name_modules_too():
    model = NNsight(nn.Sequential(toy()), rename={Mlp: "ff", "*.h": "layers"})
    assert model[0].h[1].ff is model[0].h[1].mlp
    assert model.layers is model[0].h


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"h": "head"}, r"'head' for model\.h would hide the child module of that name"),
        ({"h": "output"}, r"would hide nnsight-lab's own \.output"),
        ({"h": "trace"}, r"would hide nnsight-lab's own \.trace"),
        ({"h": "named_modules"}, r"would hide nnsight-lab's own \.named_modules"),
        ({"mlp": "forward"}, r"'forward' for model\.h\[0\]\.mlp would hide the Block's own \.forward"),
        ({"h": "my layers"}, "cannot be an alias"),
        ({"h": "a.b"}, "cannot be an alias"),
        ({"h": "x", "head": "x"}, "'x' would stand for h and head at once"),
        ({Block: "block"}, "'block' would stand for 0 and 1 and 2 at once"),
    ],
)
def test_aliases_that_hide_or_confuse_are_refused(names, message):
    with pytest.raises(ValueError, match=message):
        NNsight(toy(), rename=names)


def test_a_name_may_be_renamed_to_itself():
    model = NNsight(toy(), rename={"mlp": "mlp", "h": "h"})
    assert "also" not in str(model)
    assert model.h[0].mlp._module is model._model.h[0].mlp


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_keep_the_aliases(model, again):
    other = again(model)
    assert other.layers[0].ff.path == "model.h[0].mlp"
    assert other.layers[0].ff is not model.layers[0].ff


def test_a_module_put_in_place_later_is_renamed_too(model):
    model._model.h[1] = Block(8)
    assert model.layers[1].ff._module is model._model.h[1].mlp


def test_a_language_model_is_renamed_before_and_after_its_weights_are_loaded(tmp_path):
    small = demo.load()
    small._model.save_pretrained(tmp_path)
    small.tokenizer.save_pretrained(tmp_path)
    model = LanguageModel(tmp_path, rename={"transformer.h": "layers", "c_proj": "out"})
    layer = model.layers[5]
    with torch.no_grad(), model.trace("The Eiffel Tower"):
        hidden = layer.output
        inner = model.layers[6].mlp.out.output
    with torch.no_grad(), small.trace("The Eiffel Tower"):
        expected = small.transformer.h[5].output
        other = small.transformer.h[6].mlp.c_proj.output
    assert same(hidden, expected)
    assert same(inner, other)
    assert layer.path == "model.transformer.h[5]"
    assert ".h: ModuleList (also model.layers)" in str(model)
    assert copy.deepcopy(model).layers[5].path == "model.transformer.h[5]"
