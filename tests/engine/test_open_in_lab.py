"""Modules, listings and operations at the end of a cell say how to open them in the Lab."""

import pytest
from torch import nn

from nnsight_lab import NNsight
from tests.engine.trace_toys import toy


@pytest.fixture
def model():
    return NNsight(toy())


def html(shown):
    return shown._repr_mimebundle_()["text/html"]


def test_a_module_opens_at_its_listing(model):
    assert "model.lab(module=&quot;h[1].mlp&quot;)" in html(model.h[1].mlp)


def test_the_model_opens_as_it_is(model):
    assert "<code>model.lab()</code>" in html(model)


def test_a_listing_opens_at_its_module(model):
    assert "model.lab(module=&quot;h[1].mlp&quot;)" in html(model.h[1].mlp.source)


def test_an_operation_opens_selected(model):
    label = model.h[1].mlp.source.listing.labels[0]
    shown = html(model.h[1].mlp.source[label])
    assert f"model.lab(selection=&quot;h[1].mlp.source.{label}&quot;)" in shown


def test_a_wrapper_of_another_name_is_called_by_it():
    model = NNsight(nn.Sequential(nn.Linear(2, 2)), name="net")
    assert "net.lab(module=&quot;[0]&quot;)" in html(model[0])


def test_the_text_of_a_module_is_its_tree(model):
    assert model.h[1]._repr_mimebundle_()["text/plain"] == str(model.h[1])


def test_a_child_called_lab_is_reached_by_its_name():
    module = nn.Module()
    module.lab = nn.Linear(2, 2)
    model = NNsight(module)
    assert model.child("lab")._module is module.lab
    assert '.child("lab")' in str(model)
    assert callable(model.lab)
