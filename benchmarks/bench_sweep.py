"""A patching grid of SmolLM2-135M, 30 layers by 9 positions: a sweep against one trace per cell and one big batch.

Both rivals are given what a careful person would write: the trace per cell reads and edits one site with the source's
values at hand; the batch is one full forward of 270 rows in which plain torch hooks edit each row, and its logits are
computed for the last position alone ("last") or, as a plain call of the model does, for all ("all").

Each line is the median over rounds, in each of which all of them are timed in turns; of the traces a sample of the
cells is run. What falls on one round (other work on the machine) falls on all its members. The sweep's figure is the
whole call: both prompts' runs, planning, all cells, metrics. Its check of the method runs once in a session, in
the warm-up round, and is timed apart.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from nnsight_lab import LanguageModel
from nnsight_lab.experiments import LogitDiff, Patch, sweep

BASE = "The Eiffel Tower is in the city of"
SOURCE = "The Brandenburg Gate is in the city of"
LAYERS, POSITIONS, SAMPLE = 30, 9, 12
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
METRIC = LogitDiff(" Paris", " Berlin")
CELLS = LAYERS * POSITIONS


@pytest.fixture(scope="module")
def model() -> Iterator[LanguageModel]:
    from nnsight_lab.demo.smollm2 import load_smollm2

    threads = torch.get_num_threads()
    torch.set_num_threads(int(os.environ.get("BENCH_THREADS", "2")))
    yield load_smollm2()
    torch.set_num_threads(threads)


class Residual:
    site = "model.layers.*"

    @staticmethod
    def envoy(model: LanguageModel, layer: int) -> Any:
        return model.model.layers[layer]

    @staticmethod
    def edited(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
        return change(value)

    @staticmethod
    def hooked(model: LanguageModel, layer: int, change: Callable[[Tensor], Tensor]) -> Any:
        module = model._model.model.layers[layer]
        return module.register_forward_hook(lambda m, a, out: change(out))


class Attention:
    site = "model.layers.*.self_attn.source.attention_interface_0"

    @staticmethod
    def envoy(model: LanguageModel, layer: int) -> Any:
        return model.model.layers[layer].self_attn.source.attention_interface_0

    @staticmethod
    def edited(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
        return (change(value[0]), *value[1:])

    @staticmethod
    def hooked(model: LanguageModel, layer: int, change: Callable[[Tensor], Tensor]) -> Any:
        """The attention call's output is what goes into o_proj, with the heads side by side."""
        module = model._model.model.layers[layer].self_attn.o_proj

        def pre(_module: object, args: tuple[Tensor]) -> tuple[Tensor]:
            return (change(args[0].unflatten(-1, (9, -1))).flatten(-2),)

        return module.register_forward_pre_hook(pre)


def source_values(model: LanguageModel, site: Any) -> list[Tensor]:
    values = []
    with torch.no_grad(), model.trace(SOURCE):
        for layer in range(LAYERS):
            value = site.envoy(model, layer).output
            values.append((value[0] if isinstance(value, tuple) else value).clone())
    return values


def by_traces(model: LanguageModel, site: Any, taken: list[Tensor], cells: list[tuple[int, int]]) -> list[Tensor]:
    rows = []
    for layer, position in cells:

        def change(value: Tensor, layer: int = layer, position: int = position) -> Tensor:
            value = value.clone()
            value[:, position] = taken[layer][:, position]
            return value

        with torch.no_grad(), model.trace(BASE) as tracer:
            place = site.envoy(model, layer)
            place.output = site.edited(place.output, change)
            rows.append(tracer.result.logits[0, -1])
    return rows


def by_batch(model: LanguageModel, site: Any, taken: list[Tensor], ids: Tensor, **keywords: Any) -> Tensor:
    handles = []
    for layer in range(LAYERS):

        def change(value: Tensor, layer: int = layer) -> Tensor:
            value = value.clone()
            for position in range(POSITIONS):
                value[layer * POSITIONS + position, position] = taken[layer][0, position]
            return value

        handles.append(site.hooked(model, layer, change))
    try:
        with torch.no_grad():
            return model._model(ids.expand(CELLS, -1), use_cache=False, **keywords).logits[:, -1]
    finally:
        for handle in handles:
            handle.remove()


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


@pytest.mark.parametrize("site", [Residual, Attention], ids=lambda site: site.__name__.lower())
def test_sweep(model: LanguageModel, site: Any) -> None:
    ids = model.tokenizer(BASE, return_tensors="pt").input_ids
    assert ids.shape[1] == POSITIONS
    taken = source_values(model, site)
    generator = torch.Generator().manual_seed(0)

    def ours() -> Any:
        return sweep(model, Patch(site=site.site), base=BASE, source=SOURCE, metric=METRIC, progress=False)

    first, result = timed(ours)
    ratios: dict[str, list[float]] = {"trace": [], "last": [], "all": []}
    costs: dict[str, list[float]] = {"ours": [], "trace": [], "last": [], "all": []}
    paris, berlin = (model.tokenizer(text).input_ids[0] for text in (" Paris", " Berlin"))
    off = 0.0
    for _ in range(ROUNDS):
        chosen = [divmod(int(i), POSITIONS) for i in torch.randperm(CELLS, generator=generator)[:SAMPLE]]
        spent, result = timed(ours)
        alone, rows = timed(lambda chosen=chosen: by_traces(model, site, taken, chosen))
        last, batch = timed(lambda: by_batch(model, site, taken, ids, logits_to_keep=1))
        whole, _ = timed(lambda: by_batch(model, site, taken, ids))
        again, result = timed(ours)
        spent = (spent + again) / 2
        for name, seconds in (("trace", alone / SAMPLE * CELLS), ("last", last), ("all", whole)):
            ratios[name].append(seconds / spent)
            costs[name].append(seconds)
        costs["ours"].append(spent)
        for (layer, position), logits in zip(chosen, rows, strict=True):
            off = max(off, abs(float(logits[paris] - logits[berlin]) - float(result.values[layer, position])))
        every = (batch[:, paris] - batch[:, berlin]).double().reshape(LAYERS, POSITIONS)
        off = max(off, float((every - result.values).abs().max()))
    print(f"\n{site.site}: {CELLS} cells, {result.method}; {result.notes[0] if result.notes else ''}")
    for name, what in (("trace", "one trace per cell"), ("last", "one batch, last logits"), ("all", "one batch")):
        low, high = min(ratios[name]), max(ratios[name])
        each = statistics.median(costs[name]) / CELLS * 1e3
        print(
            f"  {what:<24} {each:7.2f} ms/cell  {statistics.median(ratios[name]):5.1f}x ours ({low:.1f} to {high:.1f})"
        )
    print(f"  sweep                    {statistics.median(costs['ours']) / CELLS * 1e3:7.2f} ms/cell", end="")
    print(f"; the first, with its check, {first / CELLS * 1e3:.2f}")
    print(f"  largest difference of a cell {off:.2e}; peak {(result.peak_bytes or 0) / 2**20:.0f} MiB", end="")
    print(f" of {result.budget_bytes / 2**20:.0f} MiB allowed")


def test_peak_memory_of_a_small_budget(model: LanguageModel) -> None:
    """Exactly counted: every tensor that is made, and when it is freed."""
    from nnsight_lab.experiments.budget import live_bytes

    for budget in (32 << 20, 128 << 20, 1 << 30):
        with live_bytes() as peak:
            result = sweep(
                model,
                Patch(site="model.layers.*"),
                base=BASE,
                source=SOURCE,
                metric=METRIC,
                progress=False,
                memory=budget,
            )
        print(f"\nbudget {budget >> 20} MiB: peak {(peak.bytes or 0) / 2**20:.1f} MiB, {result.seconds:.1f} s", end="")
