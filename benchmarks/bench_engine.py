"""Overhead of tracing, against hand-written torch hooks for the same reads (register, run, remove).

Run with `make bench`; each line is a ratio of medians of paired runs. With nnsight installed in the same environment (an
option, no dependency) the same reads are timed with it as well.
"""

from __future__ import annotations

import gc
import importlib.util
import resource
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import nnsight_lab as nl

from .paired import paired

WIDTH = 16
LAYERS = 12
PEER = importlib.util.find_spec("nnsight") is not None


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(WIDTH, 4 * WIDTH)
        self.act = nn.GELU()
        self.proj = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.fc(x)
        hidden = self.act(hidden)
        hidden = self.proj(hidden)
        return x + hidden


class Toy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(LAYERS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.no_grad():
        yield
    torch.set_num_threads(threads)


@pytest.fixture
def toy() -> Toy:
    torch.manual_seed(0)
    return Toy().eval()


X = torch.randn(1, 8, WIDTH, generator=torch.Generator().manual_seed(0))


def hooked(model: Toy, modules: list[nn.Module]) -> list[torch.Tensor]:
    values: list[torch.Tensor] = []
    handles = [module.register_forward_hook(lambda m, a, value: values.append(value)) for module in modules]
    try:
        model(X)
    finally:
        for handle in handles:
            handle.remove()
    return values


def show(what: str, ratio: object) -> None:
    print(f"\n{what:<62} {ratio}", end="")


def traces(model: Any) -> dict[str, Callable[[], list[torch.Tensor]]]:
    """The three traces, in the API that nnsight and nnsight-lab share."""

    def empty() -> list[torch.Tensor]:
        with model.trace(X):
            pass
        return []

    def modules() -> list[torch.Tensor]:
        values = []
        with model.trace(X):
            for index in range(LAYERS):
                values.append(model.layers[index].output.save())
        return values

    def operations() -> list[torch.Tensor]:
        values = []
        with model.trace(X):
            for index in range(LAYERS):
                values.append(model.layers[index].source.self_act_0.output.save())
        return values

    return {"empty": empty, "modules": modules, "operations": operations}


@pytest.mark.parametrize("what", ["empty", "modules", "operations"])
def test_trace_against_hooks(toy: Toy, what: str) -> None:
    layers = list(toy.layers)
    asked = {"empty": [], "modules": layers, "operations": [layer.act for layer in layers]}[what]
    ours = traces(nl.NNsight(toy))[what]

    def by_hand() -> list[torch.Tensor]:
        return hooked(toy, asked)

    for mine, plain in zip(ours(), by_hand(), strict=True):
        assert torch.equal(mine, plain)
    show(f"{what}: trace / torch hooks", paired(ours, by_hand))


@pytest.mark.skipif(not PEER, reason="nnsight is not installed in this environment")
@pytest.mark.parametrize("what", ["empty", "modules", "operations"])
def test_trace_against_nnsight(toy: Toy, what: str) -> None:
    import nnsight

    peer = nnsight.NNsight(Toy().eval())  # it leaves controllers on its modules, so each has a model of its own
    if what == "operations":
        for layer in peer.layers:
            layer.source  # rewrites the forward once and for all
    theirs = traces(peer)[what]
    show(f"{what}: trace / the same with nnsight {nnsight.__version__}", paired(traces(nl.NNsight(toy))[what], theirs))


@pytest.mark.parametrize("kind", ["C function", "module", "Python function"])
def test_unobserved_operation(kind: str) -> None:
    """What an operation costs that nobody asked for, in a forward another operation of which is observed."""
    calls = 2000
    identity = nn.Identity()
    called: dict[str, Callable[[torch.Tensor], object]] = {
        "C function": id,
        "module": identity,
        "Python function": _nothing,
    }

    class Many(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.function = called[kind]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            function = self.function
            for _ in range(calls):
                function(x)
            return x.clone()

    module = Many()
    model = nl.NNsight(module)
    x = torch.zeros(1)

    def observed() -> None:
        with model.trace(x):
            model.source.x_clone_0.output

    def plain() -> None:
        with model.trace(x):
            model.output

    result = paired(observed, plain, pairs=60)
    print(f"\nunobserved call of a {kind}: {(result.first - result.second) * 1000 / calls:.0f} ns each", end="")


def _nothing(x: torch.Tensor) -> None:
    pass


def test_wrapped_model_outside_a_trace() -> None:
    """The embedded model after traces of it, instrumented modules among them, against one never wrapped."""
    from nnsight_lab.demo.atlas import load_plain

    bare, tokenizer = load_plain()
    used, _ = load_plain()
    model = nl.LanguageModel(used, tokenizer=tokenizer)
    ids = tokenizer("The Eiffel Tower is in the city of", return_tensors="pt").input_ids
    with model.trace(ids):
        for block in model.transformer.h:
            block.mlp.source.self_act_0.output
    assert torch.equal(bare(ids).logits, used(ids).logits)
    show("wrapped model outside a trace / bare model", paired(lambda: used(ids), lambda: bare(ids), pairs=200))


@pytest.mark.parametrize("what", ["modules", "operations"])
def test_memory_of_200_traces(toy: Toy, what: str) -> None:
    trace = traces(nl.NNsight(toy))[what]
    for _ in range(20):
        trace()
    gc.collect()
    gc.disable()
    try:
        before, objects = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, len(gc.get_objects())
        for _ in range(200):
            trace()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(f"\n200 traces, {what}, gc off: {grown} kB, {len(gc.get_objects()) - objects} objects more", end="")
    finally:
        gc.enable()


def test_import() -> None:
    """`import nnsight_lab` beyond `import torch`, in fresh interpreters."""
    import statistics
    import subprocess
    import sys

    code = "import time, torch; t = time.perf_counter(); import nnsight_lab; print(time.perf_counter() - t)"
    spent = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout) for _ in range(5)
    ]
    print(f"\nimport nnsight_lab beyond torch: {statistics.median(spent) * 1000:.0f} ms (budget 100)", end="")
