"""`source(everything=True)`: operators, bound names and returned values read, edit and patch like calls."""

import pytest
import torch
from torch import nn

from nnsight_lab import NNsight
from nnsight_lab.engine.rewrite import rewritten
from tests.engine.source_tools import define, labels, observed

X = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
Y = torch.full((2, 2), 7.0)


class Steps(nn.Module):
    def forward(self, x):
        first = x + 1
        second, (third, *rest) = first * 2, [first - 3, x, x]
        for index, part in enumerate(rest):
            first = first + part * index
        with torch.no_grad() as nothing:  # noqa: F841
            pass
        if (walrus := second @ third) is not None:
            first += walrus
        outer = inner = torch.relu(first)  # noqa: F841
        squares = [item**2 for item, _ in [(outer, 0)] if item is not None]
        kept: torch.Tensor = squares[0] / 2
        return kept


def plain(**patched):
    """What `Steps` computes, in plain torch, with the named values replaced; every value by its site."""
    values = {}

    def site(name, value):
        values[name] = patched.get(name, value)
        return values[name]

    first = site("var_first_0", site("op_add_0", X + 1))
    doubled, less = site("op_mul_0", first * 2), site("op_sub_0", first - 3)
    second, third = site("var_second_0", doubled), site("var_third_0", less)
    rest = site("var_rest_0", [X, X])
    for index, part in enumerate(rest):
        number = site(f"var_index_0[{index}]", index)
        part = site(f"var_part_0[{index}]", part)
        times = site(f"op_mul_1[{index}]", part * number)
        first = site(f"var_first_1[{index}]", site(f"op_add_1[{index}]", first + times))
    walrus = site("var_walrus_0", site("op_matmul_0", second @ third))
    first = site("op_add_2", first + walrus)
    both = site("torch_relu_0", torch.relu(first))
    outer = site("var_outer_0", both)
    site("var_inner_0", both)
    item = site("var_item_0", outer)
    squares = site("var_squares_0", [site("op_pow_0", item**2)])
    kept = site("var_kept_0", site("op_truediv_0", squares[0] / 2))
    values["result"] = site("return_0", kept)
    return values


def address(source, name):
    label, _, index = name.removesuffix("]").partition("[")
    return source[label][int(index)] if index else source[label]


def equal(one, other):
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


SITES = [name for name in plain() if name != "result"]


@pytest.mark.parametrize("name", SITES)
def test_each_kind_of_site_reads_and_patches(name):
    model = NNsight(Steps())
    source = model.source(everything=True)
    with model.trace(X) as tracer:
        value = address(source, name).output
        assert equal(value, plain()[name])
    assert torch.equal(tracer.result, plain()["result"])

    replacement = 5 if isinstance(value, int) else [Y, Y] if isinstance(value, list) else Y.clone()
    expected = plain(**{name: replacement})["result"]
    with model.trace(X) as tracer:
        address(source, name).output = replacement
    assert torch.equal(tracer.result, expected)


def test_values_can_be_edited_in_place_and_patched_from_one_site_to_another():
    model = NNsight(Steps())
    source = model.source(everything=True)
    with model.trace(X.clone()) as tracer:
        source.var_first_0.output[:, 0] = 0
    edited = X + 1
    edited[:, 0] = 0
    assert torch.equal(tracer.result, plain(op_add_0=edited)["result"])
    with model.trace(X) as tracer:
        source.var_walrus_0.output = source.var_first_0.output
    assert torch.equal(tracer.result, plain(var_walrus_0=X + 1)["result"])


def test_operands_can_be_read_edited_and_skipped():
    model = NNsight(Steps())
    source = model.source(everything=True)
    with model.trace(X) as tracer:
        (left, right), options = source.op_matmul_0.inputs
        assert equal([left, right], [(X + 1) * 2, X - 2])
        assert options == {}
        source.op_matmul_0.inputs = ((right, right), {})
    third = X - 2
    assert torch.equal(tracer.result, plain(op_matmul_0=third @ third)["result"])
    with model.trace(X) as tracer:
        source.op_truediv_0.skip(Y)
    assert torch.equal(tracer.result, Y)


def test_every_operator_and_its_augmented_form():
    names = ["add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor"]
    signs = ["+", "-", "*", "@", "/", "//", "%", "**", "<<", ">>", "&", "|", "^"]
    for name, sign in zip(names, signs, strict=True):
        for source in (
            f"def forward(x, y):\n    return x {sign} y",
            f"def forward(x, y):\n    x {sign}= y\n    return x",
        ):
            assert f"op_{name}_0" in labels(source, everything=True)
            if name != "matmul":
                assert observed(define(source), True)[0](13, 3) == define(source)(13, 3)
    twin = observed(define("def forward(x, y):\n    x @= y\n    return x"), True)[0]
    assert torch.equal(twin(X.clone(), X), X @ X)


def test_an_augmented_assignment_changes_the_object_it_changed():
    twin, _ = observed(define("def forward(x):\n    y = x\n    y += [2]\n    return y is x"), True)
    items = [1]
    assert twin(items)
    assert items == [1, 2]


class Noting:
    """An object and container that records what is done to it."""

    def __init__(self, log):
        object.__setattr__(self, "log", log)

    def __getattr__(self, name):
        self.log.append(("get", name))
        return 10

    def __setattr__(self, name, value):
        self.log.append(("set", name, value))

    def __getitem__(self, key):
        self.log.append(("get", key))
        return 20

    def __setitem__(self, key, value):
        self.log.append(("set", key, value))


def test_augmented_assignments_evaluate_their_parts_once_and_in_order():
    source = """
    def forward(thing, key, value):
        thing().count += value(1)
        thing()[key(5)] *= value(2)
        thing()[key(1):key(2), ...] -= value(3)
    """
    log = []

    def note(name):
        return lambda *args: (log.append((name, *args)), Noting(log) if name == "thing" else args[0])[1]

    observed(define(source), True)[0](note("thing"), note("key"), note("value"))
    whole = (slice(1, 2), ...)
    assert log == [
        ("thing",), ("get", "count"), ("value", 1), ("set", "count", 11),
        ("thing",), ("key", 5), ("get", 5), ("value", 2), ("set", 5, 40),
        ("thing",), ("key", 1), ("key", 2), ("get", whole), ("value", 3), ("set", whole, 17),
    ]  # fmt: skip


def test_what_an_augmented_assignment_holds_is_let_go_of():
    twin, _ = observed(define("def forward(x, key):\n    x[key] += 1\n    yield"), True)
    running = twin([1], 0)
    next(running)
    assert sorted(running.gi_frame.f_locals) == ["__nnsight_lab_gates__", "__nnsight_lab_tools__", "key", "x"]


def test_names_bound_in_a_class_body_a_global_and_a_nonlocal():
    source = """
    total = 1

    def forward(x):
        global total
        total = x + total
        count = 0

        def inner():
            nonlocal count
            count += 1
            return count

        class Local:
            a, b = x, 2
            a += b

        return total, inner() + inner(), Local.a, sorted(vars(Local))[-2:]
    """
    assert observed(define(source), True)[0](3) == (4, 3, 5, ["a", "b"])


def test_comprehension_targets_are_sites():
    source = "def forward(xs):\n    return [a + b for a, b in xs if a for c in (a, b) if c != b]"
    twin, called = observed(define(source), True)
    assert twin([(1, 2), (0, 5), (3, 4)]) == [3, 7]
    row = ["var_a_0", "var_b_0"]
    hit = [*row, "var_c_0", "op_add_0", "var_c_0"]
    assert called == [*hit, *row, *hit, "return_0"]


def test_what_is_no_name_bound_by_a_value():
    source = """
    def forward(x):
        import math as m
        def g(): pass
        x.a, x[0] = 1, 2
        try:
            pass
        except Exception as e:
            pass
        match x:
            case [y]:
                pass
        z: int
        del x
    """
    assert labels(source, everything=True) == []


def test_the_lines_of_further_sites():
    function = define("def forward(x):\n    y = (\n        x + 1)\n    return (\n        y)")
    lines = {operation.label: operation.line for operation in rewritten(function, True).listing.operations}
    assert lines == {"op_add_0": 1, "var_y_0": 0, "return_0": 2}


def test_a_source_touched_with_everything_before_the_trace_is_observed_from_its_start():
    model = NNsight(nn.Sequential(Steps(), nn.Identity()))
    model[0].source(everything=True).op_add_0
    with model.trace(X):
        model[0].source.torch_relu_0.input
        assert torch.equal(model[0].source(everything=True).var_kept_0.output, plain()["result"])


def test_everything_inside_a_callee():
    class Calls(nn.Module):
        def forward(self, x):
            return shifted(x)

    model = NNsight(Calls())
    with model.trace(X) as tracer:
        inner = model.source.shifted_0.source(everything=True)
        inner.op_add_0.output = Y
    assert torch.equal(tracer.result, Y)


def shifted(x):
    return x + 1
