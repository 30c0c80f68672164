"""The main job in the terminal: `python -m nnsight_lab.demo`.

Shows the annotated forward of one MLP, the activation after its GELU, and what the model answers as it is, with that
activation set to zero, and with the same activation taken from another prompt.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import torch

from . import BRANDENBURG, EIFFEL, load

LAYER = 11


def _answer(model: Any, title: str, logits: torch.Tensor) -> None:
    """Print the five likeliest next tokens of `[batch, position, vocabulary]` logits."""
    last = logits[0, -1].float()
    top = last.topk(5)
    best = model.tokenizer.decode(top.indices[:1])
    print(f"{title:<34}{best!r}")
    for value, index in zip(top.values, top.indices, strict=True):
        print(f"    {model.tokenizer.decode(index)!r:<16} logit {value:7.3f}   p {last.softmax(-1)[index]:.3f}")


def main(arguments: Sequence[str] | None = None) -> int:
    argparse.ArgumentParser(prog="python -m nnsight_lab.demo", description="The main job, in the terminal.").parse_args(
        arguments
    )
    model = load()
    mlp = model.transformer.h[LAYER].mlp

    print(f"The forward of {mlp.path}, its operations on the left:\n")
    print(mlp.source)

    with torch.no_grad():
        with model.trace(EIFFEL):
            activation = mlp.source.self_act_0.output
            normal = model.lm_head.output

        with model.trace(EIFFEL):
            mlp.source.self_act_0.output[:] = 0
            zeroed = model.lm_head.output

        with model.trace(BRANDENBURG):
            taken = model.transformer.h[2].output
        with model.trace(EIFFEL):
            model.transformer.h[2].output = taken
            patched = model.lm_head.output

        with model.trace(EIFFEL):
            attention = model.transformer.h[0].attn.source.attention_interface_0.source
            query = attention.torch_nn_functional_scaled_dot_product_attention_0.input

    print(f"\nself_act_0 of {mlp.path}, after the GELU: shape {list(activation.shape)}, {activation.dtype}\n")
    print(f"Base prompt:   {EIFFEL!r}")
    print(f"Source prompt: {BRANDENBURG!r}\n")
    _answer(model, "The answer", normal)
    _answer(model, f"with self_act_0 of h[{LAYER}] zeroed", zeroed)
    _answer(model, "with h[2] patched from the source", patched)
    print(f"\nThe query inside h[0].attn's attention, two .source levels deep: shape {list(query.shape)}")
    print("\nNext: `make lab`, or examples/quickstart.ipynb.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
