"""The grids of a sweep and of attribution patching as heatmaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

from .cellgrids import Slice, metric_name, sites_name
from .errors import PlotError
from .gridfigures import grid_figure
from .heatmaps import Grid, numbers, odd_cells, odd_note
from .labels import plain, signed
from .ranges import find_range
from .themes import Theme, ThemeName, theme_named

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from ..experiments import AttributionResult, SweepResult

Shown = Literal["difference", "value", "recovery"]
Estimate = Literal["estimate", "exact", "error"]


def sweep(
    result: SweepResult,
    *,
    show: Shown = "difference",
    rows: str | None = None,
    columns: str | None = None,
    at: Mapping[str, int] | None = None,
    trim: float | None = None,
    limit: float | None = None,
    title: str | None = None,
    theme: ThemeName | None = None,
) -> go.Figure:
    """The grid of a sweep: one cell an edited run, in the unit of the sweep's metric.

    The first site stands at the bottom, so that the residual stream runs upwards; positions run from left to right,
    labelled with number and token. Zero has the page's colour, orange is above, blue below. Cells that were not
    computed have a pale colour of their own; cells whose metric is NaN are grey, +∞ yellow, -∞ green; all are counted
    under the title. A sweep over one axis is drawn as one column. Hovering tells the whole site, the position and the
    exact value.

    Args:
        result: of a sweep.
        show: "difference" from the clean run's metric; the metric's "value" itself; or normalised "recovery", 0 for
            the clean run and 1 for the source prompt's.
        rows, columns: names of the axes to draw. By default the first axis with several entries as rows, the next as
            columns.
        at: entry of each other axis by name, `{"head": 3}`; 0 where left out.
        trim, limit: as in `activation`; nothing is trimmed by default.
        title: in place of the step and the metric.
        theme: "light" or "dark"; None follows plotly's default template.

    Raises:
        PlotError: no such axis or entry, or an empty sweep.
        ExperimentError: recovery of a sweep without a source prompt.
    """
    look = theme_named(theme)
    shown = {"difference": lambda: result.differences, "value": lambda: result.values, "recovery": result.recovery}
    if show not in shown:
        raise PlotError(f'show: "difference", "value" or "recovery", not {show!r}.')
    chosen = Slice.choose(result.axes, rows, columns, at)
    metric = metric_name(result.sweep.metric)
    quantity = {"difference": f"{metric} minus clean", "value": metric, "recovery": "normalised recovery"}[show]
    grid = chosen.grid(numbers(shown[show]()), result.done.numpy(), quantity)
    clean = f"{metric}: clean {signed(result.baseline)}"
    if result.source_value is not None:
        clean += f", source {signed(result.source_value)}"
    heading = f"{type(result.sweep.step).__name__} at {sites_name(result.axes)}"
    return _figure(grid, chosen, trim, limit, plain(title) if title else heading, [clean], look)


def attribution(
    result: AttributionResult,
    *,
    show: Estimate = "estimate",
    rows: str | None = None,
    columns: str | None = None,
    at: Mapping[str, int] | None = None,
    trim: float | None = None,
    limit: float | None = None,
    title: str | None = None,
    theme: ThemeName | None = None,
) -> go.Figure:
    """The grid of attribution patching: the estimated change of the metric in each cell, in the metric's unit.

    Axes, colours, bad cells and hovering are those of `sweep`. The line under the title says how well the estimate
    agrees with exact patching, where that was run.

    Args:
        result: of attribution patching.
        show: the "estimate"; the "exact" change; or the "error", estimate minus exact.
        rows, columns, at, trim, limit, title, theme: as in `sweep`.

    Raises:
        PlotError: no such quantity, axis or entry.
        ExperimentError: "exact" or "error" where the exact sweep was turned off.
    """
    look = theme_named(theme)
    shown = {
        "estimate": lambda: result.estimates,
        "exact": lambda: result.estimates - result.errors,
        "error": lambda: result.errors,
    }
    if show not in shown:
        raise PlotError(f'show: "estimate", "exact" or "error", not {show!r}.')
    values = numbers(shown[show]())
    chosen = Slice.choose(result.axes, rows, columns, at)
    metric = metric_name(result.sweep.metric)
    quantity = {
        "estimate": f"estimated change of {metric}",
        "exact": f"change of {metric}",
        "error": "error of estimate",
    }
    grid = chosen.grid(values, np.ones(values.shape, dtype=bool), quantity[show])
    quality = "not compared with exact patching"
    if result.exact is not None:
        quality = f"against exact patching: correlation {result.correlation:.3f}, largest error {result.max_error:.3g}"
    heading = f"Attribution patching at {sites_name(result.axes)}"
    return _figure(grid, chosen, trim, limit, plain(title) if title else heading, [quality], look)


def _figure(
    grid: Grid, chosen: Slice, trim: float | None, limit: float | None, heading: str, notes: list[str], look: Theme
) -> go.Figure:
    computed = grid.values if grid.missing is None else grid.values[~grid.missing]
    span = find_range(computed, trim, limit=limit)
    notes = notes + chosen.fixed + [note for note in (span.note, odd_note(odd_cells(grid))) if note]
    return grid_figure(grid, span, look, heading, notes)
