"""Where a module's forward comes from: decorators, partials, methods of every kind, instance attributes, hooks.

Every case lists the innermost body, keeps every wrapper running, and leaves the module as it found it.
"""

import contextlib
import functools
import types

import pytest
import torch
from accelerate.hooks import ModelHook, add_hook_to_module
from torch import nn

from nnsight_lab import NNsight
from nnsight_lab.engine.functions import innermost, rebuild

X = torch.tensor([1.0, -2.0, 3.0])
RELU = torch.tensor([1.0, 0.0, 3.0])


def with_wraps(function):
    @functools.wraps(function)
    def wrapper(self, x, **kwargs):
        return function(self, x, **kwargs) + 1

    return wrapper


def without_wraps(function):
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) + 1

    return wrapper


def wrapper_of_the_same_name(function):
    def forward(*args, **kwargs):
        return function(*args, **kwargs) + 1

    return forward


def counting(start):
    """A decorator with arguments and with state in a closure."""

    def decorate(function):
        count = start

        @functools.wraps(function)
        def wrapper(self, x):
            nonlocal count
            count += 1
            return function(self, x) + count

        return wrapper

    return decorate


class Counting:
    """A decorator written as a class, with state of its own."""

    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function = function
        self.count = 0

    def __get__(self, owner, kind=None):
        return self if owner is None else types.MethodType(self, owner)

    def __call__(self, owner, x):
        self.count += 1
        return self.function(owner, x) + self.count


class Plain:
    """A decorator class without `functools.wraps`."""

    def __init__(self, function):
        self.inner = function

    def __get__(self, owner, kind=None):
        return self if owner is None else functools.partial(self, owner)

    def __call__(self, *args):
        return self.inner(*args) + 1


def decorated(*decorators):
    class Decorated(nn.Module):
        def forward(self, x):
            return torch.relu(x)

    for decorator in reversed(decorators):
        Decorated.forward = decorator(Decorated.forward)
    return Decorated()


def check(module, expected, operation=RELU, label="torch_relu_0"):
    """Listing, reading and editing `label`, while the wrappers give `expected`; nothing is left behind."""
    before = dict(vars(module))
    model = NNsight(module)
    assert label in model.source.listing.labels
    with model.trace(X) as tracer:
        assert torch.equal(getattr(model.source, label).output, operation)
    assert torch.equal(tracer.result, expected)
    with model.trace(X) as tracer:
        getattr(model.source, label).output = X * 0
    edited = tracer.result
    assert vars(module).keys() == before.keys()
    assert vars(module).get("forward") is before.get("forward")
    return edited


@pytest.mark.parametrize(
    "decorators",
    [
        [with_wraps],
        [without_wraps],
        [wrapper_of_the_same_name],
        [Plain],
    ],
)
def test_a_decorator_is_kept_and_run(decorators):
    module = decorated(*decorators)
    assert torch.equal(module(X), RELU + 1)
    assert torch.equal(check(module, RELU + 1), X * 0 + 1)


def test_stacked_decorators():
    stack = [with_wraps, without_wraps, torch.no_grad(), wrapper_of_the_same_name, with_wraps, Plain]
    assert torch.equal(check(decorated(*stack), RELU + 5), X * 0 + 5)


def test_decorators_share_their_state_with_the_original():
    module = decorated(counting(10))
    assert torch.equal(module(X), RELU + 11)
    assert torch.equal(check(module, RELU + 12), X * 0 + 13)
    assert torch.equal(module(X), RELU + 14)


def test_a_decorator_class_shares_its_state_with_the_original():
    module = decorated(Counting)
    assert torch.equal(module(X), RELU + 1)
    assert torch.equal(check(module, RELU + 2), X * 0 + 3)
    assert torch.equal(module(X), RELU + 4)
    assert module.forward.__func__.count == 4


def test_rebuilding_a_decorator_class_makes_one_subclass():
    module = decorated(Counting)
    held = module.forward.__func__
    twins = [rebuild(held, lambda function: function) for _ in range(3)]
    assert len({type(twin) for twin in twins}) == 1
    assert all(isinstance(twin, Counting) for twin in twins)
    assert all(vars(twin) is vars(held) for twin in twins)


def test_torch_decorators():
    module = decorated(torch.no_grad(), torch.autocast("cpu", enabled=False))
    x = X.clone().requires_grad_()
    model = NNsight(module)
    with model.trace(x) as tracer:
        assert not model.source.torch_relu_0.output.requires_grad
        assert torch.is_grad_enabled()
    assert not tracer.result.requires_grad
    assert torch.is_grad_enabled()


def test_a_context_decorator():
    entered = []

    @contextlib.contextmanager
    def noted():
        entered.append("in")
        yield
        entered.append("out")

    check(decorated(noted()), RELU)
    assert entered == ["in", "out"] * 2


def test_partialmethod():
    class Module(nn.Module):
        def scaled(self, scale, x):
            return torch.mul(x, scale)

        forward = functools.partialmethod(scaled, 3)

    assert torch.equal(check(Module(), X * 3, X * 3, "torch_mul_0"), X * 0)


def test_static_and_class_methods():
    class Static(nn.Module):
        @staticmethod
        def forward(half):
            return torch.relu(half.half().float())

    class OfClass(nn.Module):
        scale = 2

        @classmethod
        def forward(cls, x):
            return torch.mul(x, cls.scale)

    check(Static(), RELU)
    check(OfClass(), X * 2, X * 2, "torch_mul_0")
    # `half` is a tensor here, though a module has a method of that name too.
    model = NNsight(Static())
    with model.trace(X):
        assert torch.equal(model.source.half_half_0.output, X.half())


def plain_function(x):
    return torch.relu(x) + 1


def takes_owner(self, x):
    return torch.relu(x) + self.bias


def closing_over(bias):
    def forward(x):
        return torch.relu(x) + bias

    return forward


class Biased(nn.Module):
    bias = 1

    def forward(self, x):
        return x


@pytest.mark.parametrize(
    "forward",
    [
        lambda module: plain_function,
        lambda module: types.MethodType(takes_owner, module),
        lambda module: functools.partial(takes_owner, module),
        lambda module: functools.partial(types.MethodType(takes_owner, module)),
        lambda module: closing_over(1),
        lambda module: with_wraps(lambda_free).__get__(module),
    ],
    ids=["function", "method", "partial", "partial of a method", "closure", "decorated method"],
)
def test_a_forward_set_on_the_instance(forward):
    module = Biased()
    module.forward = forward(module)
    assert torch.equal(check(module, RELU + 1), X * 0 + 1)


def lambda_free(self, x):
    return torch.relu(x)


class Shift(ModelHook):
    def pre_forward(self, module, *args, **kwargs):
        return (args[0] + 1,), kwargs

    def post_forward(self, module, output):
        return output * 2


@pytest.mark.parametrize("append", [False, True])
def test_accelerate_s_hook_runs_and_the_forward_below_it_is_listed(append):
    module = decorated()
    add_hook_to_module(module, Shift())
    if append:
        add_hook_to_module(module, Shift(), append=True)
    expected = module(X)
    shifted = torch.relu(X + 1 + append)
    assert torch.equal(expected, shifted * (4 if append else 2))
    hooked = module.forward
    assert torch.equal(check(module, expected, shifted), X * 0)
    assert module.forward is hooked
    assert torch.equal(module(X), expected)


def test_accelerate_s_hook_on_an_instance_s_forward():
    module = Biased()
    module.forward = plain_function
    add_hook_to_module(module, Shift())
    assert torch.equal(check(module, (torch.relu(X + 1) + 1) * 2, torch.relu(X + 1)), X * 0 + 2)


def test_hooks_and_the_order_of_wrappers_are_those_of_torch():
    module = decorated(with_wraps)
    module.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    module.register_forward_hook(lambda module, args, output: output * 10)
    check(module, (torch.relu(X + 1) + 1) * 10, torch.relu(X + 1))


def test_what_cannot_be_seen_through_is_named():
    for callee, reason in [
        (torch.relu, "implemented in C"),
        (functools.lru_cache(plain_function), "not a Python function"),
        (dict, "a class"),
    ]:
        with pytest.raises(Exception, match=reason):
            innermost(callee)
