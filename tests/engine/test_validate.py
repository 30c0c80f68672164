"""`trace(validate=True)`: assignments that do not fit are refused before they take effect."""

import inspect

import pytest
import torch
from torch import nn

import nnsight_lab as nl
from nnsight_lab import NNsight, demo

from .trace_toys import Pair, hooked, same, sample, toy

ROWS = torch.zeros(2, 3, 8)


@pytest.fixture
def model():
    return NNsight(toy())


class Structured(nn.Module):
    """A model whose inner module returns whatever structure it is made with."""

    def __init__(self, make):
        super().__init__()
        self.inner = Makes(make)

    def forward(self, x):
        self.inner(x)
        return x


class Makes(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.make = make

    def forward(self, x):
        return self.make(x)


WRONG = {
    "another shape": (torch.zeros(2, 3, 9), r"shape \[2, 3, 8\], float32 on cpu .* shape \[2, 3, 9\], float32 on cpu"),
    "what would broadcast": (torch.zeros(8), r"given shape \[8\]"),
    "another dtype": (ROWS.double(), "given shape .* float64 on cpu"),
    "another device": (ROWS.to("meta"), "float32 on meta"),
    "a number": (0.0, r"given 0\.0: a number is not spread over the tensor; assign in place"),
    "nothing": (None, "given None"),
    "a tuple": ((ROWS,), "given a tuple of 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_value_that_does_not_fit_is_refused_at_its_line(model, case):
    value, message = WRONG[case]
    with model.trace(sample(), validate=True) as tracer:
        model.h[0].output
        with pytest.raises(nl.ValidationError, match=message) as caught:
            model.h[0].output = value
        result = tracer.result
    assert str(caught.value).startswith("model.h[0].output must be shape [2, 3, 8]")
    assert isinstance(caught.value, TypeError)
    assert same(result, model._model(sample()))


def test_a_value_assigned_ahead_is_refused_when_its_site_is_reached(model):
    ran = []
    handle = model._model.h[2].register_forward_hook(lambda *_: ran.append(2))
    with pytest.raises(nl.ValidationError, match=r"^model\.h\[1\]\.output must be") as caught:
        with model.trace(sample(), validate=True):
            line = inspect.currentframe().f_lineno + 1
            model.h[1].output = torch.zeros(1)
            model.h[2].output
    handle.remove()
    assert f"(assigned at {__file__}, line {line})" in str(caught.value)
    assert ran == []


def test_a_value_assigned_ahead_is_refused_at_the_blocks_end_too(model):
    with pytest.raises(nl.ValidationError, match="assigned at"), model.trace(sample(), validate=True):
        model.h[1].output = torch.zeros(1)


def test_a_value_that_fits_takes_effect(model):
    x, value = sample(), torch.ones(2, 3, 8)
    with model.trace(x, validate=True) as tracer:
        model.h[0].output = value
        model.h[1].mlp.source.self_act_0.output = torch.ones(2, 3, 16)
    plain = model._model
    with hooked(plain.h[0], lambda _: value), hooked(plain.h[1].mlp.act, lambda _: torch.ones(2, 3, 16)):
        assert same(tracer.result, plain(x))


def test_inputs_and_operations_are_checked(model):
    with model.trace(sample(), validate=True):
        with pytest.raises(nl.ValidationError, match=r"^model\.h\[0\]\.input must be shape \[2, 3, 8\]"):
            model.h[0].input
            model.h[0].input = torch.zeros(1)
        with pytest.raises(
            nl.ValidationError, match=r"^model\.h\[0\]\.inputs\[1\]\['scale'\] must be 0\.5 like .* given '2'"
        ):
            model.h[0].inputs = ((ROWS,), {"scale": "2"})
        with pytest.raises(nl.ValidationError, match=r"^model\.h\[0\]\.inputs\[1\] must be a dict of 1"):
            model.h[0].inputs = ((ROWS,), {})
        model.h[0].inputs = ((ROWS,), {"scale": 2})
        with pytest.raises(nl.ValidationError, match=r"^model\.h\[1\]\.mlp\.source\.self_act_0\.output must be"):
            model.h[1].mlp.source.self_act_0.output
            model.h[1].mlp.source.self_act_0.output = torch.zeros(2, 3, 15)


@pytest.mark.parametrize(
    ("make", "value", "where"),
    [
        (lambda x: (x, None), (ROWS[0], None), r"output\[0\] must be shape"),
        (lambda x: (x, None), (ROWS, 1), r"output\[1\] must be None"),
        (lambda x: (x, x), (ROWS,), "output must be a tuple of 2 .* given a tuple of 1"),
        (lambda x: [x], (ROWS,), "output must be a list of 1 .* given a tuple of 1"),
        (lambda x: {"a": x}, {"a": ROWS[:1]}, r"output\['a'\] must be"),
        (lambda x: {"a": [x]}, {"a": [ROWS.bool()]}, r"output\['a'\]\[0\] must be .* bool"),
        (lambda x: Pair(x, 3), Pair(ROWS.int(), 3), r"output\.first must be .* int32"),
    ],
)
def test_structures_are_compared_part_by_part(make, value, where):
    model = NNsight(Structured(make))
    with pytest.raises(nl.ValidationError, match=rf"model\.inner\.{where}"), model.trace(ROWS, validate=True):
        model.inner.output = value


@pytest.mark.parametrize("make", [lambda x: (x, None), lambda x: [x], lambda x: {"a": x}, lambda x: Pair(x, 3)])
def test_the_same_structure_with_other_numbers_passes(make):
    model = NNsight(Structured(make))
    value = make(ROWS + 1)
    with model.trace(ROWS, validate=True) as tracer:
        cache = tracer.cache("inner")
        model.inner.output = value
    assert cache["inner"].output is value


def test_without_the_option_nothing_is_checked(model):
    with model.trace(sample()):
        model.h[2].output = torch.zeros(8)
        logits = model.head.output
    assert logits.shape == (5,)


def test_a_site_of_the_embedded_model_is_named_as_the_user_writes_it():
    model = demo.load()
    with pytest.raises(nl.ValidationError) as caught, model.trace("The Eiffel Tower", validate=True, scan=True):
        model.transformer.h[5].mlp.output = torch.zeros(1, 1, 3)
    width, tokens = model._model.config.n_embd, len(model.tokenizer("The Eiffel Tower").input_ids)
    assert str(caught.value).startswith(
        f"model.transformer.h[5].mlp.output must be shape [1, {tokens}, {width}], float32 on cpu like the site's own "
        "value, but was given shape [1, 1, 3], float32 on cpu"
    )
