"""Forwards that are rarely written: every site of them can be read, and the outputs stay the same bit for bit."""

from __future__ import annotations

import enum
import functools
from typing import Any

import pytest
import torch
from torch import nn

from nnsight_lab import NNsight
from nnsight_lab.engine import NotReachedError


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)


class ComplexPattern(Two):
    def forward(self, x):
        match 1 + 2j:
            case 1 + 2j:
                x = self.a(x)
            case _:
                x = self.b(x)
        match {1 + 2j: 3, "k": 4}:
            case {1 + 2j: found, "k": other}:
                x = x * found + other
        return x


class EnumInside(Two):
    def forward(self, x):
        class Kind(enum.Enum):
            ONE = 1
            TWO, THREE = 2, 3

            def double(self):
                value, factor = self.value, 2
                return value * factor

        return self.a(x) * Kind.THREE.double()


class ClassInside(Two):
    def forward(self, x):
        class Counter:
            table = [1, 2]  # noqa: RUF012
            table[0] += 5
            low, high = 3, 4
            for step in range(2):
                low += step

            def __init__(self):
                super().__init__()
                self.total = self.low + self.table[0]

        return self.a(x) * Counter().total + Counter.high


@pytest.mark.parametrize("kind", [ComplexPattern, EnumInside, ClassInside])
@pytest.mark.parametrize("everything", [False, True])
def test_reading_any_site_leaves_the_output_as_it_was(kind: type[nn.Module], everything: bool) -> None:
    torch.manual_seed(0)
    module, x = kind(), torch.randn(2, 4)
    plain = module(x)
    model = NNsight(module)
    labels = model.source(everything=everything).listing.labels
    assert any(label.startswith("self_a") for label in labels)
    for label in labels:
        try:
            with model.trace(x) as tracer:
                getattr(model.source(everything=everything), label).output
                result = tracer.result
        except NotReachedError:
            continue
        assert torch.equal(result, plain), label


def test_names_inside_methods_of_a_local_class_are_sites() -> None:
    model = NNsight(EnumInside())
    with model.trace(torch.ones(1, 4)):
        assert model.source(everything=True).var_factor_0.output == 2


def test_a_label_that_begins_with_underscores_is_an_attribute() -> None:
    model = NNsight(ClassInside())
    assert "__init___0" in model.source.listing.labels
    with model.trace(torch.ones(1, 4)):
        assert model.source.__init___0.output is None


class AttributeDict(dict):
    __getattr__ = dict.__getitem__


def test_an_output_whose_attributes_are_its_keys_is_read() -> None:
    class Returns(nn.Module):
        def forward(self, x):
            return AttributeDict(hidden=x)

    x = torch.ones(1, 4)
    model = NNsight(Returns())
    with model.trace(x):
        value = model.output.save()
    assert value.hidden is x


def test_a_class_as_output_gives_no_attribute_to_other_classes() -> None:
    class Returns(nn.Module):
        def forward(self, x):
            return int

    model = NNsight(Returns())
    with model.trace(torch.ones(1, 4)):
        assert model.output is int
    assert "save" not in type.__dict__


class Helper:
    """No module, but something that calls one."""

    def __init__(self, inner: nn.Module) -> None:
        self.inner = inner

    def run(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) * 2

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) * 3


class ThroughOthers(Two):
    def __init__(self) -> None:
        super().__init__()
        self.helper = Helper(self.a)
        self.cached = functools.cache(self.step)

    def step(self, x, y=0):
        return self.a(x) + y

    def forward(self, x):
        x = self.helper.run(x)
        x = self.helper(x)
        x = self.cached(x)
        x = sum(map(self.a, [x, x + 1]))
        return functools.reduce(self.step, [x, x])


@pytest.mark.parametrize(
    "label", ["self_helper_run_0", "self_helper_0", "self_cached_0", "sum_0", "functools_reduce_0"]
)
def test_a_call_is_read_after_the_module_that_ran_inside_it(label: str) -> None:
    module, x = ThroughOthers(), torch.ones(1, 4)
    a = module.a
    first = a(x) * 2
    second = a(first) * 3
    third = a(second) + 0
    fourth = 0 + a(third) + a(third + 1)
    expected = dict(
        zip(
            ["self_helper_run_0", "self_helper_0", "self_cached_0", "sum_0", "functools_reduce_0"],
            [first, second, third, fourth, a(fourth) + fourth],
            strict=True,
        )
    )
    calls = {"self_helper_run_0": 1, "self_helper_0": 2, "self_cached_0": 3, "sum_0": 5, "functools_reduce_0": 6}
    model = NNsight(module)
    model.source.sum_0
    with model.trace(x):
        inner: Any = None
        for _ in range(calls[label]):
            inner = model.a.output
        value = getattr(model.source, label).output
    assert inner is not None
    assert torch.equal(value, expected[label])


class CallsForward(Two):
    def forward(self, x):
        return self.b(self.a.forward(x))


def test_a_childs_forward_called_directly_is_read_after_an_operation_inside_it() -> None:
    model = NNsight(CallsForward())
    x = torch.ones(2, 4)
    with model.trace(x):
        model.a.source.F_linear_0
        model.source.self_a_forward_0
        inside = model.a.source.F_linear_0.output
        value = model.source.self_a_forward_0.output
    assert torch.equal(inside, model._model.a(x))
    assert torch.equal(value, inside)
