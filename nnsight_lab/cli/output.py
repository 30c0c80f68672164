"""Printing: aligned tables for people, JSON for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec


def print_json(data: Any) -> None:
    """Write plain data as JSON; NaN and infinities, which JSON does not have, as null."""
    print(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells in columns: the first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def number(value: float, done: bool = True) -> str:
    """A cell of a grid: four digits, "-" where it was not computed."""
    if not done:
        return "-"
    return "NaN" if math.isnan(value) else f"{value:.4g}"
