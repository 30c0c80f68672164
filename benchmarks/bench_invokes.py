"""Sixteen prompts in one trace, a block for each that reads every layer, against hand-written hooks on the same batch.

The hooks keep each layer's output and take the prompts' rows of it, which is what the blocks get. Run with `make bench`;
the line is a ratio of medians of paired runs, on the embedded model.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nnsight_lab import demo

from .bench_engine import one_thread, show
from .paired import paired

__all__ = ["one_thread"]
CITIES = ["Rome", "Paris", "Vienna", "Berlin", "London", "Madrid", "Athens", "Oslo"]
PROMPTS = [text for city in CITIES for text in (f"The river that flows through {city} is", f"{city} is a city in")]


def test_16_prompts_reading_every_layer() -> None:
    model = demo.load()
    module = model._model
    layers = list(model.transformer.h)

    def traced() -> list[list[Tensor]]:
        values: list[list[Tensor]] = []
        with model.trace() as tracer:
            for prompt in PROMPTS:
                with tracer.invoke(prompt):
                    mine = []
                    for layer in layers:
                        mine.append(layer.output)
                    values.append(mine)
        return values

    def hooked() -> list[list[Tensor]]:
        whole: list[Tensor] = []
        encoded = model.tokenizer(PROMPTS, return_tensors="pt", padding=True)
        positions = (encoded.attention_mask.cumsum(-1) - 1).clamp(min=0)
        handles = [layer._module.register_forward_hook(lambda m, a, output: whole.append(output)) for layer in layers]
        try:
            module(**encoded, position_ids=positions)
        finally:
            for handle in handles:
                handle.remove()
        return [[value[row : row + 1] for value in whole] for row in range(len(PROMPTS))]

    for mine, plain in zip(traced(), hooked(), strict=True):
        assert len(mine) == len(plain) == len(layers)
        assert all(map(torch.equal, mine, plain))
    show("16 prompts, every layer: invoke blocks / torch hooks", paired(traced, hooked, pairs=20, warm_up=2))
