"""Mistakes that a newcomer makes: each is an error that says what to write, and nothing is lost or changed."""

import pytest
import torch
from torch import nn

import nnsight_lab as nl
from nnsight_lab import NNsight


def double(x):
    return torch.mul(x, 2)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.step = [double]

    def forward(self, x):
        hidden = self.fc(x)
        chosen = self.step[0]
        hidden = chosen(hidden)
        return torch.relu(hidden)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block()
        self.second = Block()

    def forward(self, x):
        return self.second(self.first(x))


X = torch.ones(1, 3)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return NNsight(Net())


def test_an_operation_is_no_value_to_assign_to(model):
    source = model.first.source
    with pytest.raises(nl.UnknownNameError, match=r"assign to model\.first\.source\.self_fc_0\.output"), model.trace(X):
        source.self_fc_0 = torch.zeros(1, 3)
    with pytest.raises(nl.UnknownNameError, match="no operation 'nonsense'"):
        source.nonsense = 1
    with model.trace(X):
        value = source.self_fc_0.output
    assert torch.equal(value, model._model.first.fc(X))


def test_a_mistyped_attribute_of_an_operation_is_refused(model):
    with pytest.raises(nl.UnknownNameError, match="Did you mean 'output'"), model.trace(X):
        model.first.source.self_fc_0.outptu = torch.zeros(1, 3)


def test_a_tracer_takes_no_attributes(model):
    with pytest.raises(AttributeError), model.trace(X) as tracer:
        tracer.results = 1


def test_an_unknown_module_is_answered_with_the_modules_there_are(model):
    with pytest.raises(nl.UnknownNameError, match=r"Its modules: first, second\."):
        model.transformer
    with pytest.raises(nl.UnknownNameError, match="Did you mean 'first'"):
        model.frist


def test_a_listing_printed_in_a_trace_runs_to_the_call_whose_callee_it_shows(model):
    with model.trace(X):
        inside = model.second.source.chosen_0.source
        listed = str(inside)
        value = inside.torch_mul_0.output
    assert "torch_mul_0 ->  0     return torch.mul(x, 2)" in listed
    plain = model._model
    assert torch.equal(value, plain.second.fc(plain.first(X)) * 2)


def test_a_site_of_another_model_names_that_as_the_reason(model):
    other = NNsight(Net())
    with model.trace(X), pytest.raises(nl.OutsideTraceError, match="belongs to another model"):
        other.first.output


def test_an_error_of_the_model_after_an_assignment_names_the_assignment(model):
    with pytest.raises(RuntimeError) as caught, model.trace(X):
        model.first.output = torch.zeros(1, 7)
    assert caught.value.__notes__ == ["This trace had assigned model.first.output: Tensor [1, 7] float32."]


def test_a_module_list_says_that_it_has_no_forward():
    model = NNsight(nn.ModuleDict({"layers": nn.ModuleList([nn.Linear(3, 3)])}))
    with pytest.raises(nl.SourceUnavailableError, match="is a ModuleList, which has no forward"):
        model.layers.source.listing


def test_operations_are_short_in_a_list_and_long_when_printed(model):
    first = next(iter(model.first.source))
    assert repr(first) == "<operation model.first.source.self_fc_0>"
    assert "-->" in str(first)
