"""The error that plots raise on purpose."""

from __future__ import annotations


class PlotError(ValueError):
    """Something cannot be drawn or saved as asked; the message says what to give instead."""
