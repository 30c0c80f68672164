"""What edits did to the likeliest next tokens, as bars."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .errors import PlotError
from .labels import plain, token_text
from .themes import ThemeName, dress, theme_named

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from ..experiments import Result
    from ..experiments.result import TokenRow


def topk(
    result: Result, *, k: int | None = None, title: str | None = None, theme: ThemeName | None = None
) -> go.Figure:
    """Bars of logit differences, edited minus clean, in logits: one for each token of the top-k table.

    Tokens stand from top to bottom by their rank in the clean run. A bar to the right (orange) is a logit that the
    edits raised, one to the left (blue) one that they lowered; the scale is symmetric around zero. At the end of a bar
    stand the difference and the move in rank ("#0 → #3", 0 is the likeliest). A difference that is NaN or infinite has
    no bar but its sign in the bar's place. Hovering tells logit, probability and rank, before and after.

    Args:
        result: of a recipe whose model gives logits.
        k: the first rows only; None draws all of the table.
        title: in place of the prompt's end.
        theme: "light" or "dark"; None follows plotly's default template.

    Raises:
        PlotError: the result has no table, or `k` is below 1.
    """
    import plotly.graph_objects as go

    look = theme_named(theme)
    if k is not None and k < 1:
        raise PlotError(f"k: at least 1, not {k}.")
    if not result.rows:
        raise PlotError("The result has no top-k table, because the model's output is no logits.")
    rows = result.rows[:k]
    differences = [row.logit_difference for row in rows]
    finite = [abs(value) for value in differences if math.isfinite(value)]
    reach = max(finite, default=0.0) or 1.0
    labels = [f"{token_text(row.token)}  <span style='color:{look.faint}'>{row.token_id}</span>" for row in rows]
    figure = go.Figure(
        go.Bar(
            x=[value if math.isfinite(value) else None for value in differences],
            y=labels,
            orientation="h",
            marker={"color": [look.increase if value > 0 else look.decrease for value in differences]},
            customdata=[_hover(row) for row in rows],
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    for label, row, value in zip(labels, rows, differences, strict=True):
        right = not value < 0
        figure.add_annotation(
            x=value if math.isfinite(value) else 0,
            y=label,
            text=f"{_signed(value)}  <span style='color:{look.faint}'>#{row.clean_rank} → #{row.edited_rank}</span>",
            showarrow=False,
            xanchor="left" if right else "right",
            xshift=6 if right else -6,
            font={"size": 12, "color": look.ink},
        )
    prompt = "".join(result.tokens)
    heading = (
        plain(title) if title else f"Next token after {plain(repr(prompt if len(prompt) < 60 else '…' + prompt[-58:]))}"
    )
    odd = len(differences) - len(finite)
    notes = ["logit difference, edited minus clean; # is the rank, clean → edited"]
    if odd:
        notes.append(f"{odd} of {len(rows)} differences are no finite numbers")
    dress(figure, look, heading, notes, width=760, height=150 + 26 * len(rows))
    ends = 1.65 * reach
    figure.update_xaxes(
        title="logit difference (logits)",
        range=[-ends, ends],
        zeroline=True,
        zerolinewidth=1,
        zerolinecolor=look.faint,
        fixedrange=False,
    )
    figure.update_yaxes(
        type="category", autorange="reversed", dtick=1, automargin=True, showgrid=False, ticksuffix=" ", title=None
    )
    figure.update_layout(bargap=0.3, showlegend=False)
    return figure


def _signed(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+∞" if value > 0 else "\u2212∞"
    return f"{value:+.3f}".replace("-", "\u2212")


def _hover(row: TokenRow) -> str:
    return (
        f"<b>{token_text(row.token)}</b> (id {row.token_id})<br>"
        f"logit {row.clean_logit:.9g} → {row.edited_logit:.9g}<br>difference {row.logit_difference:+.9g}<br>"
        f"probability {row.clean_probability:.6g} → {row.edited_probability:.6g}<br>"
        f"rank {row.clean_rank} → {row.edited_rank}"
    )
