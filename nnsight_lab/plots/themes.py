"""Colours for a light and a dark page, chosen to stay apart under colour blindness.

Signed values run from blue over the page's own colour to red-orange, so that zero disappears into the page and both
signs differ in hue and grow in contrast; blue and orange are told apart with every common kind of colour blindness.
Values that are no finite number get colours that the scales do not contain (after Okabe and Ito's palette).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from typing import Any, Literal

from .errors import PlotError

ThemeName = Literal["light", "dark"]

# Pixels of a title: height of a line, and width of a letter, on the large side.
_LINE, _LETTER = 20, 8


@dataclass(frozen=True)
class Theme:
    """Colours of one kind of page.

    Attributes:
        template: plotly's template that fonts and grid lines come from.
        page, ink, faint: background, text, and secondary text.
        diverging: colours from the most negative over zero to the most positive.
        sequential: colours from zero to the largest, for values without a sign.
        nan, positive_infinity, negative_infinity, missing: of cells that hold no finite number.
    """

    template: str
    page: str
    ink: str
    faint: str
    diverging: tuple[str, ...]
    sequential: tuple[str, ...]
    nan: str
    positive_infinity: str
    negative_infinity: str
    missing: str

    @property
    def decrease(self) -> str:
        """A strong colour for what became smaller."""
        return self.diverging[1]

    @property
    def increase(self) -> str:
        """A strong colour for what became larger."""
        return self.diverging[-2]

    def scale(self, colors: tuple[str, ...]) -> list[list[Any]]:
        """`colors` at equal distances, as plotly takes a colour scale."""
        return [[number / (len(colors) - 1), color] for number, color in enumerate(colors)]


LIGHT = Theme(
    template="plotly_white",
    page="#ffffff",
    ink="#1f2430",
    faint="#5b6270",
    diverging=("#08306b", "#2171b5", "#6baed6", "#c6dbef", "#ffffff", "#fdd0a2", "#fd8d3c", "#d94801", "#7f2704"),
    sequential=("#ffffff", "#c6dbef", "#6baed6", "#2171b5", "#08306b"),
    nan="#8a8a8a",
    positive_infinity="#f0d500",
    negative_infinity="#009e73",
    missing="#e4e4e8",
)
DARK = Theme(
    template="plotly_dark",
    page="#14161a",
    ink="#e8eaee",
    faint="#a5abb8",
    diverging=("#d6ebff", "#7cbcf5", "#3a86cc", "#1d4672", "#14161a", "#6e3310", "#cc5f16", "#f9a25c", "#ffe6cf"),
    sequential=("#14161a", "#1d4672", "#3a86cc", "#7cbcf5", "#d6ebff"),
    nan="#8a8a8a",
    positive_infinity="#f0d500",
    negative_infinity="#009e73",
    missing="#30343c",
)
_THEMES = {"light": LIGHT, "dark": DARK}


def theme_named(name: str | None) -> Theme:
    """The theme "light" or "dark"; None follows plotly's default template.

    Raises:
        PlotError: another name.
    """
    if name is None:
        import plotly.io

        return DARK if "dark" in str(plotly.io.templates.default) else LIGHT
    if name not in _THEMES:
        raise PlotError(f'theme: "light" or "dark", not {name!r}.')
    return _THEMES[name]


def dress(figure: Any, theme: Theme, title: str, notes: list[str], width: int, height: int) -> Any:
    """Give `figure` its title, the notes under it, the theme's colours and a size in pixels; returns it.

    A title that is wider than the figure goes on in further lines, by which the figure grows.
    """
    headings = wrapped(title, width - 32)
    lines = "".join(f'<br><span style="font-size:12px;color:{theme.faint}">{note}</span>' for note in notes)
    figure.update_layout(
        template=theme.template,
        title={
            "text": "<br>".join(headings) + lines,
            "font": {"size": 15, "color": theme.ink},
            "x": 0,
            "xref": "container",
            "pad": {"l": 16},
            "y": 1 - 20 / (height + _LINE * (len(headings) - 1)),
            "yanchor": "top",
            "yref": "container",
        },
        font={"size": 12, "color": theme.ink},
        paper_bgcolor=theme.page,
        plot_bgcolor=theme.page,
        width=width,
        height=height + _LINE * (len(headings) - 1),
        margin={"t": 48 + 17 * len(notes) + _LINE * (len(headings) - 1), "r": 24, "b": 56, "l": 64},
    )
    return figure


def wrapped(title: str, width: int) -> list[str]:
    """A title in lines of at most `width` pixels, as far as it can be parted: before a dot and after a space."""
    lines = [""]
    for part in re.findall(r"[. ]?[^. ]+[. ]*$|[. ]?[^. ]*", title):
        if lines[-1] and len(unescape(lines[-1] + part)) * _LETTER > width:
            lines.append("")
        lines[-1] += part
    return lines
