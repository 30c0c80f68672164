"""Attention patterns: for every head, how much each token takes from each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .activations import Run, captured
from .errors import PlotError
from .gridfigures import axis_style
from .heatmaps import AxisText, Grid, check_not_empty, layers, numbers, odd_cells, odd_note
from .labels import plain, token_labels
from .ranges import find_range
from .themes import ThemeName, dress, theme_named

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from ..experiments import Result


def attention(
    data: Result | Any,
    tokens: Sequence[str] | None = None,
    *,
    site: str | None = None,
    run: Run = "edited",
    heads: Sequence[int] | None = None,
    batch: int = 0,
    key_tokens: Sequence[str] | None = None,
    title: str | None = None,
    theme: ThemeName | None = None,
) -> go.Figure:
    """One square for each head: rows are the tokens that look (queries), columns the tokens looked at (keys).

    A cell is an attention weight, without unit; each row of softmax weights sums to 1. Weights without a negative value
    are drawn from the page's colour at 0 to dark blue at the largest, at least at 1 where they are probabilities; with
    a negative value (differences of patterns) zero-centred, orange for positive, blue for negative. All heads share one
    scale. NaN is grey, +∞ yellow, -∞ green; they are counted under the title. A single head fills the figure. Hovering
    tells both tokens and the exact weight.

    Args:
        data: weights `[query, key]`, `[head, query, key]` or `[batch, head, query, key]`, or a result that captured
            such a value.
        tokens: texts of the query tokens; a result has its own. None numbers the positions.
        site, run: of a result, as in `activation`.
        heads: which to draw, in this order; None draws all.
        batch: the batch row.
        key_tokens: texts of the keys, where they are other tokens than the queries (cross-attention, a cache).
        title: in place of the site's name.
        theme: "light" or "dark"; None follows plotly's default template.

    Raises:
        PlotError: the shape is none of these, there is no such head or batch row, or the tokens are too few or many.
    """
    look = theme_named(theme)
    heading = title or "attention"
    if hasattr(data, "clean_activations"):
        site, weights = captured(data, site, run)
        heading = title or site
        tokens = data.tokens if tokens is None else tokens
    else:
        weights = numbers(data)
    weights = _by_head(weights, batch)
    check_not_empty(weights, heading)
    chosen = _chosen(heads, len(weights))
    rows = AxisText("query", token_labels(tokens) if tokens else None)
    if key_tokens is None and weights.shape[-1] == weights.shape[-2]:
        key_tokens = tokens
    keys = AxisText("key", token_labels(key_tokens) if key_tokens else None)
    shown = weights[list(chosen)]
    finite = shown[np.isfinite(shown)]
    signed = bool((finite < 0).any())
    probabilities = bool(finite.size) and not signed and float(finite.max()) <= 1.0 + 1e-6
    span = find_range(shown, None, signed=signed, limit=1.0 if probabilities and len(chosen) > 0 else None)
    grids = [Grid(weights[head], rows, keys, quantity="weight") for head in chosen]
    counted: dict[str, np.ndarray] = {}
    for grid in grids:
        for name, mask in odd_cells(grid).items():
            counted[name] = np.append(counted.get(name, np.zeros(0, dtype=bool)), mask)
    notes = [note for note in (odd_note(counted),) if note]
    return _panels(grids, chosen, span, signed, look, plain(heading), notes)


def _by_head(weights: np.ndarray, batch: int) -> np.ndarray:
    if weights.ndim == 4:
        if not -len(weights) <= batch < len(weights):
            raise PlotError(f"batch: there is no row {batch} among {len(weights)}.")
        return weights[batch]
    if weights.ndim == 2:
        return weights[None]
    if weights.ndim != 3:
        raise PlotError(
            "Attention weights are [query, key], [head, query, key] or [batch, head, query, key], not "
            f"{list(weights.shape)}."
        )
    return weights


def _chosen(heads: Sequence[int] | None, count: int) -> tuple[int, ...]:
    if heads is None:
        return tuple(range(count))
    if not heads:
        raise PlotError("heads: an empty list; leave it out to draw all.")
    for head in heads:
        if not -count <= head < count:
            raise PlotError(f"heads: there is no head {head} among {count}.")
    return tuple(head % count for head in heads)


def _panels(
    grids: list[Grid], heads: tuple[int, ...], span: Any, signed: bool, look: Any, heading: str, notes: list[str]
) -> go.Figure:
    from plotly.subplots import make_subplots

    across = min(len(grids), 4)
    down = math.ceil(len(grids) / across)
    side = 430 if len(grids) == 1 else 210
    height, width = 150 + 17 * len(notes) + down * (side + 26), 190 + across * side
    figure = make_subplots(
        rows=down,
        cols=across,
        subplot_titles=[f"head {head}" for head in heads] if len(grids) > 1 else None,
        shared_xaxes="all",
        shared_yaxes="all",
        horizontal_spacing=0.02,
        vertical_spacing=min(0.12, 26 / (down * (side + 26))),
    )
    for number, grid in enumerate(grids):
        for trace in layers(grid, span, look, signed, colorbar=number == 0):
            trace.hovertemplate = f"head {heads[number]}<br>{trace.hovertemplate}"
            figure.add_trace(trace, row=number // across + 1, col=number % across + 1)
    if len(grids) == 1:
        heading += f", head {heads[0]}" if heads[0] else ""
    dress(figure, look, heading, notes, width=width, height=height)
    size = grids[0].values.shape
    figure.update_xaxes(**axis_style(grids[0].columns, size[1], look) | {"title": None})
    figure.update_yaxes(**axis_style(grids[0].rows, size[0], look) | {"title": None}, autorange="reversed")
    for column in range(across):
        lowest = max(number // across for number in range(len(grids)) if number % across == column)
        figure.update_xaxes(title_text="key", title_standoff=8, showticklabels=True, row=lowest + 1, col=column + 1)
    for row in range(down):
        figure.update_yaxes(title_text="query", title_standoff=8, row=row + 1, col=1)
    figure.update_annotations(font_size=12)
    return figure
