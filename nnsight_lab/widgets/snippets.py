"""Python for a cell, about one site of a model."""

from __future__ import annotations

import json
from typing import Literal

from ..engine import NNsight
from ..engine.instruments import spell
from ..experiments.sites import parse_site
from .opened import labs_on

# Stands in a snippet where no Lab tells which prompt the user works on.
EXAMPLE = "The Eiffel Tower is in the city of"


def snippet(name: str, model: NNsight, site: str, purpose: Literal["lab", "capture", "zero"]) -> str:
    """Code that opens the Lab at a site, reads the site's value, or shows what zeroing it does to the answer.

    Args:
        name: what the model is called where the code will run.

    Raises:
        UnknownSiteError: the model has no such site.
    """
    path = parse_site(model, site, "site")
    takes_text = getattr(model, "tokenizer", None) is not None
    prompt = json.dumps(_prompt(model), ensure_ascii=False) if takes_text else "inputs"
    head = "" if takes_text else "# inputs: what the model's forward takes\n"
    if purpose == "lab":
        where = f'{"selection" if path.operations else "module"}="{path}"'
        return f"{head}{name}.lab(\n    {prompt},\n    {where},\n)"
    if purpose == "zero":
        return (
            f"from nnsight_lab.experiments import Recipe, Zero\n\n"
            f"{head}recipe = Recipe(base={prompt}, steps=[Zero({json.dumps(str(path))})])\n"
            f"result = recipe.run({name})\nprint(result)"
        )
    address = spell(model._module, path.module, name) + "".join(f".source.{label}" for label in path.operations)
    return (
        f"import torch\n\n{head}with torch.no_grad(), {name}.trace({prompt}):\n    value = {address}.output\n\n"
        "print(value)"
    )


def _prompt(model: NNsight) -> str:
    """The text that the newest Lab on the model has, else the example."""
    texts = [lab.base for lab in labs_on(model) if isinstance(lab.base, str)]
    return texts[-1] if texts else EXAMPLE
