"""Two of the named axes of a sweep's cells, as a grid: which are drawn, and what is written at them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import PlotError
from .heatmaps import AxisText, Grid, check_not_empty
from .labels import plain, shorten_sites, token_text

if TYPE_CHECKING:
    from ..experiments.grid import Axis


@dataclass(frozen=True)
class Slice:
    """Two axes of a grid of cells.

    Attributes:
        axes: of the grid.
        row, column: numbers of the axes drawn; no column for a grid of one axis.
        index: of the cells that are drawn.
    """

    axes: tuple[Axis, ...]
    row: int
    column: int | None
    index: tuple[Any, ...]

    @classmethod
    def choose(
        cls, axes: tuple[Axis, ...], rows: str | None, columns: str | None, at: Mapping[str, int] | None
    ) -> Slice:
        """By default the first two axes that have several entries; `at` gives entries of the others, by default 0.

        Raises:
            PlotError: no such axis or entry.
        """
        names = [axis.name for axis in axes]
        row = _place(rows, names, "rows") if rows is not None else None
        column = _place(columns, names, "columns") if columns is not None else None
        if row is not None and row == column:
            raise PlotError(f"rows and columns: both are {rows!r}.")
        free = sorted((i for i in range(len(axes)) if i not in (row, column)), key=lambda i: len(axes[i]) < 2)
        if row is None and column is None:
            row, *others = sorted(free[:2])
            column = next(iter(others), None)
        elif row is None:
            if not free:
                raise PlotError(f"columns: {columns!r} is the only axis; name it as rows.")
            row = free[0]
        elif column is None and free:
            column = free[0]
        index: list[Any] = [0] * len(axes)
        for name, number in (at or {}).items():
            place = _place(name, names, "at")
            if place in (row, column):
                raise PlotError(f"at: the axis {name!r} is drawn; give an entry for the others only.")
            if not -len(axes[place]) <= number < len(axes[place]):
                raise PlotError(f"at: the axis {name!r} has {len(axes[place])} entries, there is no {number}.")
            index[place] = number % len(axes[place])
        for drawn in (row, column):
            if drawn is not None:
                index[drawn] = slice(None)
        return cls(axes, row, column, tuple(index))

    def grid(self, values: np.ndarray, done: np.ndarray, quantity: str) -> Grid:
        """The cells drawn, as a grid. Raises PlotError where there are none."""
        drawn, missing = self._picture(values), ~self._picture(done)
        check_not_empty(drawn, "The grid")
        columns = AxisText("", ("all",)) if self.column is None else _text(self.axes[self.column])
        return Grid(
            drawn, _text(self.axes[self.row]), columns, quantity, missing=missing, hover=self._sites(drawn.shape)
        )

    @property
    def fixed(self) -> list[str]:
        """What the axes that are not drawn are held at, where they have several entries."""
        return [
            f"{axis.name} {plain(axis.labels[number])}"
            for axis, number in zip(self.axes, self.index, strict=True)
            if not isinstance(number, slice) and len(axis) > 1
        ]

    def _picture(self, cells: np.ndarray) -> np.ndarray:
        picture = cells[self.index]
        if self.column is None:
            return picture[:, None]
        return picture.T if self.row > self.column else picture

    def _sites(self, shape: tuple[int, ...]) -> list[list[str]]:
        """The whole name of each cell's site, of which the axis may show a part."""
        place = [axis.name for axis in self.axes].index("site")
        sites = [plain(label) for label in self.axes[place].labels]
        number = self.index[place]
        if not isinstance(number, slice):
            return [[sites[number]] * shape[1] for _ in range(shape[0])]
        if place == self.row:
            return [[site] * shape[1] for site in sites]
        return [sites for _ in range(shape[0])]


def sites_name(axes: tuple[Axis, ...]) -> str:
    """What the sites of a grid have in common: the site itself where there is one."""
    labels = next(axis.labels for axis in axes if axis.name == "site")
    if len(labels) == 1:
        return plain(labels[0])
    name = shorten_sites(labels)[1]
    return f"{len(labels)} sites" if name == "site" else name


def metric_name(metric: Any) -> str:
    """The name of a metric with its tokens: "logit ␣Paris − ␣Berlin"."""
    answers = [token_text(str(getattr(metric, name))) for name in metric.__struct_fields__]
    kind = type(metric).__name__
    if kind == "LogitDiff":
        return f"logit {answers[0]} \u2212 {answers[1]}"
    return "KL (nats)" if kind == "KL" else f"{kind.lower()} of {answers[0]}"


def _place(name: str, names: list[str], field: str) -> int:
    if name not in names:
        raise PlotError(f"{field}: there is no axis {name!r}; there are {', '.join(names)}.")
    return names.index(name)


def _text(axis: Axis) -> AxisText:
    if axis.name == "site":
        labels, title = shorten_sites(axis.labels)
        return AxisText(title, labels)
    if axis.name == "position":
        return AxisText("position", tuple(_position(label) for label in axis.labels))
    return AxisText(axis.name, tuple(plain(label) for label in axis.labels))


def _position(label: str) -> str:
    number, space, token = label.partition(" ")
    return f"{number}{space}{token_text(token)}"
