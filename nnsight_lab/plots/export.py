"""Figures as files. plotly draws in a browser: HTML needs nothing, pictures need kaleido and a Chrome or Chromium."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import PlotError

if TYPE_CHECKING:
    import plotly.graph_objects as go

_PICTURES = (".png", ".svg", ".pdf", ".jpg", ".jpeg", ".webp")


def save(
    figure: go.Figure,
    path: str | Path,
    *,
    width: int | None = None,
    height: int | None = None,
    scale: float = 2.0,
) -> Path:
    """Write a figure to a file, whose ending says the format, and return its path.

    Args:
        figure: any plotly figure.
        path: ends in .html (interactive, one file that needs no network), .png, .jpg, .webp, .svg or .pdf.
        width, height: in pixels; None takes the figure's own.
        scale: of pixel formats: 2 gives twice as many pixels along each side.

    Raises:
        PlotError: another ending, or kaleido or the browser is missing; the message says what to install.
        OSError: the file cannot be written.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending in (".html", ".htm"):
        path.write_text(figure.to_html(include_plotlyjs=True, full_html=True), encoding="utf-8")
        return path
    if ending not in _PICTURES:
        known = ", ".join((".html", *_PICTURES))
        raise PlotError(f"{path.name}: the ending says the format; it is one of {known}.")
    kind = ending[1:].upper()
    instead = f"Or save {path.stem}.html, which needs nothing."
    if importlib.util.find_spec("kaleido") is None:
        raise PlotError(f"Saving {kind} needs kaleido: pip install 'nnsight-lab[plots]'. {instead}")
    try:
        drawn = figure.to_image(format=ending[1:], width=width, height=height, scale=scale)
    except Exception as error:
        if not _no_browser(error):
            raise
        raise PlotError(
            f"Saving {kind} needs Chrome or Chromium, which was not found: run plotly_get_chrome. {instead}"
        ) from error
    path.write_bytes(drawn)
    return path


def _no_browser(error: BaseException | None) -> bool:
    """Whether the browser was missing; plotly raises its own error from the one that says so."""
    while error is not None:
        if type(error).__name__ == "ChromeNotFoundError" or "Kaleido requires Google Chrome" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
