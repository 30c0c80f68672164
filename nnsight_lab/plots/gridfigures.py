"""A grid as a figure of its own: size, axes and title around the heatmap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .heatmaps import AxisText, Grid, layers
from .ranges import Range
from .themes import Theme, dress

if TYPE_CHECKING:
    import plotly.graph_objects as go

_MOST_LABELS = 40


def grid_figure(
    grid: Grid,
    span: Range,
    theme: Theme,
    heading: str,
    notes: list[str],
    *,
    signed: bool = True,
    cell: tuple[int, int] = (52, 20),
    downwards: bool = False,
) -> go.Figure:
    """The figure of one grid.

    Args:
        heading, notes: the title and the lines under it, in plotly's markup.
        cell: wanted width and height of a cell in pixels; large grids get smaller ones.
        downwards: the first row at the top, else at the bottom.
    """
    import plotly.graph_objects as go

    height, width = grid.values.shape
    figure = go.Figure(layers(grid, span, theme, signed))
    dress(
        figure,
        theme,
        heading,
        notes,
        width=min(1100, max(560, 240 + cell[0] * width)),
        height=min(960, 190 + 17 * len(notes) + max(cell[1] * height, 60)),
    )
    figure.update_xaxes(**axis_style(grid.columns, width, theme))
    figure.update_yaxes(**axis_style(grid.rows, height, theme), autorange="reversed" if downwards else True)
    return figure


def axis_style(text: AxisText, size: int, theme: Theme) -> dict[str, Any]:
    """Settings of an axis of a heatmap: a label at every entry where they fit, else at some."""
    style: dict[str, Any] = {
        "title": {"text": text.title, "standoff": 10},
        "showgrid": False,
        "zeroline": False,
        "showline": True,
        "mirror": True,
        "linewidth": 1,
        "linecolor": theme.faint,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": theme.faint,
        "automargin": True,
    }
    if text.labels is not None:
        style["type"] = "category"
        style |= {"dtick": 1} if size <= _MOST_LABELS else {"nticks": _MOST_LABELS}
    elif size <= 16:
        style["dtick"] = 1
    return style
