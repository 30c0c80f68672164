"""What the Lab ought to show, computed in the kernel with plain torch hooks and nothing of nnsight-lab.

`hold` loads a model once under a short name; the other functions give plain numbers for JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from typing import Any

import torch
from torch import Tensor

Hook = Callable[[Any, Any, Any], Any]


@cache
def hold(name: str) -> tuple[Any, Any]:
    """The plain model and tokenizer: "atlas" or "smollm2"."""
    if name == "atlas":
        from nnsight_lab.demo.atlas import load_plain

        return load_plain()
    from nnsight_lab.demo.smollm2 import plain_smollm2

    return plain_smollm2()


def logits(name: str, prompt: str, hooks: dict[str, Hook] | None = None) -> Tensor:
    """Logits of the last position, `[vocabulary]`, with forward hooks on modules by path."""
    model, tokenizer = hold(name)
    with torch.no_grad(), ExitStack() as stack:
        for path, hook in (hooks or {}).items():
            handle = model.get_submodule(path).register_forward_hook(hook)
            stack.callback(handle.remove)
        return model(**tokenizer(prompt, return_tensors="pt")).logits[0, -1]


def captured(name: str, prompt: str, path: str) -> Tensor:
    """A module's output, the first tensor of a tuple."""
    kept: list[Tensor] = []

    def keep(_module: Any, _args: Any, output: Any) -> None:
        kept.append((output[0] if isinstance(output, tuple) else output).clone())

    logits(name, prompt, {path: keep})
    return kept[-1]


def zeroed(name: str, prompt: str, path: str, position: int | None = None) -> Tensor:
    """Logits with a module's output set to zero, at one position or everywhere."""

    def edit(_module: Any, _args: Any, output: Tensor) -> Tensor:
        output = output.clone()
        output[:, slice(None) if position is None else position] = 0
        return output

    return logits(name, prompt, {path: edit})


def patched(name: str, base: str, source: str, path: str, position: int | None = None) -> Tensor:
    """Logits of the base prompt with a module's output taken from the source prompt, at one position or everywhere."""
    taken = captured(name, source, path)

    def edit(_module: Any, _args: Any, output: Any) -> Any:
        value = (output[0] if isinstance(output, tuple) else output).clone()
        place = slice(None) if position is None else position
        value[:, place] = taken[:, place]
        return (value, *output[1:]) if isinstance(output, tuple) else value

    return logits(name, base, {path: edit})


def query_patched(base: str, source: str, layer: int, head: int) -> Tensor:
    """Logits of the embedded model with one head's query taken from the source prompt.

    GPT-2 computes queries, keys and values side by side in `c_attn`, `[batch, position, 3 * d_model]`, heads in a row.
    """
    model, _ = hold("atlas")
    width = model.config.n_embd // model.config.n_head
    columns = slice(head * width, (head + 1) * width)
    path = f"transformer.h.{layer}.attn.c_attn"
    taken = captured("atlas", source, path)

    def edit(_module: Any, _args: Any, output: Tensor) -> Tensor:
        output = output.clone()
        output[..., columns] = taken[..., columns]
        return output

    return logits("atlas", base, {path: edit})


def table(name: str, clean: Tensor, edited: Tensor, k: int = 10) -> dict[str, list[float]]:
    """For each token among the `k` likeliest of either run: logit before, after, rank before, after (from 1)."""
    _, tokenizer = hold(name)
    ids = sorted({int(i) for row in (clean, edited) for i in row.topk(k).indices})
    rank = {
        side: {int(token): place + 1 for place, token in enumerate(row.argsort(descending=True, stable=True))}
        for side, row in (("before", clean), ("after", edited))
    }
    return {
        tokenizer.decode([i]): [float(clean[i]), float(edited[i]), rank["before"][i], rank["after"][i]] for i in ids
    }


def grid(name: str, base: str, source: str, pattern: str, layers: int, correct: str, wrong: str) -> list[list[float]]:
    """Logit difference of two tokens for a patch of every layer and position, `[layers][positions]`."""
    _, tokenizer = hold(name)
    one, other = (tokenizer(text, add_special_tokens=False).input_ids[0] for text in (correct, wrong))
    length = tokenizer(base, return_tensors="pt").input_ids.shape[1]
    values = []
    for layer in range(layers):
        rows = [patched(name, base, source, pattern.replace("*", str(layer)), position) for position in range(length)]
        values.append([float(row[one] - row[other]) for row in rows])
    return values
