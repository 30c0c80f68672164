"""Torch's per-thread switches belong to whoever set them: the model or the body, never the other one."""

import contextlib

import pytest
import torch
from torch import nn

from nnsight_lab import NNsight
from tests.engine.trace_toys import same


def switches():
    return {
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "autocast dtype": torch.get_autocast_dtype("cpu"),
        "dtype": torch.get_default_dtype(),
        "device": str(torch.get_default_device()),
    }


@contextlib.contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


CONTEXTS = {
    "no_grad": torch.no_grad,
    "enable_grad": torch.enable_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "autocast off": lambda: torch.autocast("cpu", enabled=False),
    "default device": lambda: torch.device("meta"),
    "default dtype": lambda: default_dtype(torch.float64),
    "nothing": contextlib.nullcontext,
}


class Inside(nn.Module):
    """Calls its middle part inside a context and notes the switches it sees before, inside and after."""

    def __init__(self, context):
        super().__init__()
        self.first, self.middle, self.last = nn.Identity(), nn.Identity(), nn.Identity()
        self.context = context
        self.seen = []

    def forward(self, x):
        self.seen.append(switches())
        self.first(x)
        with self.context():
            self.seen.append(switches())
            self.middle(x)
            self.seen.append(switches())
        self.seen.append(switches())
        self.last(x)
        self.seen.append(switches())
        return x


@pytest.fixture(autouse=True)
def _thread_as_before():
    before = switches()
    yield
    assert switches() == before


def plain_switches(context):
    model = Inside(context)
    model(torch.ones(1))
    return model.seen


@pytest.mark.parametrize("around", CONTEXTS)
@pytest.mark.parametrize("own", CONTEXTS)
def test_a_pause_inside_a_context_does_not_leak_either_way(own, around):
    with CONTEXTS[around]():
        outer = switches()
        expected = plain_switches(CONTEXTS[own])
        plain = Inside(CONTEXTS[own])
        model = NNsight(plain)
        x = torch.ones(1)
        with model.trace(x):
            model.first.output
            assert switches() == outer
            model.middle.output
            assert switches() == outer
            model.last.output
            assert switches() == outer
        assert switches() == outer
    assert plain.seen == expected


@pytest.mark.parametrize("bodys", CONTEXTS)
@pytest.mark.parametrize("own", CONTEXTS)
def test_a_read_inside_the_bodys_context_does_not_change_the_model(own, bodys):
    expected = plain_switches(CONTEXTS[own])
    plain = Inside(CONTEXTS[own])
    model = NNsight(plain)
    outer = switches()
    with model.trace(torch.ones(1)) as tracer:
        with CONTEXTS[bodys]():
            inner = switches()
            model.first.output
            assert switches() == inner
        assert switches() == outer
        model.middle.output
        assert switches() == outer
        with CONTEXTS[bodys]():
            model.last.output
            assert switches() == inner
            tracer.result
            assert switches() == inner
        assert switches() == outer
    assert plain.seen == expected


@pytest.mark.parametrize("own", CONTEXTS)
@pytest.mark.parametrize("bodys", CONTEXTS)
@pytest.mark.parametrize("how", ["stop", "raise", "model raises", "read raises"])
def test_whatever_is_raised_in_between_each_has_its_own(own, bodys, how):
    model = NNsight(Inside(CONTEXTS[own]))
    if how == "model raises":
        model._model.last.register_forward_hook(lambda *_: 1 / 0)
    expected = {"stop": (), "raise": ValueError, "model raises": ZeroDivisionError, "read raises": RuntimeError}[how]
    outer = switches()
    with contextlib.suppress(expected) if expected else contextlib.nullcontext():
        with model.trace(torch.ones(1)) as tracer:
            with CONTEXTS[bodys]():
                inner = switches()
                model.middle.output
                assert switches() == inner
                if how == "stop":
                    tracer.stop()
                if how == "raise":
                    raise ValueError
                if how == "read raises":
                    model.first.output
                model.last.output
            pytest.fail("nothing was raised")
    assert switches() == outer


def test_a_tracer_made_in_one_mode_and_used_in_another():
    with torch.inference_mode():
        model = NNsight(Inside(torch.no_grad))
        tracer = model.trace(torch.ones(1))
    with tracer:
        model.middle.output
        assert not torch.is_inference_mode_enabled()
    del tracer
    assert not torch.is_inference_mode_enabled()
    assert [seen["inference"] for seen in model._model.seen] == [False] * 5


def test_a_mode_that_the_model_sets_for_good_stays_the_models():
    class Sets(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Identity()

        def forward(self, x):
            torch.set_grad_enabled(False)
            return self.inner(x)

    model = NNsight(Sets())
    with model.trace(torch.ones(1)):
        model.inner.output
        assert torch.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_values_read_under_inference_mode_are_what_the_model_made():
    class Infers(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x):
            with torch.inference_mode():
                return self.inner(x)

    model = NNsight(Infers())
    with model.trace(torch.ones(1, 4)):
        value = model.inner.output
        mine = torch.ones(1, requires_grad=True) * 2
    assert value.is_inference()
    assert mine.requires_grad
    assert same(value, model._model(torch.ones(1, 4)))


def test_two_models_paused_in_different_modes():
    one, two = NNsight(Inside(torch.inference_mode)), NNsight(Inside(torch.no_grad))
    outer = switches()
    with one.trace(torch.ones(1)):
        one.middle.output
        with two.trace(torch.ones(1)):
            two.middle.output
            assert switches() == outer
            one.last.output
            assert switches() == outer
            two.last.output
            assert switches() == outer
    assert one._model.seen == plain_switches(torch.inference_mode)
    assert two._model.seen == plain_switches(torch.no_grad)


def test_saved_tensor_hooks_of_the_model_do_not_see_the_bodys_tensors():
    packed = []

    def pack(value):
        packed.append(tuple(value.shape))
        return value

    class Packs(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Identity()

        def forward(self, x):
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value):
                return self.inner(x).sin()

    model = NNsight(Packs())
    with model.trace(torch.ones(3, requires_grad=True)):
        model.inner.output
        torch.ones(7, requires_grad=True).sin().sum().backward()
    assert packed == [(3,)]
