"""`nnsight-lab sweep MODEL --site PATTERN ...`: one step over sites, positions and heads.

Ctrl-C ends the computation, not the command: the cells done by then are printed and saved, and the status is 130.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import UsageError
from .models import add_model, load, shows_progress
from .output import number, print_json, table

if TYPE_CHECKING:
    from ..experiments import SweepResult
    from ..experiments.metrics import AnyMetric
    from ..experiments.steps import AnyEdit

# What of a token's text stands over a column.
_WIDEST = 12


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "sweep",
        help="carry out one step over sites, positions and heads",
        description="Carry out one step at every site, position and head of a grid, and print the metric of each cell.",
        epilog="example: nnsight-lab sweep demo:atlas --site 'transformer.h.*' --step patch "
        "--base 'The Eiffel Tower is in the city of' --source 'The Brandenburg Gate is in the city of' "
        "--metric logit_diff ' Berlin' ' Paris'",
    )
    add_model(parser)
    add = parser.add_argument
    add("--site", metavar="PATTERN", action="append", required=True, help="transformer.h.*.mlp; may be given again")
    add("--step", choices=("patch", "zero", "mean", "scale"), required=True, help="what to do in each cell")
    add("--factor", type=float, help="of --step scale")
    add("--base", metavar="TEXT", required=True, help="the prompt that is edited")
    add("--source", metavar="TEXT", help="the prompt that --step patch takes from")
    add(
        "--metric",
        nargs="+",
        required=True,
        metavar=("NAME", "TOKEN"),
        help="logit_diff CORRECT WRONG, probability TOKEN, rank TOKEN, or kl; mind a token's leading space: ' Paris'",
    )
    add(
        "--positions", nargs="+", default=["each"], metavar="POSITION", help="each, none, or numbers, slices and tokens"
    )
    add("--heads", nargs="+", metavar="HEAD", help="each, or numbers and expressions such as 0:4")
    add("--io", choices=("output", "input"), default="output", help="the site's output or its first argument")
    add(
        "--memory", type=float, metavar="MB", help="what the computation may take; by default a quarter of what is free"
    )
    add("--save", metavar="DIR", type=Path, help="write the sweep to a folder, as SweepResult.save does")
    add("--overwrite", action="store_true", help="let --save write into a folder that holds something")
    add("--json", action="store_true", help="print the cells as JSON")
    parser.set_defaults(carry_out=_sweep)


def _sweep(parsed: argparse.Namespace) -> int:
    from ..experiments import sweep
    from ..experiments.folders import make_folder
    from .main import INTERRUPTED

    step, metric = _step(parsed), _metric(parsed.metric)
    if parsed.memory is not None and not parsed.memory > 0:
        raise UsageError(f"--memory: a positive number of megabytes, not {parsed.memory:g}.")
    if parsed.save is not None:
        make_folder(parsed.save, parsed.overwrite)  # before the work, which a refusal afterwards would lose
    result = sweep(
        load(parsed.model),
        step,
        base=parsed.base,
        source=parsed.source,
        metric=metric,
        sites=tuple(parsed.site),
        positions=_entries(parsed.positions),
        heads=_entries(parsed.heads) if parsed.heads is not None else None,
        progress=shows_progress(),
        memory=None if parsed.memory is None else int(parsed.memory * 1e6),
    )
    if parsed.save is not None:
        result.save(parsed.save, overwrite=parsed.overwrite)
        print(f"saved to {parsed.save}", file=sys.stderr)
    if parsed.json:
        print_json(_as_data(result))
    else:
        print(_readable(result))
    if result.complete:
        return 0
    print(f"nnsight-lab: interrupted, {int(result.done.sum())} of {result.done.numel()} cells done", file=sys.stderr)
    return INTERRUPTED


def _step(parsed: argparse.Namespace) -> AnyEdit:
    from ..experiments import Mean, Patch, Scale, Zero

    site, io = parsed.site[0], parsed.io
    if parsed.step == "patch" and parsed.source is None:
        raise UsageError("--source: --step patch takes activations from a second prompt; give it.")
    if parsed.step != "scale" and parsed.factor is not None:
        raise UsageError(f"--factor belongs to --step scale, not to {parsed.step}.")
    if parsed.step == "scale":
        if parsed.factor is None:
            raise UsageError("--factor: --step scale needs the number to multiply by.")
        try:
            return Scale(site, io=io, factor=parsed.factor)
        except ValueError as error:
            raise UsageError(f"--factor: {error}.") from error
    return {"patch": Patch, "zero": Zero, "mean": Mean}[parsed.step](site, io=io)


def _metric(words: Sequence[str]) -> AnyMetric:
    from ..experiments import KL, LogitDiff, Probability, Rank

    kinds: dict[str, tuple[Any, int]] = {
        "logit_diff": (LogitDiff, 2),
        "probability": (Probability, 1),
        "rank": (Rank, 1),
        "kl": (KL, 0),
    }
    name, tokens = words[0].replace("-", "_"), words[1:]
    if name not in kinds:
        raise UsageError(f"--metric: there is no metric {words[0]!r}; there are {', '.join(kinds)}.")
    kind, count = kinds[name]
    if len(tokens) != count:
        raise UsageError(f"--metric {name} takes {count} token{'' if count == 1 else 's'}, not {len(tokens)}.")
    metric: AnyMetric = kind(*tokens)
    return metric


def _entries(words: Sequence[str]) -> Any:
    """An axis as `sweep` takes it: "each", None for "none", or numbers and texts."""
    if len(words) == 1 and words[0] in ("each", "none"):
        return words[0] if words[0] == "each" else None
    return tuple(int(word) if word.lstrip("-").isdigit() else word for word in words)


def _as_data(result: SweepResult) -> dict[str, Any]:
    """Everything of a sweep but its plan, as plain data; values are nested lists along the axes."""
    import msgspec

    return {
        "sweep": msgspec.to_builtins(result.sweep),
        "axes": [{"name": axis.name, "labels": axis.labels} for axis in result.axes],
        "tokens": result.tokens,
        "source_tokens": result.source_tokens,
        "baseline": result.baseline,
        "source_value": result.source_value,
        "values": result.values.tolist(),
        "done": result.done.tolist(),
        "complete": result.complete,
        "method": result.method,
        "notes": result.notes,
        "seconds": result.seconds,
        "peak_bytes": result.peak_bytes,
        "budget_bytes": result.budget_bytes,
    }


def _readable(result: SweepResult) -> str:
    """The sweep's summary and, of one or two axes, its grid, sites downwards."""
    if len(result.axes) > 2:
        return str(result)
    values, done = result.values, result.done
    columns = result.axes[1].labels if len(result.axes) == 2 else ("value",)
    if len(result.axes) == 1:
        values, done = values[:, None], done[:, None]
    rows = [["", *map(_heading, columns)]]
    for label, line, known in zip(result.axes[0].labels, values.tolist(), done.tolist(), strict=True):
        rows.append([label, *(number(value, was) for value, was in zip(line, known, strict=True))])
    return f"{result}\n\n{table(rows)}"


def _heading(label: str) -> str:
    """The label of a position, "2  Tower", with the spaces of its token seen and short enough for a column."""
    number, space, token = label.partition(" ")
    text = number + space + token.replace(" ", "\u2423")
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
