"""A function whose annotations are never evaluated."""

from __future__ import annotations


def forward(x: NotDefinedAnywhere) -> Nor[This]:  # noqa: F821
    y: AlsoUnknown = abs(x)  # noqa: F821
    return y + abs(x)
