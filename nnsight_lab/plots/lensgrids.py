"""The grid of a logit lens: what each layer would answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from .errors import PlotError
from .gridfigures import grid_figure
from .heatmaps import AxisText, Grid, check_not_empty, numbers, odd_cells, odd_note
from .labels import plain, shorten_sites, token_labels, token_text
from .ranges import find_range
from .themes import ThemeName, theme_named

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from ..experiments import LensResult

LensValue = Literal["probability", "kl", "logit", "rank"]
_QUANTITIES = {
    "probability": "probability of the token on top",
    "kl": "KL from the final answer (nats)",
    "logit": "logit of {}",
    "rank": "rank of {}",
}
_LONGEST_TOKEN = 9


def lens(
    result: LensResult,
    *,
    show: LensValue = "probability",
    trim: float | None = None,
    limit: float | None = None,
    title: str | None = None,
    theme: ThemeName | None = None,
) -> go.Figure:
    """The grid of a logit lens: one cell is what the model would predict after that layer at that position.

    The first layer stands at the bottom, the last at the top; positions run from left to right, labelled with number
    and token. In each cell stands the likeliest next token, its spaces as an open box. The colour is, from the page's
    colour at 0 to dark blue, that token's probability (0 to 1), the divergence from the model's final prediction
    (nats), or the chosen token's rank (0 is the likeliest); or, zero-centred, the chosen token's logit, orange for
    positive. NaN cells are grey, +∞ yellow, -∞ green, counted under the title. One site is drawn as one row. Hovering
    tells the whole site, the token, and the exact value.

    Args:
        result: of a lens.
        show: what the colour says; "logit" and "rank" need a lens with a chosen token.
        trim, limit: as in `activation`; nothing is trimmed by default.
        title: in place of the sites.
        theme: "light" or "dark"; None follows plotly's default template.

    Raises:
        PlotError: no such quantity, a lens without a chosen token, or an empty lens.
    """
    look = theme_named(theme)
    if show not in _QUANTITIES:
        raise PlotError(f"show: one of {', '.join(_QUANTITIES)}, not {show!r}.")
    data = getattr(result, show)
    if data is None:
        raise PlotError(f"show: {show!r} is of a chosen token, and this lens has none; give it one when it is run.")
    values = numbers(data)
    check_not_empty(values, "The lens")
    labels, name = shorten_sites(result.sites)
    top = [[token_text(token) for token in row] for row in result.top_tokens]
    grid = Grid(
        values,
        AxisText(name, labels),
        AxisText("position", token_labels(result.tokens)),
        quantity=_QUANTITIES[show].format(token_text(str(result.token))),
        written=[[_cut(token) for token in row] for row in result.top_tokens],
        hover=[
            [f"{plain(site)}<br>token on top: {token}" for token in row]
            for site, row in zip(result.sites, top, strict=True)
        ],
    )
    signed = show == "logit"
    span = find_range(values, trim, signed=signed, limit=1.0 if show == "probability" and limit is None else limit)
    notes = [f"in each cell the likeliest next token; colour: {grid.quantity}"]
    notes += [note for note in (span.note, odd_note(odd_cells(grid))) if note]
    heading = plain(title) if title else "Logit lens" + (f" at {name}" if name != "site" else "")
    return grid_figure(grid, span, look, heading, notes, signed=signed, cell=(76, 23))


def _cut(token: str) -> str:
    """A token that fits into a cell."""
    return token_text(token if len(token) <= _LONGEST_TOKEN else token[: _LONGEST_TOKEN - 1] + "…")
