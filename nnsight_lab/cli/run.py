"""`nnsight-lab run RECIPE.json`: carry out a recipe and compare the clean and the edited run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from .errors import UsageError
from .models import HELP, load
from .output import print_json


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "run",
        help="run a recipe and compare",
        description="Run a recipe (JSON) and compare the clean and the edited run.",
    )
    parser.add_argument(
        "recipe", metavar="RECIPE.json", help="a recipe, as Recipe.save writes it; - reads standard input"
    )
    parser.add_argument("--model", metavar="MODEL", help=f"in place of the recipe's: {HELP}")
    parser.add_argument("--save", metavar="DIR", type=Path, help="write the result to a folder, as Result.save does")
    parser.add_argument("--overwrite", action="store_true", help="let --save write into a folder that holds something")
    parser.add_argument("--json", action="store_true", help="print the result as JSON, without tensors")
    parser.set_defaults(carry_out=_run)


def _run(parsed: argparse.Namespace) -> int:
    from ..experiments import Recipe, RecipeError
    from ..experiments.folders import make_folder

    try:
        recipe = Recipe.from_json(sys.stdin.buffer.read()) if parsed.recipe == "-" else Recipe.load(parsed.recipe)
    except RecipeError as error:
        raise UsageError(f"{parsed.recipe}: {error}") from error
    name = parsed.model or recipe.model
    if name is None:
        raise UsageError(f"{parsed.recipe} names no model: give --model.")
    if parsed.save is not None:
        make_folder(parsed.save, parsed.overwrite)  # before the work, which a refusal afterwards would lose
    result = recipe.run(load(name))
    if parsed.save is not None:
        result.save(parsed.save, overwrite=parsed.overwrite)
        print(f"saved to {parsed.save}", file=sys.stderr)
    if parsed.json:
        print_json(result.to_dict())
    else:
        print(result)
    return 0
