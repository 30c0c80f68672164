"""A wrapped module can be used wherever the module itself could."""

import copy
import inspect
import pickle

import pytest
import torch
from torch import nn

from nnsight_lab import NNsight
from tests.engine.trace_toys import Toy, recorded, same, sample, toy


@pytest.fixture
def model():
    return NNsight(toy())


def test_calling_the_wrapper_calls_the_module(model):
    x = sample()
    assert same(model(x), model._model(x))


def test_wrapping_leaves_no_mark_on_the_module():
    plain = toy()
    before = {name: sorted(module.__dict__) for name, module in plain.named_modules()}
    model = NNsight(plain)
    assert model.h[1].mlp.source.self_act_0.operation.line == 1
    str(model), dir(model), list(model.named_modules())
    assert {name: sorted(module.__dict__) for name, module in plain.named_modules()} == before


@pytest.mark.parametrize("copying", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_is_independent_and_traces(model, copying):
    x = sample()
    before = model._model(x)
    other = copying(model)
    assert type(other) is NNsight
    assert other._model is not model._model
    with torch.no_grad():
        other._model.embed.weight.zero_()
    with other.trace(x):
        value = other.h[1].output
    assert same(value, recorded(other._model, other._model.h[1], x)[0])
    assert same(model._model(x), before)


def test_a_shallow_copy_shares_the_module(model):
    other = copy.copy(model)
    assert other is not model
    assert other._model is model._model


def test_the_module_is_copied_and_pickled_while_wrapped_and_traced(model):
    x = sample()
    with model.trace(x):
        model.h[0].output
    for other in (copy.deepcopy(model._model), pickle.loads(pickle.dumps(model._model))):
        assert same(other(x), model._model(x))


def test_state_dict_round_trip(model):
    state = model.state_dict()
    assert state.keys() == model._model.state_dict().keys()
    assert all(same(value, model._model.state_dict()[key]) for key, value in state.items())
    other = NNsight(toy(5))
    assert str(other.load_state_dict(state)) == "<All keys matched successfully>"
    assert same(other._model(sample()), model._model(sample()))


def test_parameters_buffers_and_modules_are_the_modules_own(model):
    assert [id(p) for p in model.parameters()] == [id(p) for p in model._model.parameters()]
    assert dict(model.named_parameters()).keys() == dict(model._model.named_parameters()).keys()
    assert [envoy._module for envoy in model.modules()] == list(model._model.modules())
    assert [name for name, _ in model.named_children()] == ["embed", "h", "unused", "head"]


def test_methods_that_return_the_module_return_the_wrapper(model):
    assert model.train() is model
    assert model._model.training
    assert model.eval() is model
    assert not model._model.h[1].training
    assert model.to(torch.float64) is model
    assert model._model.embed.weight.dtype == torch.float64
    assert model.float() is model
    assert model.requires_grad_(False) is model
    assert model.h[1].double() is model.h[1]


def test_a_trace_after_moving_reads_the_moved_model(model):
    model.to(torch.float64)
    x = sample().double()
    with model.trace(x):
        value = model.h[1].output
    assert value.dtype == torch.float64
    assert same(value, recorded(model._model, model._model.h[1], x)[0])


def test_the_signature_of_forward_is_the_modules(model):
    assert inspect.signature(model.forward) == inspect.signature(model._model.forward)
    with model.trace(sample()):
        model.h[1].mlp.source.self_act_0.output
        during = inspect.signature(model._model.h[1].mlp.forward)
    assert during == inspect.signature(toy().h[1].mlp.forward)


def test_an_unknown_keyword_is_refused_as_it_would_be_unwrapped(model):
    with pytest.raises(TypeError) as plain:
        model._model(sample(), temperature=1)
    with pytest.raises(TypeError) as traced, model.trace(sample(), temperature=1):
        pass
    assert str(traced.value) == str(plain.value)


def test_the_wrapper_and_the_module_can_be_compiled(model):
    x = sample()
    expected = model._model(x)
    for compiled in (torch.compile(model._model, backend="eager"), torch.compile(model, backend="eager")):
        assert torch.allclose(compiled(x), expected)
    with model.trace(x):
        value = model.h[1].output
    assert same(value, recorded(model._model, model._model.h[1], x)[0])
    torch._dynamo.reset()


def test_a_compiled_module_can_be_wrapped(model):
    x = sample()
    compiled = NNsight(torch.compile(toy(), backend="eager"))
    with compiled.trace(x) as tracer:
        pass
    assert torch.allclose(tracer.result, model._model(x))
    torch._dynamo.reset()


def test_wrapping_a_wrapper_wraps_its_module(model):
    assert NNsight(model)._model is model._model
    assert NNsight(model.h[1])._model is model._model.h[1]


@pytest.mark.parametrize("wrong", ["gpt2", None, torch.relu, nn.Linear])
def test_what_is_no_module_is_refused(wrong):
    with pytest.raises(TypeError, match=r"wraps a torch\.nn\.Module"):
        NNsight(wrong)


def test_a_wrapped_child_is_given_to_torch_like_a_module(model):
    assert isinstance(model._model, Toy)
    assert sum(p.numel() for p in model.h[0].parameters()) == sum(p.numel() for p in model._model.h[0].parameters())


def test_an_accelerate_hook_around_forward_is_kept():
    from accelerate.hooks import ModelHook, add_hook_to_module

    class Doubles(ModelHook):
        def post_forward(self, module, output):
            return output * 2

    plain = toy()
    add_hook_to_module(plain.h[1].mlp, Doubles())
    model = NNsight(plain)
    x = sample()
    expected = plain(x)
    with model.trace(x) as tracer:
        act = model.h[1].mlp.source.self_act_0.output
        value = model.h[1].mlp.output
    assert same(tracer.result, expected)
    assert same(value, plain.h[1].mlp._old_forward(model._model.h[1].norm(plain.h[0](plain.embed(x), scale=0.5))) * 2)
    assert same(act, recorded(plain, plain.h[1].mlp.act, x)[0])


def test_an_instances_own_forward_is_kept():
    plain = toy()
    original = plain.h[1].forward
    plain.h[1].forward = lambda x, scale=1.0: original(x, scale=scale) + 1
    own = plain.h[1].forward
    model = NNsight(plain)
    x = sample()
    expected = plain(x)
    with model.trace(x) as tracer:
        model.h[1].output
    assert plain.h[1].forward is own
    assert same(tracer.result, expected)
