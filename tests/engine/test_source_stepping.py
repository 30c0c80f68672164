"""`operation.source`: the operations of what an operation calls, for that call site alone."""

import functools

import pytest
import torch
from torch import nn

from nnsight_lab import (
    CalleeIsModuleError,
    CalleeUnknownError,
    NNsight,
    NotReachedError,
    SourceUnavailableError,
    UnknownNameError,
)

X = torch.tensor([1.0, -2.0, 3.0])


def outer(x):
    return middle(torch.add(x, 1))


def middle(x):
    return inner(torch.mul(x, 2))


def inner(x):
    return torch.relu(x)


def shifted(x, by):
    return torch.add(x, by)


def plus_ten(function):
    def wrapper(*args):
        return function(*args) + 10

    return wrapper


@plus_ten
def decorated(x):
    return torch.relu(x)


@functools.wraps(decorated)
def wrapped(x):
    return decorated(x) * 1


class Halving:
    def __call__(self, x):
        return torch.div(x, 2)


by_five = functools.partial(shifted, by=5)
halve = Halving()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU()
        self.children_ = nn.ModuleList([nn.ReLU(), nn.Tanh()])

    def method(self, x):
        return self.helper(torch.neg(x))

    def helper(self, x):
        return torch.abs(x)

    def forward(self, x):
        a = outer(x)
        b = outer(a)
        c = self.method(b)
        d = by_five(c)
        e = decorated(d)
        f = halve(e)
        g = torch.relu(f)
        h = self.act(g)
        for layer in self.children_:
            h = layer(h)

        def local(y):
            return torch.exp(y)

        return local(h)


def plain():
    a = torch.relu((X + 1) * 2)
    b = torch.relu((a + 1) * 2)
    c = (-b).abs()
    d = c + 5
    e = torch.relu(d) + 10
    f = e / 2
    return {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f, "result": torch.exp(torch.tanh(torch.relu(f)))}


@pytest.fixture
def model():
    return NNsight(Net())


def test_two_levels_into_a_function(model):
    source = model.source
    with model.trace(X) as tracer:
        level = source.outer_0.source
        added = level.torch_add_0.output
        level = level.middle_0.source
        multiplied = level.torch_mul_0.output
        rectified = level.inner_0.source.torch_relu_0.output
        first = source.outer_0.output
    assert torch.equal(added, X + 1)
    assert torch.equal(multiplied, (X + 1) * 2)
    assert torch.equal(rectified, plain()["a"])
    assert torch.equal(first, plain()["a"])
    assert torch.equal(tracer.result, plain()["result"])


def test_only_that_call_site_is_affected(model):
    with model.trace(X):
        model.source.outer_1.source.torch_add_0.output = X * 0
        assert torch.equal(model.source.outer_0.output, plain()["a"])
        assert torch.equal(model.source.outer_1.output, torch.zeros(3))
    with model.trace(X):
        values = [site.source.torch_add_0.output for site in (model.source.outer_0, model.source.outer_1)]
    assert torch.equal(values[0], X + 1)
    assert torch.equal(values[1], plain()["a"] + 1)
    assert torch.equal(outer(X), plain()["a"])


@pytest.mark.parametrize(
    ("site", "label", "value"),
    [
        ("self_method_0", "torch_neg_0", -plain()["b"]),
        ("by_five_0", "torch_add_0", plain()["d"]),
        ("decorated_0", "torch_relu_0", plain()["d"]),
        ("halve_0", "torch_div_0", plain()["f"]),
    ],
)
def test_methods_partials_decorated_functions_and_callable_objects(model, site, label, value):
    operation = model.source[site]
    assert label in operation.source.listing.labels  # listed without a run
    with model.trace(X) as tracer:
        assert torch.equal(operation.source[label].output, value)
    assert torch.equal(tracer.result, plain()["result"])
    with model.trace(X) as tracer:
        operation.source[label].output = X * 0
    assert not torch.equal(tracer.result, plain()["result"])
    with model.trace(X) as tracer:
        pass
    assert torch.equal(tracer.result, plain()["result"])


def test_a_method_of_a_method(model):
    assert model.source.self_method_0.source.self_helper_0.source.listing.labels == ("torch_abs_0",)
    with model.trace(X):
        value = model.source.self_method_0.source.self_helper_0.source.torch_abs_0.output
    assert torch.equal(value, plain()["c"])


def test_a_static_callee_is_listed_before_any_run(model):
    assert str(model.source.outer_0.source) == "\n".join(
        [
            "             * def outer(x):",
            " torch_add_0 ->  0     return middle(torch.add(x, 1))",
            " middle_0    ->  +     ...",
            "                 1 ",
        ]
    ).replace("             * def", "                 * def")
    assert [str(op.operation.label) for op in model.source.outer_0.source.middle_0.source] == ["torch_mul_0", "inner_0"]


def test_a_c_function_says_so(model):
    with pytest.raises(SourceUnavailableError, match=r"relu has no Python source to step into.*in C"):
        model.source.torch_relu_0.source


def test_a_module_names_its_path(model):
    with pytest.raises(CalleeIsModuleError, match=r"model\.source\.self_act_0 calls .*Use model\.act\.source instead"):
        model.source.self_act_0.source
    with pytest.raises(CalleeIsModuleError, match=r"Use model\.children_\[0\]\.source instead"), model.trace(X):
        model.source.layer_0.source.anything_0.output


def test_a_function_that_the_forward_defines_is_listed_with_it(model):
    assert "torch_exp_0" in model.source.listing.labels
    with pytest.raises(SourceUnavailableError, match="local is defined inside the function that is observed"):
        with model.trace(X):
            model.source.local_0.source.torch_exp_0.output
    with model.trace(X) as tracer:
        pass
    assert torch.equal(tracer.result, plain()["result"])


class Chooses(nn.Module):
    def __init__(self):
        super().__init__()
        self.kinds = [first_kind]

    def forward(self, x):
        for kind in self.kinds:
            x = kind(x)
        return x


def first_kind(x):
    return torch.mul(torch.add(x, 1), 2)


def second_kind(x):
    return torch.mul(torch.sub(x, 1), 3)


def test_a_callee_that_only_a_run_can_tell():
    model = NNsight(Chooses())
    with pytest.raises(
        CalleeUnknownError, match=r"model\.source\.kind_0 calls is known only from a run.*inside a trace"
    ):
        print(model.source.kind_0.source)
    with pytest.raises(CalleeUnknownError):
        model.source.kind_0.source.torch_add_0
    with model.trace(X):
        assert torch.equal(model.source.kind_0.source.torch_add_0.output, X + 1)
    assert model.source.kind_0.source.listing.labels == ("torch_add_0", "torch_mul_0")


def test_reading_an_operation_makes_its_callee_known():
    model = NNsight(Chooses())
    with model.trace(X):
        model.source.kind_0.output
    assert model.source.kind_0.source.listing.labels == ("torch_add_0", "torch_mul_0")
    model.kinds[:] = [second_kind]
    with model.trace(X):
        model.source.kind_0.output
    assert model.source.kind_0.source.listing.labels == ("torch_sub_0", "torch_mul_0")


def test_a_callee_that_differs_from_what_the_last_run_called():
    model = NNsight(Chooses())
    with model.trace(X):
        model.source.kind_0.output
    model.kinds[:] = [second_kind]
    with model.trace(X) as tracer:
        assert torch.equal(model.source.kind_0.source.torch_sub_0.output, X - 1)
    assert torch.equal(tracer.result, (X - 1) * 3)


def test_a_callee_that_changes_from_call_to_call():
    model = NNsight(Chooses())
    model.kinds[:] = [first_kind, second_kind, first_kind]
    one = (X + 1) * 2
    two = (one - 1) * 3
    with model.trace(X) as tracer:
        source = model.source.kind_0.source
        assert torch.equal(source.torch_add_0[0].output, X + 1)
        assert torch.equal(source.torch_mul_0[0].output, one)
        assert torch.equal(source.torch_mul_0[1].output, two)
        assert torch.equal(source.torch_add_0[1].output, two + 1)
        assert torch.equal(source.torch_mul_0[2].output, (two + 1) * 2)
    assert torch.equal(tracer.result, (two + 1) * 2)
    model.kinds.pop()
    with pytest.raises(NotReachedError, match=r"call 1 was asked for .*only 1 call"), model.trace(X):
        source = model.source.kind_0.source
        source.torch_add_0[0].output
        source.torch_add_0[1].output
    model.kinds[:] = [first_kind, second_kind]
    with pytest.raises(NotReachedError, match=r"call 1 was asked for .*only 1 call"), model.trace(X):
        source = model.source.kind_0.source
        source.torch_add_0[0].output
        source.torch_add_0[1].output


def test_one_numbered_call_has_no_source_of_its_own():
    model = NNsight(Chooses())
    with pytest.raises(SourceUnavailableError, match=r"kind_0\.source\.<operation>\[i\]"):
        model.source.kind_0[1].source


def test_an_unknown_operation_of_a_callee(model):
    with pytest.raises(UnknownNameError, match=r"no operation 'torch_ad_0'.*torch_add_0"):
        model.source.outer_0.source.torch_ad_0
    chooses = NNsight(Chooses())
    with pytest.raises(UnknownNameError, match=r"no operation 'torch_ad_0'.*torch_add_0"), chooses.trace(X):
        chooses.source.kind_0.source.torch_ad_0.output
    with chooses.trace(X) as tracer:
        pass
    assert torch.equal(tracer.result, (X + 1) * 2)


def test_a_skipped_call_has_no_operations(model):
    with pytest.raises(NotReachedError, match=r"the call of model.source.outer_0 was skipped"), model.trace(X):
        model.source.outer_0.skip(X)
        model.source.outer_0.source.torch_add_0.output


class Recursive(nn.Module):
    def forward(self, x, depth=2):
        if depth:
            x = self.forward(torch.add(x, 1), depth - 1)
        return torch.mul(x, 2)


def test_a_forward_that_calls_itself():
    model = NNsight(Recursive())
    with model.trace(X) as tracer:
        values = [model.source.torch_add_0.output]
    assert torch.equal(values[0], X + 1)
    assert torch.equal(tracer.result, (X + 2) * 8)
    with model.trace(X):
        products = [model.source.torch_mul_0[i].output for i in range(3)]
    assert [torch.equal(p, (X + 2) * 2**n) for n, p in enumerate(products, 1)] == [True] * 3


def factorial(x, n):
    return x if n == 0 else torch.mul(factorial(x, n - 1), n)


class Factorial(nn.Module):
    def forward(self, x):
        return factorial(x, 3)


def test_stepping_into_a_recursive_function():
    model = NNsight(Factorial())
    with model.trace(X) as tracer:
        assert torch.equal(model.source.factorial_0.source.torch_mul_0.output, X * 6)
    assert torch.equal(tracer.result, X * 6)
    with model.trace(X) as tracer:
        inner = model.source.factorial_0.source.factorial_0.source
        assert torch.equal(inner.torch_mul_0.output, X * 2)
    assert torch.equal(tracer.result, X * 6)
