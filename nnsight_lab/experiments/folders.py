"""Folders that results are stored in: made where they are missing, not written into by accident, read with care."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from torch import Tensor

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


@contextmanager
def reading(
    folder: Path, what: str, json_name: str, tensors_name: str, version: int
) -> Iterator[tuple[Any, dict[str, Tensor]]]:
    """A block that takes a stored `what` apart; gives its JSON as plain data and its tensors by name.

    Raises:
        StoredResultError: the folder holds no such thing, one of a later version, or one that is damaged: its files
            cannot be read, or the block misses something in them.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not (folder / json_name).is_file() or not (folder / tensors_name).is_file():
        raise StoredResultError(f"{folder} holds no {what}: it needs {json_name} and {tensors_name}.")
    try:
        data = msgspec.json.decode((folder / json_name).read_bytes())
        found = data.get("version") if isinstance(data, dict) else None
        if isinstance(found, int) and found > version:
            raise StoredResultError(f"{folder}: version {found}, this nnsight-lab reads up to {version}.")
        yield data, load_file(folder / tensors_name)
    except (msgspec.DecodeError, SafetensorError, KeyError, IndexError) as error:
        raise StoredResultError(f"{folder}: the stored {what} is damaged: {error}") from error
