"""What went wrong, in one line."""

from __future__ import annotations


class UsageError(ValueError):
    """What was typed cannot be done; the message says what to type instead."""


def one_line(error: BaseException) -> str:
    """The message of an error without line breaks; the error's name where it has no message."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__
