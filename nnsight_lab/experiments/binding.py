"""A recipe on a model: its sites taken apart and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..engine import NNsight
from .recipe import Recipe
from .sites import SitePath, check_operations, parse_site
from .steps import Patch


@dataclass(frozen=True)
class Binding:
    """A recipe whose sites are those of a model.

    Attributes:
        recipe: with present labels and fingerprints.
        paths: its sites, taken apart.
        notes: which labels have moved.
    """

    recipe: Recipe
    paths: Mapping[str, SitePath]
    notes: tuple[str, ...] = ()


def bind(recipe: Recipe, model: NNsight) -> Binding:
    """Check a recipe's sites on `model`."""
    paths: dict[str, SitePath] = {}
    for number, step in enumerate(recipe.steps):
        fields = [("site", step.site)]
        if isinstance(step, Patch) and step.from_site is not None:
            fields.append(("from_site", step.from_site))
        for field, site in fields:
            where = f"steps[{number}].{field}"
            paths[site] = parse_site(model, site, where)
            check_operations(model, paths[site], where)
    return Binding(recipe, paths)
