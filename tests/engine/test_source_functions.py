"""The rewritten function is the original, observed: each construct of Python, with expected values written by hand."""

import asyncio
import inspect

import pytest
import torch
from torch import nn

from nnsight_lab import NNsight
from tests.engine import source_annotated
from tests.engine.source_tools import define, observed


def same(function, *args, calls, **kwargs):
    """The value of the twin, after checking it against the original's and the operations that it called."""
    twin, called = observed(function)
    value = twin(*args, **kwargs)
    assert value == function(*args, **kwargs)
    assert called == calls.split()
    return value


def traced(module, x, site, **kwargs):
    """The module's result in a trace that reads its operation `site`, and that operation's value."""
    model = NNsight(module)
    with model.trace(x, **kwargs) as tracer:
        value = getattr(model.source, site).output
    return tracer.result, value


X = torch.tensor([1.0, -2.0, 3.0])


def double(x):
    return x * 2


def test_closures_are_shared_both_ways():
    count = 0

    def forward(x):
        nonlocal count
        count += double(x)
        return count

    twin, called = observed(forward)
    assert twin(1) == 2
    assert forward(1) == 4
    assert twin(1) == 6 == count
    assert called == ["double_0", "double_0"]


def test_an_empty_closure_cell_stays_empty_until_it_is_filled():
    def make():
        def forward(x):
            return later(x)

        twin, _ = observed(forward)
        with pytest.raises(NameError, match="later"):
            twin(1)

        def later(x):
            return x + 1

        return twin

    assert make()(1) == 2


class Base(nn.Module):
    def forward(self, x):
        return torch.relu(x)


class Child(Base):
    __factor = 3

    def __scaled(self, x):
        return torch.mul(x, self.__factor)

    def forward(self, x):
        def inner(y):
            return self.__scaled(y)

        return inner(super().forward(x)) + super().forward(x)

    def with_class(self, x):
        return double(x) if __class__ is Child else None


def test_super_and_private_names():
    result, value = traced(Child(), X, "forward_1")
    assert torch.equal(value, torch.tensor([1.0, 0.0, 3.0]))
    assert torch.equal(result, torch.tensor([4.0, 0.0, 12.0]))
    assert observed(Child.with_class)[0](Child(), 2) == 4


def test_private_names_in_a_function_that_a_method_defines():
    class Holder:
        __secret = 5

        def make(self):
            def inner():
                return double(self.__secret)

            return inner

    assert same(Holder().make(), calls="double_0") == 10


def test_inherited_forwards_and_mixins():
    class Mixin:
        def forward(self, x):
            return torch.add(super().forward(x), 1)

    class Both(Mixin, Base):
        pass

    class Heir(Child):
        pass

    result, value = traced(Both(), X, "forward_0")
    assert torch.equal(value, torch.tensor([1.0, 0.0, 3.0]))
    assert torch.equal(result, torch.tensor([2.0, 1.0, 4.0]))
    assert torch.equal(traced(Heir(), X, "inner_0")[1], torch.tensor([3.0, 0.0, 9.0]))


MUTABLE = []


def every_kind(a, /, b, c=MUTABLE, *rest, d, e=double, **more):
    c.append(e(a))
    return a, b, list(c), rest, d, sorted(more.items())


def test_every_kind_of_parameter_and_the_same_default_objects():
    MUTABLE.clear()
    twin, called = observed(every_kind)
    assert inspect.signature(twin) == inspect.signature(every_kind)
    assert twin(1, 2, d=3) == (1, 2, [2], (), 3, [])
    assert MUTABLE == [2]
    assert twin(1, 2, [0], 8, 9, d=3, e=abs, f=4) == (1, 2, [0, 1], (8, 9), 3, [("f", 4)])
    assert called == ["e_0", "c_append_0", "list_0", "more_items_0", "sorted_0"] * 2
    assert twin.__defaults__[0] is MUTABLE
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'd'"):
        twin(1, 2)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        twin(a=1, b=2, d=3)


def test_comprehensions_generators_and_walrus():
    def forward(xs):
        squares = [double(x) for x in xs if (last := abs(x)) > 1]
        table = {double(x): {abs(y) for y in xs} for x in xs}
        lazy = (double(x) + last for x in squares)
        return squares, table, list(lazy), last

    twin, called = observed(forward)
    xs = [-1, 2]
    assert twin(xs) == ([4], {-2: {1, 2}, 4: {1, 2}}, [10], 2)
    once = ["abs_0", "abs_0", "double_0"]
    assert called == [*once, *["double_1", "abs_1", "abs_1"] * 2, "list_0", "double_2"]


def test_a_forward_that_yields():
    def forward(xs):
        received = 0
        try:
            for x in xs:
                received = yield double(x) + (received or 0)
        finally:
            closed.append(abs(-1))

    closed = []
    twin, called = observed(forward)
    running = twin([1, 2, 3])
    assert called == []
    assert next(running) == 2
    assert running.send(10) == 14
    running.close()
    assert closed == [1]
    assert called == ["double_0", "double_0", "abs_0", "closed_append_0"]


def test_yield_from_and_recursion():
    def walk(tree):
        if isinstance(tree, int):
            yield tree
        else:
            for part in tree:
                yield from walk(part)

    assert list(observed(walk)[0]([1, [2, [3]]])) == [1, 2, 3]
    assert observed(countdown)[0](3) == [3, 2, 1, 0]
    assert observed(define("def forward(n):\n    return n and forward(n - 1)"))[0](3) == 0


def countdown(n):
    return [n] if n == 0 else [n, *countdown(n - 1)]


def test_try_with_match_and_loops():
    class Silent:
        def __enter__(self):
            return [1]

        def __exit__(self, *error):
            return error[0] is KeyError

    def forward(x):
        path = []
        for case in x:
            try:
                match case:
                    case {"key": value}:
                        path.append(double(value))
                    case [first, *_] if abs(first) > 1:
                        path.append(first)
                    case int():
                        raise ValueError(str(case))
                    case _:
                        continue
            except ValueError as error:
                path.append(str(error))
            else:
                path.append("fine")
            finally:
                path.append("done")
        else:
            with Silent() as held, Silent():
                path.append(len(held))
                raise KeyError
        while len(path) < 12:
            path.append(None)
            if path[-2] is None:
                break
        del x
        return path

    expected = [2, "fine", "done", -2, "fine", "done", "7", "done", "done", 1, None, None]
    cases = [{"key": 1}, [-2], 7, None]
    assert forward(cases) == expected
    assert observed(forward)[0](cases) == expected


def test_an_async_forward():
    async def forward(xs):
        values = [await later(x) async for x in each(xs)]
        async with Room() as room:
            return values, room

    async def later(x):
        await asyncio.sleep(0)
        return x + 1

    async def each(xs):
        for x in xs:
            yield x

    class Room:
        async def __aenter__(self):
            return "inside"

        async def __aexit__(self, *error):
            pass

    twin, called = observed(forward)
    assert asyncio.run(twin([1, 2])) == ([2, 3], "inside")
    assert called == ["each_0", "later_0", "later_0", "Room_0"]


factor = 2


def scaled(x):
    global factor
    factor = abs(factor)
    return torch.mul(x, factor) + double(x)


class Scaled(nn.Module):
    def forward(self, x):
        return scaled(double(x))


def test_globals_are_looked_up_live(monkeypatch):
    model = NNsight(Scaled())
    with model.trace(X) as tracer:
        assert torch.equal(model.source.double_0.output, X * 2)
    assert torch.equal(tracer.result, X * 8)
    monkeypatch.setitem(globals(), "double", lambda x: x * 3)
    monkeypatch.setitem(globals(), "factor", -5)
    with model.trace(X) as tracer:
        assert torch.equal(model.source.scaled_0.source.torch_mul_0.output, X * 15)
    assert torch.equal(tracer.result, X * 24)
    assert factor == 5


class Frames(nn.Module):
    def forward(self, x, probe="x + offset"):
        offset = 1
        seen = sorted(locals())
        names = dir()
        value = eval(probe)
        exec("box.append(offset)", {"box": self.__dict__["box"], "offset": offset})
        rest = [sorted(locals()), sorted(vars()), globals() is x.new_ones, vars(self)["training"], "box" in dir(self)]
        return value, seen, names, rest, globals()["__name__"]


def frames():
    module = Frames()
    module.box = []
    return module


@pytest.mark.parametrize("site", ["locals_0", "dir_0", "eval_0", "exec_0", "vars_0", "vars_1", "globals_1", "sorted_0"])
def test_functions_that_read_the_frame_see_the_forward_s_own(site):
    plain = frames()(X)
    model = NNsight(frames())
    with model.trace(X) as tracer:
        getattr(model.source, site).output
    value, *rest = tracer.result
    assert torch.equal(value, X + 1)
    assert rest == list(plain[1:])
    assert rest[0] == ["offset", "probe", "self", "x"]
    assert model.box == [1]


def test_the_arguments_of_a_frame_reader_can_be_edited():
    model = NNsight(frames())
    with model.trace(X) as tracer:
        assert model.source.eval_0.inputs == (("x + offset",), {})
        model.source.eval_0.input = "x * 3 + offset"
    assert torch.equal(tracer.result[0], X * 3 + 1)
    with model.trace(X) as tracer:
        model.source.dir_0.skip(["nothing"])
    assert tracer.result[2] == ["nothing"]


def test_a_local_function_named_like_a_frame_reader_is_an_ordinary_callee():
    class Module(nn.Module):
        def forward(self, x, dir=torch.abs):
            return dir(x)

    model = NNsight(Module())
    with model.trace(X) as tracer:
        assert torch.equal(model.source.dir_0.input, X)
        model.source.dir_0.input = X * 2
    assert torch.equal(tracer.result, torch.tensor([2.0, 4.0, 6.0]))


def test_f_strings_star_arguments_and_chained_comparisons():
    def forward(*xs, **options):
        text = f"{double(xs[0])!r:>{abs(-4)}}|{'{'}{max(*xs, **options)}"
        return text if 0 < abs(xs[0]) < max(xs) else ""

    assert same(forward, 1, 3, calls="double_0 abs_0 max_0 abs_1 max_1") == "   2|{3"
    assert observed(forward)[0](1, 3, key=lambda x: -x) == "   2|{1"


def test_assertions_under_pytest_s_rewriting():
    def forward(x):
        assert double(x) > 1, str(x)
        return double(x)

    assert same(forward, 1, calls="double_0 double_1") == 2
    with pytest.raises(AssertionError):
        observed(forward)[0](0)


def test_postponed_annotations():
    twin, _ = observed(source_annotated.forward)
    assert twin(2) == 4
    assert twin.__annotations__ == {"x": "NotDefinedAnywhere", "return": "Nor[This]"}


def test_nested_classes_and_lambdas():
    def forward(x):
        def inner():
            return Local.__qualname__, inner.__qualname__

        class Local(dict):
            size = double(x)

            def get_size(self):
                return super().get("size", abs(-self.size))

        pick = lambda local, extra=1: local.get_size() + extra  # noqa: E731
        return pick(Local()), inner(), Local.get_size.__qualname__

    calls = "double_0 Local_0 pick_0 local_get_size_0 abs_0 get_0 inner_0"
    value, names, method = same(forward, 2, calls=calls)
    here = "test_nested_classes_and_lambdas.<locals>.forward.<locals>"
    assert value == 5
    assert (*names, method) == (f"{here}.Local", f"{here}.inner", f"{here}.Local.get_size")


def test_names_metadata_and_attributes_of_the_original():
    def forward(x) -> int:
        "A text."
        return double(x)

    forward.mark = [1]
    twin, _ = observed(forward)
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__", "__dict__"):
        assert getattr(twin, name) == getattr(forward, name)
    assert twin.mark is forward.mark
    assert twin.__globals__ is forward.__globals__


def test_the_signature_of_forward_while_a_trace_is_open():
    class Module(nn.Module):
        def forward(self, x, *, scale: float = 2.0, **rest):
            return torch.mul(x, scale)

    module = Module()
    expected = inspect.signature(module.forward)
    model = NNsight(module)
    with model.trace(X):
        model.source.torch_mul_0.output
        assert inspect.signature(module.forward) == expected
        assert list(expected.parameters) == ["x", "scale", "rest"]
    assert "forward" not in vars(module)


def test_lambdas_kept_on_the_module():
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = lambda x: torch.relu(x)

        def forward(self, x):
            return self.act(x)

    assert torch.equal(traced(Module(), X, "self_act_0")[1], torch.relu(X))


class Mangled(nn.Module):
    def __helper(self, x):
        return torch.neg(x)

    def forward(self, x):
        return self.__helper(x)


def test_a_private_method_can_be_stepped_into():
    model = NNsight(Mangled())
    with model.trace(X):
        assert torch.equal(model.source.self___helper_0.source.torch_neg_0.output, -X)


def test_a_lone_starred_argument_is_iterated_after_the_keywords():
    def forward(xs):
        def numbers():
            for x in xs:
                yield note(x)

        return collect(*numbers(), last=note("keyword"))

    def note(x):
        noted.append(x)
        return x

    def collect(*args, last):
        return [*args, last]

    noted = []
    assert forward([1, 2]) == observed(forward)[0]([1, 2]) == [1, 2, "keyword"]
    assert noted == ["keyword", 1, 2] * 2
