"""An interrupt at any place inside the engine leaves the model, and the traces that follow, as if it had not come.

A profile function raises KeyboardInterrupt at the n-th entry of a function of the engine or return of a C call made
there, which is where Python lets interrupts in; every n is tried.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

import nnsight_lab.engine as engine
from nnsight_lab import NNsight

from .trace_toys import sample, toy

ENGINE = str(Path(engine.__file__).parent)


class Interrupting:
    """Raises KeyboardInterrupt at the n-th place; `met` tells whether there were as many."""

    def __init__(self, n: int) -> None:
        self.left = n
        self.met = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(ENGINE) or event not in ("call", "c_return"):
            return
        if event == "call" and code.co_name == "__exit__":  # no context manager can help an interrupt just before it
            return
        if argument in (sys.setprofile, gc.collect):
            return
        self.left -= 1
        if self.left == 0:
            self.met = True
            raise KeyboardInterrupt


def read_modules(model: NNsight, x: torch.Tensor) -> None:
    with model.trace(x):
        model.h[0].output
        model.h[1].mlp.output = torch.zeros(2, 3, 8)
        model.head.output


def read_operations(model: NNsight, x: torch.Tensor) -> None:
    with model.trace(x):
        model.h[0].source.self_mlp_0.output
        model.h[1].mlp.source.self_act_0.output


def switch_modes(model: NNsight, x: torch.Tensor) -> None:
    with torch.no_grad(), model.trace(x):
        model.h[0].output
        torch._C._set_grad_enabled(True)
        model.h[1].output
        torch._C._set_grad_enabled(False)


def read_nested(model: NNsight, x: torch.Tensor) -> None:
    with model.trace(x):
        model.h[0].output
        with model.trace(x):
            model.h[1].source.self_mlp_0.output
        model.h[1].output


@pytest.mark.parametrize("body", [read_modules, read_operations, switch_modes, read_nested])
@pytest.mark.parametrize("fresh", [True, False])
def test_an_interrupt_anywhere_leaves_nothing_behind(body: Callable[..., None], fresh: bool) -> None:
    module, x = toy(depth=2), sample()
    before = module(x)
    model = NNsight(module)
    if not fresh:
        body(model, x)
    attributes = [set(part.__dict__) for part in module.modules()]
    n, met = 0, True
    while met:
        n += 1
        if fresh:
            model = NNsight(module)
        interrupting = Interrupting(n)
        try:
            with torch.enable_grad():
                sys.setprofile(interrupting)
                body(model, x)
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
        met = interrupting.met
        assert torch.is_grad_enabled()
        assert [set(part.__dict__) for part in module.modules()] == attributes, n
        assert torch.equal(module(x), before), n
        with model.trace(x):
            after = model.output
            with pytest.raises(engine.OutOfOrderError):
                model.h[1].output
        assert torch.equal(after, before), n
    assert n > 50


def test_a_trace_collected_while_another_one_is_opened_does_not_block_it(monkeypatch: pytest.MonkeyPatch) -> None:
    module, x = toy(), sample()
    before = module(x)
    model = NNsight(module)
    attributes = [set(part.__dict__) for part in module.modules()]

    def body():
        with model.trace(x):
            yield model.h[0].output

    abandoned: list[Any] = [body()]
    next(abandoned[0])
    abandoned.append(abandoned)
    gc.collect()
    del abandoned
    calls = engine.taps.Tap.calls

    def collecting(tap: Any) -> int:
        gc.collect()
        return calls(tap)

    monkeypatch.setattr(engine.taps.Tap, "calls", collecting)
    with model.trace(x):
        value = model.head.output
    assert torch.equal(value, before)
    assert [set(part.__dict__) for part in module.modules()] == attributes


def test_a_generator_left_open_at_the_end_of_the_process_is_silent() -> None:
    program = """
import torch
from nnsight_lab import NNsight
model = NNsight(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))
def body():
    with model.trace(torch.ones(1, 2)):
        yield model[0].output
values = body()
next(values)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
