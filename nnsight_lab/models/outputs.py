"""Indexing a model's output by position: `output[0, -1, token]` is `output.logits[0, -1, token]`.

A causal language model returns a transformers `ModelOutput`, which takes a field's name, its number, or a slice of
fields. A tuple means nothing to it (it raises TypeError); code written for models whose output is the logits uses just
that. So the class is given this one further meaning, for outputs that have logits; everything else about it, its type,
pickling and `to_tuple()` included, stays what it was.
"""

from __future__ import annotations

import functools
from typing import Any


def index_logits_by_position() -> None:
    """Let every transformers `ModelOutput` with logits be indexed by a tuple. A second call does nothing."""
    from transformers.utils import ModelOutput

    field = ModelOutput.__getitem__
    if getattr(field, "_indexes_logits", False):
        return

    @functools.wraps(field)
    def __getitem__(self: Any, key: Any) -> Any:
        if type(key) is tuple:
            logits = getattr(self, "logits", None)
            if logits is not None:
                return logits[key]
        return field(self, key)

    __getitem__._indexes_logits = True  # type: ignore[attr-defined]
    ModelOutput.__getitem__ = __getitem__
