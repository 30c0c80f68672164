"""Models that put the Lab into states that people meet: slow, failing, deep, wide, huge, with odd values."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn


class SlowLayer(nn.Module):
    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        time.sleep(self.seconds)
        return x + y


class Slow(nn.Module):
    """A stack whose every layer takes its time; the time can be changed while a test runs."""

    def __init__(self, layers: int = 10, seconds: float = 0.2) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(SlowLayer(seconds) for _ in range(layers))

    def take(self, seconds: float) -> None:
        for layer in self.layers:
            layer.seconds = seconds

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def wait_for(gate: str | Path, seconds: float = 30) -> None:
    """Wait until a test has made this file: the Lab computes while no cell can run, so no cell could tell it."""
    deadline = time.monotonic() + seconds
    while not Path(gate).exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nobody opened {gate}")
        time.sleep(0.01)


class Gated(nn.Module):
    """Stays in its forward until the file `gate` is there."""

    def __init__(self, gate: str | Path) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.gate = gate
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        wait_for(self.gate)
        return torch.relu(y)


def late_language_model(gate: str | Path) -> Any:
    """The embedded model, whose weights are not loaded yet: 3 of 12 parts come at once, the others with the gate."""
    from tqdm import tqdm

    from nnsight_lab import LanguageModel
    from nnsight_lab.demo.atlas import ATLAS_PATH

    class Late(LanguageModel):
        def dispatch(self) -> None:
            if not self.dispatched:
                with tqdm(total=12, unit="files") as bar:
                    bar.update(3)
                    wait_for(gate)
                    bar.update(9)
            super().dispatch()

    return Late(str(ATLAS_PATH))


class HeldHead(nn.Linear):
    """An unembedding that lets `free` batches of several rows pass and then stays until the file `gate` is there.

    A sweep computes its cells in such batches; all else that the Lab does with one prompt goes on.
    """

    gate: str | Path | None = None
    free = 0

    def hold(self, gate: str | Path, free: int) -> None:
        self.gate, self.free = gate, free

    def forward(self, x: Tensor) -> Tensor:
        if self.gate is not None and len(x) > 1:
            if self.free <= 0:
                wait_for(self.gate)
            self.free -= 1
        return super().forward(x)


def held_language_model() -> Any:
    """The embedded model with a `HeldHead`, which holds nothing yet."""
    from nnsight_lab import LanguageModel
    from nnsight_lab.demo.atlas import load_plain

    model, tokenizer = load_plain()
    model.lm_head.__class__ = HeldHead
    return LanguageModel(model, tokenizer=tokenizer)


class Failing(nn.Module):
    """Raises in its forward as long as it is told to."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(4, 4)
        self.failing = True

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x)
        if self.failing:
            raise RuntimeError("the scaling table of this device is not loaded")
        return torch.relu(hidden)


class Branching(nn.Module):
    """One branch is not taken; the other makes tuples, mappings, and values that are no tensors."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        size = x.size(0)
        if size > 100:
            x = torch.tanh(x)
        y = self.linear(x)
        largest, where = torch.max(y, dim=-1)
        parts = dict(low=y - 1, high=y + 1)  # noqa: C408, the call is what is looked at
        name = str(size)
        return parts["high"] * largest.unsqueeze(-1) + len(name) + where.sum()


class NotFinite(nn.Module):
    """Its activation has NaN and both infinities among ordinary numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.keep = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = x.clone()
        y[..., 0, 1] = float("nan")
        y[..., 1, 2] = float("inf")
        y[..., 2, 3] = float("-inf")
        return self.keep(y)


class Huge(nn.Module):
    """One activation of 4096 by 16384 (268 MB in float32), with one entry that stands out."""

    ROW, COLUMN, VALUE = 1234, 9876, 50.0

    def __init__(self) -> None:
        super().__init__()
        self.keep = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        rows = torch.linspace(-1, 1, 4096).unsqueeze(1)
        columns = torch.linspace(-1, 1, 16384)
        y = self.keep(spike(rows * columns))
        return y.mean() + x


def spike(value: Tensor) -> Tensor:
    value[Huge.ROW, Huge.COLUMN] = Huge.VALUE
    return value


class Picture(nn.Module):
    """One activation of 1024 by 3072."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.keep = nn.Identity()
        self.value = nn.Parameter(torch.randn(1024, 3072))

    def forward(self, x: Tensor) -> Tensor:
        return self.keep(self.value + x)


class Wide(nn.Module):
    """Twenty thousand modules: 2,000 blocks of nine."""

    def __init__(self, blocks: int = 2000) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(*(nn.Identity() for _ in range(7)), nn.ReLU(), nn.Identity()) for _ in range(blocks)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.blocks[0](x)


def deep_language_model(layers: int = 200):
    """A GPT-2 of many layers with the embedded model's tokenizer and random weights."""
    from transformers import GPT2Config, GPT2LMHeadModel

    from nnsight_lab import LanguageModel
    from nnsight_lab.demo.atlas import load_plain

    _, tokenizer = load_plain()
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=len(tokenizer), n_positions=64, n_embd=8, n_head=2, n_layer=layers)
    return LanguageModel(GPT2LMHeadModel(config).eval(), tokenizer=tokenizer)


def half_language_model():
    """The embedded model in bfloat16."""
    from nnsight_lab import LanguageModel
    from nnsight_lab.demo.atlas import load_plain

    model, tokenizer = load_plain()
    return LanguageModel(model.to(torch.bfloat16), tokenizer=tokenizer)
