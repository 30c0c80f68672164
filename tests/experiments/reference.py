"""The same experiments in plain torch: forward hooks on modules, and a stand-in for the attention kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor, nn

Change = Callable[[Tensor], Tensor]


def logits_with_hooks(module: nn.Module, ids: Tensor, changes: Mapping[str, Change]) -> Tensor:
    """Last-position logits `[batch, vocabulary]` with a function applied to the outputs of some modules."""

    def hook_of(change: Change) -> Callable[..., object]:
        def hook(_module: nn.Module, _args: object, output: object) -> object:
            if isinstance(output, tuple):
                return (change(output[0].clone()), *output[1:])
            assert isinstance(output, Tensor)
            return change(output.clone())

        return hook

    handles = [module.get_submodule(path).register_forward_hook(hook_of(change)) for path, change in changes.items()]
    try:
        with torch.no_grad():
            return module(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[:, -1]
    finally:
        for handle in handles:
            handle.remove()


def output_of(module: nn.Module, ids: Tensor, path: str) -> Tensor:
    """What the module at `path` gives for `ids`."""
    kept: list[Tensor] = []

    def keep(value: Tensor) -> Tensor:
        kept.append(value.clone())
        return value

    logits_with_hooks(module, ids, {path: keep})
    return kept[0]


@contextlib.contextmanager
def attention_replaced(layer: int, change: Change) -> Iterator[None]:
    """Apply `change` to what the attention kernel gives in one layer, `[batch, heads, position, head_dim]`."""
    original = torch.nn.functional.scaled_dot_product_attention
    calls = 0

    def replaced(*args: object, **kwargs: object) -> Tensor:
        nonlocal calls
        value = original(*args, **kwargs)  # type: ignore[arg-type]
        calls += 1
        return change(value.clone()) if calls == layer + 1 else value

    torch.nn.functional.scaled_dot_product_attention = replaced  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.nn.functional.scaled_dot_product_attention = original
