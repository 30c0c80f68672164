"""Copies made while a forward is observed are modules of their own; traces keep to their threads and leave nothing."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import sys
import threading
from collections.abc import Callable

import pytest
import torch
from greenlet import greenlet
from torch import nn

from nnsight_lab import NNsight
from nnsight_lab.engine import TraceStateError

from .trace_toys import sample, toy


@pytest.mark.parametrize("copying", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_a_copy_of_an_observed_module_runs_on_its_own_weights(copying: Callable[[nn.Module], nn.Module]) -> None:
    module, x = toy(), sample()
    model = NNsight(module)
    with model.trace(x):
        model.h[0].mlp.source.self_act_0.output
        copied = copying(module)
    assert torch.equal(copied(x), module(x))
    with torch.no_grad():
        copied.h[0].mlp.up.weight.add_(1)
    other = toy()
    with torch.no_grad():
        other.h[0].mlp.up.weight.add_(1)
    assert torch.equal(copied(x), other(x))
    assert not torch.equal(copied(x), module(x))


def test_a_copy_keeps_a_forward_that_was_set_on_the_instance() -> None:
    module, x = toy(), sample()

    def forward(hidden):
        return torch.tanh(hidden)

    module.h[0].mlp.forward = forward
    model = NNsight(module)
    with model.trace(x):
        model.h[0].mlp.source.torch_tanh_0.output
        copied = copy.deepcopy(module)
    assert copied.h[0].mlp.forward is forward
    assert module.h[0].mlp.forward is forward
    assert torch.equal(copied(x), module(x))


@pytest.mark.parametrize("started", [False, True])
def test_sites_asked_for_in_another_thread_are_refused(started: bool) -> None:
    module, x = toy(), sample()
    model = NNsight(module)

    async def body() -> None:
        with model.trace(x):
            if started:
                model.h[0].output
            await asyncio.to_thread(lambda: model.h[1].output)

    with pytest.raises(TraceStateError, match="opened in another thread"):
        asyncio.run(body())
    assert all("_compiled_call_impl" not in part.__dict__ for part in module.modules())
    with model.trace(x):
        value = model.output
    assert torch.equal(value, module(x))


def test_a_generator_continued_in_another_thread_says_so_and_cleans_up() -> None:
    module, x = toy(), sample()
    model = NNsight(module)

    def body():
        with model.trace(x):
            yield model.h[0].output
            yield model.h[1].output

    values = body()
    next(values)
    found: list[BaseException] = []

    def go_on() -> None:
        try:
            next(values)
        except TraceStateError as error:
            found.append(error)

    thread = threading.Thread(target=go_on)
    thread.start()
    thread.join()
    assert "opened in another thread" in str(found[0])
    assert all("_compiled_call_impl" not in part.__dict__ for part in module.modules())


def test_a_thread_that_traced_leaves_nothing_when_it_ends() -> None:
    module, x = toy(), sample()
    model = NNsight(module)

    def trace() -> None:
        with model.trace(x):
            model.h[0].output

    def greenlets() -> int:
        gc.collect()
        return sum(issubclass(type(value), greenlet) for value in gc.get_objects())

    def in_threads(count: int) -> None:
        for _ in range(count):
            thread = threading.Thread(target=trace)
            thread.start()
            thread.join()

    in_threads(5)
    before = greenlets()
    in_threads(20)
    assert greenlets() < before + 10  # the last of them may still be ending


def test_threads_that_trace_one_module_from_the_start_share_its_taps() -> None:
    x = sample()
    expected = toy(depth=4)(x)
    found: list[bool] = []

    def trace(module: nn.Module, together: threading.Barrier) -> None:
        model = NNsight(module)
        together.wait()
        for _ in range(3):
            with model.trace(x):
                model.h[0].output
                model.h[1].mlp.source.self_act_0.output
                value = model.output
            found.append(torch.equal(value, expected))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(15):
            module = toy(depth=4)
            together = threading.Barrier(6)
            threads = [threading.Thread(target=trace, args=(module, together)) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for part in module.modules():
                assert not {"_compiled_call_impl", "forward"} & set(part.__dict__)
    finally:
        sys.setswitchinterval(interval)
    assert found == [True] * (15 * 6 * 3)
