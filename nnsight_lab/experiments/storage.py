"""A result in a folder: `result.json` for what is data and `tensors.safetensors` for what is tensors. No pickle.

The JSON is checked on loading like a recipe's. Names of activations are site names, which hold any character, so the
tensors are stored under numbers, and the JSON says which is which.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from torch import Tensor

from .folders import make_folder, reading
from .plan import Plan
from .recipe import Recipe
from .result import MetricValue, Result, SiteReport, Timing, TokenRow

VERSION = 1
Keys = tuple[str | int, ...]
_JSON, _TENSORS = "result.json", "tensors.safetensors"


class _Stored(Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    recipe: Recipe
    tokens: tuple[str, ...]
    source_tokens: tuple[str, ...]
    rows: tuple[TokenRow, ...]
    kl: float | None
    metric: MetricValue | None
    sites: tuple[SiteReport, ...]
    plan: Plan
    notes: tuple[str, ...]
    timing: Timing
    versions: dict[str, str]
    activations: tuple[str, ...]
    clean_activations: tuple[str, ...]
    full_logits: bool
    # JSON has no NaN and no infinities: where they stand, as the path of keys, and their names.
    special: tuple[tuple[Keys, str], ...] = ()


def save_result(result: Result, folder: Path, overwrite: bool = False) -> None:
    """Write `result` to `folder`, which is made; what is in it already stops it or, with `overwrite`, is replaced.

    Raises:
        StoredResultError: the folder holds something.
    """
    from safetensors.torch import save_file

    tensors: dict[str, Tensor] = {"clean_logits": result.clean_logits, "edited_logits": result.edited_logits}
    for name in ("full_clean_logits", "full_edited_logits"):
        value = getattr(result, name)
        if value is not None:
            tensors[name] = value
    for name in ("activations", "clean_activations"):
        tensors.update({f"{name}.{i}": value for i, value in enumerate(getattr(result, name).values())})
    special: list[tuple[Keys, str]] = []
    data = _without_special(msgspec.to_builtins(_stored(result)), (), special)
    data["special"] = special
    make_folder(folder, overwrite)
    # safetensors refuses tensors that share memory, as a run without edits makes them.
    save_file({name: value.detach().clone().contiguous() for name, value in tensors.items()}, folder / _TENSORS)
    (folder / _JSON).write_bytes(msgspec.json.format(msgspec.json.encode(data), indent=1))


def result_data(result: Result) -> dict[str, Any]:
    """Everything but the tensors as plain data for JSON; numbers that JSON does not have are None."""
    data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(_stored(result)))
    del data["special"], data["full_logits"]
    return data


def _stored(result: Result) -> _Stored:
    return _Stored(
        version=VERSION,
        recipe=result.recipe,
        tokens=result.tokens,
        source_tokens=result.source_tokens,
        rows=result.rows,
        kl=result.kl,
        metric=result.metric,
        sites=result.sites,
        plan=result.plan,
        notes=result.notes,
        timing=result.timing,
        versions=dict(result.versions),
        activations=tuple(result.activations),
        clean_activations=tuple(result.clean_activations),
        full_logits=result.full_clean_logits is not None,
    )


def load_result(folder: Path) -> Result:
    """Read what `save_result` wrote.

    Raises:
        StoredResultError: the folder holds no result, one of a later version, or one that is damaged.
    """
    with reading(folder, "result", _JSON, _TENSORS, VERSION) as (data, tensors):
        stored = msgspec.convert(data, _Stored)
        if stored.special:
            _put_special(data, stored.special)
            stored = msgspec.convert(data, _Stored)
        return _assembled(stored, tensors)


def _assembled(stored: _Stored, tensors: dict[str, Tensor]) -> Result:
    def named(group: str, keys: tuple[str, ...]) -> dict[str, Tensor]:
        return {key: tensors[f"{group}.{i}"] for i, key in enumerate(keys)}

    return Result(
        recipe=stored.recipe,
        tokens=stored.tokens,
        source_tokens=stored.source_tokens,
        clean_logits=tensors["clean_logits"],
        edited_logits=tensors["edited_logits"],
        rows=stored.rows,
        kl=stored.kl,
        metric=stored.metric,
        sites=stored.sites,
        plan=stored.plan,
        activations=named("activations", stored.activations),
        clean_activations=named("clean_activations", stored.clean_activations),
        full_clean_logits=tensors["full_clean_logits"] if stored.full_logits else None,
        full_edited_logits=tensors["full_edited_logits"] if stored.full_logits else None,
        notes=stored.notes,
        timing=stored.timing,
        versions=stored.versions,
    )


def _without_special(value: Any, path: Keys, special: list[tuple[Keys, str]]) -> Any:
    """`value` with numbers that JSON does not have replaced by 0 and noted in `special`."""
    if isinstance(value, dict):
        return {key: _without_special(item, (*path, key), special) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_special(item, (*path, i), special) for i, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        special.append((path, repr(value)))
        return 0.0
    return value


def _put_special(data: Any, special: Iterable[tuple[Keys, str]]) -> None:
    """Put the numbers back in their places. Raises KeyError, IndexError where there is no such place."""
    for path, text in special:
        place = data
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = float(text)
