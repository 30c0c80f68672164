"""Small models for the tests of tracing, and forward hooks as the plain-torch way to the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


class Mlp(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.act = nn.GELU()
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        hidden = self.up(x)
        hidden = self.act(hidden)
        return self.down(hidden)


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = Mlp(width)

    def forward(self, x, scale=1.0):
        return x + self.mlp(self.norm(x)) * scale


class Toy(nn.Module):
    """A residual stack that calls its blocks with a keyword."""

    def __init__(self, width: int = 8, depth: int = 3) -> None:
        super().__init__()
        self.embed = nn.Linear(width, width)
        self.h = nn.ModuleList(Block(width) for _ in range(depth))
        self.unused = nn.Linear(width, width)
        self.head = nn.Linear(width, 5)

    def forward(self, x):
        x = self.embed(x)
        for block in self.h:
            x = block(x, scale=0.5)
        return self.head(x)


def toy(seed: int = 0, **sizes: int) -> Toy:
    torch.manual_seed(seed)
    return Toy(**sizes).eval()


def sample(seed: int = 1, rows: int = 2, width: int = 8) -> torch.Tensor:
    return torch.randn(rows, 3, width, generator=torch.Generator().manual_seed(seed))


@dataclass
class Pair:
    """A result type of a model's own."""

    first: torch.Tensor
    count: int


class Returns(nn.Module):
    """Gives back whatever it was made with."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def forward(self, x):
        return self.value


@contextmanager
def hooked(module: nn.Module, change: Callable[[Any], Any]) -> Iterator[None]:
    """`module` with its output passed through `change`, by a torch forward hook."""
    handle = module.register_forward_hook(lambda _, __, output: change(output))
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def prehooked(module: nn.Module, change: Callable[[Any], Any]) -> Iterator[None]:
    """`module` with its first positional argument passed through `change`, by a torch forward pre-hook."""
    handle = module.register_forward_pre_hook(lambda _, args: (change(args[0]), *args[1:]))
    try:
        yield
    finally:
        handle.remove()


def recorded(model: nn.Module, module: nn.Module, *args: Any) -> list[Any]:
    """What `module` returned at each of its calls in one plain forward of `model`."""
    seen: list[Any] = []
    handle = module.register_forward_hook(lambda _, __, output: seen.append(output))
    try:
        model(*args)
    finally:
        handle.remove()
    return seen


def same(one: Any, other: Any) -> bool:
    """Equal bit for bit, dtype and shape included."""
    return one.dtype == other.dtype and torch.equal(one, other)


def installed(model: nn.Module) -> dict[str, Any]:
    """What an engine could have left on `model`'s modules: instance attributes and hooks."""
    return {
        path: (
            {key for key in module.__dict__ if key in ("forward", "_compiled_call_impl", "_old_forward")},
            len(module._forward_hooks) + len(module._forward_pre_hooks) + len(module._backward_hooks),
        )
        for path, module in model.named_modules()
    }
