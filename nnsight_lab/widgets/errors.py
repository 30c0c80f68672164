"""Every error that the Lab itself raises on purpose."""

from __future__ import annotations


class LabError(ValueError):
    """Something asked of the Lab does not fit its state; the message says what to do."""
