"""The models that have a name in the user's namespace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine import NNsight
from ..engine.errors import nearest
from . import views, wire
from .errors import LabError


def named_models(namespace: Mapping[str, Any]) -> dict[str, NNsight]:
    """The wrapped models by name; of several names of one model the first."""
    found: dict[str, NNsight] = {}
    seen: set[int] = set()
    for name, value in list(namespace.items()):
        if isinstance(value, NNsight) and not name.startswith("_") and id(value) not in seen:
            seen.add(id(value))
            found[name] = value
    return found


def alive(namespace: Mapping[str, Any]) -> tuple[wire.ModelEntry, ...]:
    """The models for the panel."""
    return tuple(
        wire.ModelEntry(name, f"{id(model):x}.{id(model._model):x}", views.model_facts(model))
        for name, model in named_models(namespace).items()
    )


def model_called(namespace: Mapping[str, Any], name: str) -> NNsight:
    """The model of that name. Raises LabError where there is none."""
    value = namespace.get(name)
    if isinstance(value, NNsight):
        return value
    raise LabError(f"No model is called {name!r} in this kernel.{nearest(name, list(named_models(namespace)))}")
