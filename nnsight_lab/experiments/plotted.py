"""`.plot()` of every result type: the one place where experiments reach for pictures, and only when asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import plotly.graph_objects as go


class Plotted:
    """Base of what `nnsight_lab.plots` can draw."""

    __slots__ = ()

    def plot(self, *arguments: Any, kind: str | None = None, **options: Any) -> go.Figure:
        """The figure of this result, a plotly one; see `nnsight_lab.plots.plot` for the kinds and their options.

        Raises:
            PlotError: there is no picture of that kind, or an option does not fit.
        """
        from ..plots import plot

        return plot(self, *arguments, kind=kind, **options)
