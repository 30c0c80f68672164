"""Sweeps and lenses as grids."""

from __future__ import annotations

import math
import re

import numpy as np
import torch

from ...experiments import LensResult, SweepResult
from .. import wire
from .pooling import colour_range, odd_counts

_POSITION = re.compile(r"(-?\d+) (.*)", re.DOTALL)


def sweep_grid(request_id: str, run: str, title: str, result: SweepResult) -> tuple[wire.SweepGrid, np.ndarray]:
    """A sweep as far as it is computed, and its cells, float32 in the order of the axes."""
    values = result.values
    baseline = _finite(result.baseline)
    differences = (values - (baseline or 0.0)).reshape(-1)
    axes = tuple(_axis_view(axis.name, axis.labels) for axis in result.axes)
    grid = wire.SweepGrid(
        id=request_id,
        run=run,
        title=title,
        metric=result.metric_name,
        axes=axes,
        baseline=baseline,
        source_value=_finite(result.source_value),
        colours=colour_range(differences, odd_counts(differences), None),
        done=int(result.done.sum()),
        total=result.done.numel(),
        seconds=result.seconds,
        notes=result.notes,
    )
    return grid, np.ascontiguousarray(values.to(torch.float32).numpy(), dtype="<f4")


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _axis_view(name: str, labels: tuple[str, ...]) -> wire.AxisView:
    """An axis and its labels. On an axis named "position" an entry is a position and its label the token; where
    the entries are other positions, or several, it is named "positions" and the labels say which."""
    if name == "site":
        return wire.AxisView(name, len(labels), short_sites(labels))
    if name != "position":
        return wire.AxisView(name, len(labels), tuple(map(str, labels)))
    found = [_POSITION.fullmatch(label) for label in labels]
    if all(match is not None and int(match[1]) == entry for entry, match in enumerate(found)):
        return wire.AxisView(name, len(labels), tuple(match[2] for match in found if match is not None))
    return wire.AxisView(
        "positions", len(labels), tuple(label.replace(" ", "␣").replace("␣", " ", 1) for label in labels)
    )


def short_sites(sites: tuple[str, ...]) -> tuple[str, ...]:
    """Sites by their layer, `h.3`, where that tells them apart; else whole."""
    short = []
    for site in sites:
        names = site.split(".source.")[0].split(".")
        number = next((i for i, name in enumerate(names) if name.isdigit()), None)
        short.append(site if number is None else ".".join(names[max(number - 1, 0) : number + 1]))
    return tuple(short) if len(set(short)) == len(short) else sites


def lens_grid(
    request_id: str, run: str, title: str, result: LensResult, seconds: float = 0.0
) -> tuple[wire.LensGrid, np.ndarray]:
    """A lens, and the probability of each likeliest token, float32 `[site, position]`."""
    grid = wire.LensGrid(request_id, run, title, short_sites(result.sites), result.tokens, result.top_tokens, seconds)
    return grid, np.ascontiguousarray(result.probability.to(torch.float32).numpy(), dtype="<f4")
