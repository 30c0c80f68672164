"""The model that a recipe is run on, and the line of code that loads it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from ..engine import NNsight
from ..models.origin import origin_of
from .errors import ExperimentError
from .recipe import Recipe

_DEMOS = ("atlas", "smollm2")


def load_model(recipe: Recipe, model: NNsight | None) -> tuple[NNsight, str]:
    """The model given or named, and the code that loads it; the code is empty where only the reader can give it.

    A model that is given tells itself how it was made; of one that was wrapped by hand the recipe's name has to do.

    Raises:
        ExperimentError: no model is given and none is named, or what is given is not wrapped.
    """
    name = recipe.model
    if model is not None:
        if not isinstance(model, NNsight):
            raise ExperimentError(
                f"model: a wrapped model is needed, not {type(model).__name__}: NNsight(module) or LanguageModel(...)."
            )
        return model, origin_of(model) or ("" if name is None else _line(name))
    if name is None:
        raise ExperimentError("model: the recipe names no model; give one, recipe.run(model).")
    if name in _DEMOS:
        from ..demo import load

        return load(name), _line(name)
    if any(character.isspace() for character in name) and not Path(name).exists():
        raise ExperimentError(f"model: {name!r} is no name of a model; a prompt goes by its name, base={name!r}.")
    from ..models import LanguageModel

    return LanguageModel(name), _line(name)


def _line(name: str) -> str:
    """The code for a model that a recipe names."""
    return f"nnsight_lab.demo.load({name!r})" if name in _DEMOS else f"nnsight_lab.LanguageModel({name!r})"


def name_of(model: NNsight) -> str | None:
    """The name by which a recipe finds this model again; None where only the line that made it can."""
    line = origin_of(model)
    for name in _DEMOS:
        if line == _line(name):
            return name
    call = re.fullmatch(r"nnsight_lab\.LanguageModel\((.*)\)", line)
    if call is None:
        return None
    try:
        name = ast.literal_eval(call[1])
    except (SyntaxError, ValueError):  # further options: the name alone would load another model
        return None
    return name if isinstance(name, str) else None
