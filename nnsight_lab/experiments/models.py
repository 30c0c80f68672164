"""The model that a recipe is run on, and the line of code that loads it."""

from __future__ import annotations

from pathlib import Path

from ..engine import NNsight
from .errors import ExperimentError
from .recipe import Recipe

_DEMOS = {"atlas": "nnsight_lab.demo.load()", "smollm2": 'nnsight_lab.demo.load("smollm2")'}


def load_model(recipe: Recipe, model: NNsight | None) -> tuple[NNsight, str]:
    """The model given or named, and the code that loads it; the code is empty where only the reader can give it.

    Raises:
        ExperimentError: no model is given and none is named, or what is given is not wrapped.
    """
    name = recipe.model
    line = "" if name is None else _DEMOS.get(name, f"nnsight_lab.LanguageModel({name!r})")
    if model is not None:
        if not isinstance(model, NNsight):
            raise ExperimentError(
                f"model: a wrapped model is needed, not {type(model).__name__}: NNsight(module) or LanguageModel(...)."
            )
        return model, line
    if name is None:
        raise ExperimentError("model: the recipe names no model; give one, recipe.run(model).")
    if name in _DEMOS:
        from ..demo import load

        return load(name), line
    if any(character.isspace() for character in name) and not Path(name).exists():
        raise ExperimentError(f"model: {name!r} is no name of a model; a prompt goes by its name, base={name!r}.")
    from ..models import LanguageModel

    return LanguageModel(name), line
