"""MODEL on the command line: a demo model, a folder, or a name on the Hugging Face hub."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from .errors import UsageError

if TYPE_CHECKING:
    from ..models import LanguageModel

HELP = "demo:atlas (embedded), demo:smollm2, a folder, or a name on the Hugging Face hub"
_DEMOS = ("atlas", "smollm2")


def load(name: str) -> LanguageModel:
    """The model that `name` means; weights of models by name or folder are loaded when they are needed.

    Raises:
        UsageError: there is no demo model of that name.
        ModelUnavailableError, DemoModelError: the model is not here and cannot be fetched.
    """
    if not shows_progress():
        from transformers.utils import logging

        logging.disable_progress_bar()
    demo = name.removeprefix("demo:")
    if demo in _DEMOS:
        from ..demo import load as load_demo

        return load_demo(demo)
    if name.startswith("demo:"):
        raise UsageError(f"there is no demo model {demo!r}; there are {', '.join(_DEMOS)}.")
    from ..models import LanguageModel

    return LanguageModel(name)


def shows_progress() -> bool:
    """Whether progress bars are wanted: somebody looks at standard error."""
    return sys.stderr.isatty()


def add_model(parser: argparse.ArgumentParser) -> None:
    """The argument MODEL."""
    parser.add_argument("model", metavar="MODEL", help=HELP)
