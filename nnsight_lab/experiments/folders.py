"""Folders to store results in: made where they are missing, and not written into by accident."""

from __future__ import annotations

from pathlib import Path

from .errors import StoredResultError


def make_folder(folder: Path, overwrite: bool) -> None:
    """Make `folder` ready to be written to.

    Raises:
        StoredResultError: it is a file, or it holds something and `overwrite` is off.
    """
    if folder.exists() and not folder.is_dir():
        raise StoredResultError(f"{folder} is a file; results are stored in folders.")
    if not overwrite and folder.is_dir() and any(folder.iterdir()):
        raise StoredResultError(f"{folder} holds something already: take another folder, or overwrite=True.")
    folder.mkdir(parents=True, exist_ok=True)
