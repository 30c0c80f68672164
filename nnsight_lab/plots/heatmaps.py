"""The heatmap that all grids are drawn with.

Layers: the numbers, and over them one for each kind of cell that is no finite number, in a colour of its own with its
sign written in the cell where there is room, so that a NaN is never mistaken for a zero. The first layer holds the
exact values, and the colours alone are trimmed: hovering always tells the true number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import PlotError
from .labels import counted
from .ranges import Range
from .themes import Theme

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Signs are written into cells of grids up to this size; in larger ones they would be unreadable.
_MOST_WRITTEN = 2000
_MISSING = "not computed"


@dataclass(frozen=True)
class AxisText:
    """The text of one axis.

    Attributes:
        title: its name.
        labels: one for each entry, all different; None numbers the entries from 0.
    """

    title: str
    labels: tuple[str, ...] | None = None

    def coordinates(self, size: int) -> list[str] | list[int]:
        """What stands at each of the `size` entries. Raises PlotError for another number of labels."""
        if self.labels is None:
            return list(range(size))
        if len(self.labels) != size:
            raise PlotError(f"{self.title}: {counted(len(self.labels), 'label')} for {size} entries.")
        return list(self.labels)


@dataclass(frozen=True)
class Grid:
    """A picture of numbers.

    Attributes:
        values: `[row, column]`, float64.
        rows, columns: texts of the axes.
        quantity: what the numbers are, with the unit: the colour bar's title.
        missing: `[row, column]`, cells that were never computed; None where all were.
        written: `[row, column]`, texts to write into the cells that hold a finite number.
        hover: `[row, column]`, further lines for hovering, in plotly's markup.
    """

    values: np.ndarray
    rows: AxisText
    columns: AxisText
    quantity: str
    missing: np.ndarray | None = None
    written: Sequence[Sequence[str]] | None = None
    hover: Sequence[Sequence[str]] | None = None


def numbers(values: Any) -> np.ndarray:
    """A tensor or array as float64, exactly. Raises PlotError for complex numbers and for what holds no numbers."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if values.is_complex():
            raise PlotError("Complex numbers have no place on one colour scale: plot .real, .imag or .abs().")
        return np.asarray(values.double().numpy())
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise PlotError(f"A tensor or array of numbers is needed, not {type(values).__name__}.") from error


def odd_cells(grid: Grid) -> dict[str, np.ndarray]:
    """For each kind of cell that is no finite number, where there are such: the mask, by the kind's name."""
    missing = grid.missing if grid.missing is not None else np.zeros(grid.values.shape, dtype=bool)
    masks = {
        "NaN": np.isnan(grid.values) & ~missing,
        "+∞": np.isposinf(grid.values) & ~missing,
        "\u2212∞": np.isneginf(grid.values) & ~missing,
        _MISSING: missing,
    }
    return {name: mask for name, mask in masks.items() if mask.any()}


def odd_note(kinds: dict[str, np.ndarray]) -> str:
    """How many cells of each kind there are, in words; empty where all are finite."""
    return ", ".join(f"{counted(int(mask.sum()), 'cell')} {name}" for name, mask in kinds.items())


def layers(grid: Grid, span: Range, theme: Theme, signed: bool = True, colorbar: bool = True) -> list[go.Heatmap]:
    """The traces of a grid: "numbers", then one called "NaN", "+∞", "−∞" or "not computed" for each kind there is."""
    import plotly.graph_objects as go

    kinds = odd_cells(grid)
    x = grid.columns.coordinates(grid.values.shape[1])
    y = grid.rows.coordinates(grid.values.shape[0])
    values = grid.values
    for mask in kinds.values():
        values = np.where(mask, np.nan, values)
    places, texts = span.ticks
    where = f"{grid.rows.title} %{{y}}<br>{grid.columns.title} %{{x}}<br>"
    extra = "<br>%{customdata}" if grid.hover is not None else ""
    shared: dict[str, Any] = {"x": x, "y": y, "xgap": _gap(len(x)), "ygap": _gap(len(y)), "customdata": grid.hover}
    drawn = [
        go.Heatmap(
            **shared,
            z=_compact(values),
            zmin=span.low,
            zmax=span.high,
            zmid=0 if signed else None,
            colorscale=theme.scale(theme.diverging if signed else theme.sequential),
            showscale=colorbar,
            colorbar={
                "title": {"text": grid.quantity, "side": "right"},
                "tickvals": places,
                "ticktext": texts,
                "thickness": 14,
                "outlinewidth": 0,
            },
            text=None if grid.written is None else np.where(np.isnan(values), "", np.asarray(grid.written)),
            texttemplate="%{text}" if grid.written is not None else None,
            textfont={"size": 11} if grid.written is not None else None,
            hoverongaps=False,
            hovertemplate=f"{where}<b>%{{z:.9~g}}</b>{extra}<extra></extra>",
            name="numbers",
        )
    ]
    colors = {
        "NaN": theme.nan,
        "+∞": theme.positive_infinity,
        "\u2212∞": theme.negative_infinity,
        _MISSING: theme.missing,
    }
    for name, mask in kinds.items():
        written = values.size <= _MOST_WRITTEN and name != _MISSING
        drawn.append(
            go.Heatmap(
                **shared,
                z=np.where(mask, np.float32(1), np.float32(np.nan)),
                zmin=0,
                zmax=1,
                colorscale=[[0, colors[name]], [1, colors[name]]],
                showscale=False,
                # plotly writes a text into cells without a number as well, so the others get an empty one.
                text=np.where(mask, name, "") if written else None,
                texttemplate="%{text}" if written else None,
                hoverongaps=False,
                hovertemplate=f"{where}<b>{name}</b>{extra}<extra></extra>",
                name=name,
            )
        )
    return drawn


def _compact(values: np.ndarray) -> np.ndarray:
    """The same numbers in half the space, where single precision holds them exactly."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return single if np.array_equal(single.astype(np.float64), values, equal_nan=True) else values


def _gap(cells: int) -> int:
    return 1 if cells <= 64 else 0


def check_not_empty(values: np.ndarray, what: str) -> None:
    """Raises PlotError where there is no cell to draw."""
    if not values.size:
        raise PlotError(f"{what} is empty: its shape is {list(values.shape)}, there is nothing to draw.")
