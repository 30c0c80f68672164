"""A two-dimensional slice of an activation as a heatmap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .errors import PlotError
from .gridfigures import grid_figure
from .heatmaps import AxisText, Grid, check_not_empty, numbers, odd_cells, odd_note
from .labels import plain, token_labels
from .ranges import find_range
from .themes import ThemeName, theme_named

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from ..experiments import Result

Run = Literal["edited", "clean", "difference"]


def activation(
    data: Result | Any,
    site: str | None = None,
    *,
    run: Run = "edited",
    rows: int | None = None,
    columns: int | None = None,
    at: Mapping[int, int] | None = None,
    tokens: Sequence[str] | None = None,
    positions: int | tuple[int, ...] | None = None,
    trim: float | None = 0.995,
    limit: float | None = None,
    title: str | None = None,
    theme: ThemeName | None = None,
) -> go.Figure:
    """A heatmap of two axes of an activation: one cell an entry, in the activation's own unit.

    Rows run from top to bottom and columns from left to right; with a position axis, its entries are labelled with
    number and token. Zero has the page's colour, positive values are orange, negative ones blue. NaN cells are grey,
    +∞ yellow, -∞ green; they are counted under the title. A single row or column is drawn as a strip. Hovering tells
    the numbers along both axes and the exact value, also where the colour is trimmed.

    Args:
        data: a result with captured activations, or a tensor or array of any dtype and at least one axis.
        site: which captured activation of a result (a key of `result.activations`); may be left out when there is one.
        run: of a result: its edited run, its clean run, or edited minus clean.
        rows, columns: axes of the tensor, negative from the end. By default the position axis as rows, the last other
            axis as columns; without positions the last two.
        at: entry of each other axis, `{1: 3}`; 0 where left out. `{0: 0}` is the first batch row.
        tokens: texts of the tokens, for a tensor; a result has its own.
        positions: which axes of the tensor are token positions. By default the one after the batch axis that has as
            many entries as there are tokens; where several have, one must be named.
        trim: share of the cells that have an exact colour. Where the largest of all is more than 1.5 times as far
            out, the colours end there and the colour bar says ≤ and ≥; None never trims.
        limit: the value of the last colour, in place of what the cells say.
        title: in place of the site's name.
        theme: "light" or "dark"; None follows plotly's default template.

    Raises:
        PlotError: no such activation or axis, an empty tensor, or several axes that may be the position.
    """
    look = theme_named(theme)
    if hasattr(data, "clean_activations"):
        site, values = captured(data, site, run)
        tokens = data.tokens if tokens is None else tokens
        heading = plain(title or site) + ("" if run == "edited" else f" ({run})")
    else:
        values, heading = numbers(data), plain(title or site or "activation")
    if values.ndim == 0:
        raise PlotError("A single number has no axes to draw.")
    full_shape = values.shape
    names = [f"axis {number}" for number in range(values.ndim)]
    if values.ndim == 1:
        values, names = values[None], ["", "axis 0"]
    check_not_empty(values, heading)
    marked = _positions(values.shape, tokens or (), positions)
    row, column = _axes(values.ndim, marked, rows, columns)
    index: list[Any] = [0] * values.ndim
    for axis, number in (at or {}).items():
        axis = _axis(axis, values.ndim, "at")
        if axis in (row, column):
            raise PlotError(f"at: axis {axis} is drawn; give an entry for the others only.")
        index[axis] = _entry(number, values.shape[axis], axis)
    index[row] = index[column] = slice(None)
    picture = values[tuple(index)]
    if row > column:
        picture = picture.T
    row_text, column_text = (
        AxisText("position", token_labels(tokens)) if axis in marked and tokens else AxisText(names[axis])
        for axis in (row, column)
    )
    grid = Grid(picture, row_text, column_text, "difference" if run == "difference" else "activation")
    span = find_range(picture, trim, limit=limit)
    fixed = ", ".join(
        f"{names[i]} = {index[i]}" for i in range(values.ndim) if i not in (row, column) and values.shape[i] > 1
    )
    notes = [f"shape {list(full_shape)}" + (f", {fixed}" if fixed else "")]
    notes += [note for note in (span.note, odd_note(odd_cells(grid))) if note]
    return grid_figure(grid, span, look, heading, notes, cell=(34, 24), downwards=True)


def captured(result: Result, site: str | None, run: Run) -> tuple[str, np.ndarray]:
    if run not in ("edited", "clean", "difference"):
        raise PlotError(f'run: "edited", "clean" or "difference", not {run!r}.')
    known = list(result.activations)
    if not known:
        raise PlotError("The result holds no activations: add a Capture(site=...) step to the recipe.")
    if site is None:
        if len(known) > 1:
            raise PlotError(f"site: the result holds several activations, say which: {', '.join(known)}.")
        site = known[0]
    if site not in known:
        raise PlotError(f"site: {site!r} was not captured; there are: {', '.join(known)}.")
    if run == "edited":
        return site, numbers(result.activations[site])
    if site not in result.clean_activations:
        raise PlotError(f"run: the clean run has no activation of {site!r}.")
    clean = numbers(result.clean_activations[site])
    if run == "clean":
        return site, clean
    edited = numbers(result.activations[site])
    if edited.shape != clean.shape:
        raise PlotError(f"run: the runs have different shapes, {list(edited.shape)} and {list(clean.shape)}.")
    with np.errstate(invalid="ignore"):
        return site, edited - clean


def _positions(shape: Sequence[int], tokens: Sequence[str], positions: int | tuple[int, ...] | None) -> tuple[int, ...]:
    if positions is not None:
        chosen = (positions,) if isinstance(positions, int) else positions
        axes = tuple(_axis(axis, len(shape), "positions") for axis in chosen)
        for axis in axes:
            if tokens and shape[axis] != len(tokens):
                raise PlotError(
                    f"positions: axis {axis} has {shape[axis]} entries, but there are {len(tokens)} tokens."
                )
        return axes
    first = 1 if len(shape) > 2 else 0
    fitting = tuple(axis for axis in range(first, len(shape)) if tokens and shape[axis] == len(tokens))
    if len(fitting) > 1:
        raise PlotError(
            f"positions: axes {list(fitting)} of {list(shape)} all have as many entries as there are tokens; say which "
            f"are positions, as in positions={fitting[0]} or, for attention weights, positions={fitting[-2:]}."
        )
    return fitting


def _axes(dimensions: int, marked: tuple[int, ...], rows: int | None, columns: int | None) -> tuple[int, int]:
    row = _axis(rows, dimensions, "rows") if rows is not None else None
    column = _axis(columns, dimensions, "columns") if columns is not None else None
    if row is None:
        free = [axis for axis in range(dimensions) if axis != column]
        row = next((axis for axis in marked if axis != column), free[-2] if column is None else free[-1])
    if column is None:
        column = next(axis for axis in reversed(range(dimensions)) if axis != row)
    if row == column:
        raise PlotError(f"rows and columns: both are axis {row}.")
    return row, column


def _axis(axis: int, dimensions: int, field: str) -> int:
    if not -dimensions <= axis < dimensions:
        raise PlotError(f"{field}: there is no axis {axis}; the tensor has {dimensions}.")
    return axis % dimensions


def _entry(number: int, size: int, axis: int) -> int:
    if not -size <= number < size:
        raise PlotError(f"at: axis {axis} has {size} entries, there is no {number}.")
    return number % size
