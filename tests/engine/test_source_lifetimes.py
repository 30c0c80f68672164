"""What is kept: one twin per code object, and nothing of a finished trace."""

import gc
import linecache
import weakref
from contextlib import contextmanager

import pytest
import torch
from torch import nn

from nnsight_lab import NNsight
from nnsight_lab.engine import rewrite
from nnsight_lab.engine.rewrite import rewritten
from tests.engine.source_tools import define

X = torch.ones(3)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU()

    def method(self, x):
        return torch.neg(x) + scaled(x, factor=torch.ones(3))

    def forward(self, x):
        y = self.act(x)
        y = self.method(y)
        closure = y * 2
        y = apply(lambda z: torch.add(z, closure), y)
        return y.view(-1)


def scaled(x, factor):
    return torch.mul(x, factor)


def apply(function, x):
    return function(x)


class Stack(nn.Module):
    def __init__(self, depth=12):
        super().__init__()
        self.h = nn.ModuleList(Layer() for _ in range(depth))

    def forward(self, x):
        for layer in self.h:
            x = layer(x)
        return x


@contextmanager
def without_garbage_collection():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def entries(function):
    return [key for key in rewrite._cache if key[0] == id(function.__code__)]


def test_all_layers_share_one_compiled_twin():
    model = NNsight(Stack())
    codes = []
    for layer in model.h:
        codes.append(rewritten(layer.source._function()).code)
    assert len(set(map(id, codes))) == 1
    assert entries(Layer.forward) == [(id(Layer.forward.__code__), False)]
    model.h[0].source(everything=True).listing
    assert len(entries(Layer.forward)) == 2


def test_repeated_use_adds_nothing():
    model = NNsight(Stack())

    def use():
        for layer in model.h:
            str(layer.source)
            layer.source.self_method_0.source.listing
        with model.trace(X):
            model.h[3].source.self_act_0.output
            model.h[3].source.self_method_0.source.torch_neg_0.output
            model.h[4].source(everything=True).return_0.output

    use()
    cached, callees = len(rewrite._cache), len(model._instruments.callees)
    for _ in range(5):
        use()
    assert len(rewrite._cache) == cached
    assert len(model._instruments.callees) == callees


def test_a_class_made_on_the_fly_can_go():
    gc.collect()
    before = len(rewrite._cache)
    source = "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)"
    net = define(source, name="Net")
    kind, code = weakref.ref(net), weakref.ref(net.forward.__code__)
    model = NNsight(net())
    with model.trace(X):
        model.source.torch_relu_0.output
    filename = net.forward.__code__.co_filename
    del net, model
    linecache.cache.pop(filename)
    gc.collect()
    assert kind() is None
    assert code() is None
    assert len(rewrite._cache) == before


SITES = {
    "a module's operation": lambda model: model.h[1].source.self_act_0.output,
    "its arguments": lambda model: model.h[1].source.self_act_0.inputs[0][0],
    "a method of a tensor": lambda model: model.h[1].source.y_view_0.output,
    "a step into a method": lambda model: model.h[1].source.self_method_0.source.torch_neg_0.output,
    "two levels": lambda model: model.h[1].source.self_method_0.source.scaled_0.source.torch_mul_0.output,
    "a call given a closure": lambda model: model.h[1].source.apply_0.output,
    "a step into it": lambda model: model.h[1].source.apply_0.source.function_0.output,
    "a name": lambda model: model.h[1].source(everything=True).var_closure_0.output,
}


@pytest.mark.parametrize("site", SITES.values(), ids=SITES)
def test_nothing_of_a_finished_trace_is_alive(site):
    model = NNsight(Stack(2))
    seen = []

    def trace():
        with model.trace(torch.ones(3)) as tracer:
            value = site(model)
            seen.append(weakref.ref(value))
        seen.append(weakref.ref(tracer.result))

    with without_garbage_collection():
        for _ in range(4):
            trace()
        assert [ref() for ref in seen] == [None] * len(seen)


def test_nothing_is_alive_after_an_error_inside_an_operation():
    class Fails(nn.Module):
        def forward(self, x):
            y = torch.relu(x)
            return helper(y)

    def helper(y):
        return torch.neg(y).view(7)

    model = NNsight(Fails())
    refs = []

    def trace():
        try:
            with model.trace(torch.ones(3)):
                refs.append(weakref.ref(model.source.torch_relu_0.output))
                refs.append(weakref.ref(model.source.helper_0.source.torch_neg_0.output))
        except RuntimeError:
            return
        pytest.fail("the model did not fail")

    with without_garbage_collection():
        trace()
        assert [ref() for ref in refs] == [None, None]


def test_two_hundred_operation_traces_without_garbage_collection_grow_nothing():
    model = NNsight(Stack(2))

    def trace():
        with model.trace(X):
            model.h[0].source.self_method_0.source.torch_neg_0.output
            model.h[1].source(everything=True).var_y_0.output

    for _ in range(5):
        trace()
    with without_garbage_collection():
        before = len(gc.get_objects())
        for _ in range(200):
            trace()
        assert len(gc.get_objects()) - before < 100
