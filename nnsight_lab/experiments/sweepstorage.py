"""A sweep's result in a folder: `sweep.json` for what is data, `sweep.safetensors` for every number. No pickle."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import torch
from msgspec import Struct

from .errors import StoredResultError
from .folders import make_folder, reading
from .grid import Axis
from .plan import Plan
from .steps import Position
from .sweepresult import SweepResult
from .sweeps import Sweep

VERSION = 1
_JSON, _TENSORS = "sweep.json", "sweep.safetensors"
# Kept as tensors of one number, because JSON has no NaN.
_NUMBERS = ("baseline", "source_value", "seconds")
_GRIDS = ("values", "done", "logits", "baseline_logits")


class _StoredAxis(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    labels: tuple[str, ...]
    entries: tuple[str | tuple[Position, ...], ...]


class _Stored(Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    sweep: Sweep
    axes: tuple[_StoredAxis, ...]
    tokens: tuple[str, ...]
    source_tokens: tuple[str, ...]
    plan: Plan
    method: str
    notes: tuple[str, ...]
    peak_bytes: int | None
    budget_bytes: int
    metric_name: str = ""


def save_sweep(result: SweepResult, folder: Path, overwrite: bool = False) -> None:
    """Write `result` to `folder`, which is made.

    Raises:
        StoredResultError: the folder holds something, and `overwrite` is off.
    """
    from safetensors.torch import save_file

    stored = _Stored(
        version=VERSION,
        sweep=result.sweep,
        axes=tuple(_StoredAxis(axis.name, axis.labels, axis.entries) for axis in result.axes),
        tokens=result.tokens,
        source_tokens=result.source_tokens,
        plan=result.plan,
        method=result.method,
        notes=result.notes,
        peak_bytes=result.peak_bytes,
        budget_bytes=result.budget_bytes,
        metric_name=result.metric_name,
    )
    numbers = {name: getattr(result, name) for name in _NUMBERS}
    tensors = {name: torch.tensor([value], dtype=torch.float64) for name, value in numbers.items() if value is not None}
    tensors |= {name: getattr(result, name).cpu().clone().contiguous() for name in _GRIDS}
    make_folder(folder, overwrite)
    save_file(tensors, folder / _TENSORS)
    (folder / _JSON).write_bytes(msgspec.json.format(msgspec.json.encode(msgspec.to_builtins(stored)), indent=1))


def load_sweep(folder: Path) -> SweepResult:
    """Read what `save_sweep` wrote.

    Raises:
        StoredResultError: the folder holds no sweep, one of a later version, or one that is damaged.
    """
    with reading(folder, "sweep", _JSON, _TENSORS, VERSION) as (data, tensors):
        stored = msgspec.convert(data, _Stored)
        axes = tuple(Axis(axis.name, axis.labels, axis.entries) for axis in stored.axes)
        grids: dict[str, Any] = {name: tensors[name] for name in _GRIDS}
        numbers = {name: float(tensors[name][0]) for name in _NUMBERS if name in tensors}
    if tuple(grids["values"].shape) != tuple(len(axis) for axis in axes):
        raise StoredResultError(f"{folder}: the grid has shape {list(grids['values'].shape)}, the axes say otherwise.")
    return SweepResult(
        sweep=stored.sweep,
        axes=axes,
        tokens=stored.tokens,
        source_tokens=stored.source_tokens,
        plan=stored.plan,
        method=stored.method,
        notes=stored.notes,
        peak_bytes=stored.peak_bytes,
        budget_bytes=stored.budget_bytes,
        metric_name=stored.metric_name,
        source_value=numbers.get("source_value"),
        baseline=numbers.get("baseline", math.nan),
        seconds=numbers.get("seconds", 0.0),
        **grids,
    )
