"""`nnsight-lab source MODEL PATH`: the annotated forward of a module."""

from __future__ import annotations

import argparse
from typing import Any

from ..engine import CalleeUnknownError, Listing
from .errors import UsageError
from .models import add_model, load
from .output import print_json


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "source",
        help="show the forward of a module with its operations",
        description="Show the forward of a module with the labels of its operations. Needs no weights.",
    )
    add_model(parser)
    parser.add_argument(
        "path", metavar="PATH", help="a module, transformer.h.0.mlp, or an operation in it to step into"
    )
    parser.add_argument("--operation", metavar="LABEL", help="show one operation in its context")
    parser.add_argument("--everything", action="store_true", help="list operators, bound names and returned values too")
    parser.add_argument(
        "--prompt",
        metavar="TEXT",
        help="run the model on this first: which function an operation calls may be known from a run only",
    )
    parser.add_argument("--json", action="store_true", help="print the listing as JSON")
    parser.set_defaults(carry_out=_source)


def _source(parsed: argparse.Namespace) -> int:
    import torch

    from ..experiments.sites import locate, parse_site

    model = load(parsed.model)
    path = parse_site(model, parsed.path, "PATH")
    if parsed.prompt is not None:
        with torch.no_grad(), model.trace(parsed.prompt):
            _ = locate(model, path, "PATH").output
    found = locate(model, path, "PATH")
    source = found.source(everything=True) if parsed.everything else found.source
    try:
        data = _as_data(source.listing)
    except CalleeUnknownError as error:
        raise UsageError(
            f"PATH: which function {path} calls is known from a run only: give --prompt TEXT to run one."
        ) from error
    operation = source[parsed.operation] if parsed.operation is not None else None
    if not parsed.json:
        print(source if operation is None else operation)
        return 0
    if operation is not None:
        data["operations"] = [item for item in data["operations"] if item["label"] == parsed.operation]
    print_json({"model": parsed.model, "path": parsed.path, **data})
    return 0


def _as_data(listing: Listing) -> dict[str, Any]:
    """A listing as plain data: `rows` from the `def` line on, operations in evaluation order."""
    import msgspec

    data: dict[str, Any] = msgspec.to_builtins(listing)
    return data
