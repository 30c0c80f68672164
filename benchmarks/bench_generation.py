"""A generation of 50 tokens that reads every layer at every step, against hand-written hooks that keep the same values.

Run with `make bench`; the line is a ratio of medians of paired runs, on the embedded model.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nnsight_lab import demo

from .bench_engine import one_thread, show
from .paired import paired

__all__ = ["one_thread"]
PROMPT = "The Eiffel Tower is in the city of"
OPTIONS = {"max_new_tokens": 50, "min_new_tokens": 50, "do_sample": False}


def test_50_tokens_reading_every_layer() -> None:
    model = demo.load()
    module = model._model
    encoded = model.tokenizer(PROMPT, return_tensors="pt")
    layers = list(model.transformer.h)

    def traced() -> tuple[list[Tensor], Tensor]:
        values = []
        with model.generate(encoded.input_ids, **OPTIONS) as tracer:
            for _ in tracer.iter[:]:
                for layer in layers:
                    values.append(layer.output)
        return values, tracer.result

    def hooked() -> tuple[list[Tensor], Tensor]:
        values: list[Tensor] = []
        handles = [layer._module.register_forward_hook(lambda m, a, output: values.append(output)) for layer in layers]
        try:
            ids = module.generate(encoded.input_ids, attention_mask=encoded.attention_mask, **OPTIONS)
        finally:
            for handle in handles:
                handle.remove()
        return values, ids

    (mine, my_ids), (plain, ids) = traced(), hooked()
    assert torch.equal(my_ids, ids)
    assert len(mine) == len(plain) == 50 * len(layers)
    assert all(map(torch.equal, mine, plain))
    show("generation of 50 tokens, every layer: trace / torch hooks", paired(traced, hooked, pairs=20, warm_up=2))
