"""`main`: from what is typed to an exit status.

The result goes to standard output and everything else to standard error, so that `--json` can be piped. The status is
0 when all was done, 1 when something given is not valid or not there (with the reason in one line), 2 when the command
itself is mistyped, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from .errors import UsageError, one_line

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status.

    Args:
        arguments: the words after `nnsight-lab`; None takes the process's own.

    Raises:
        SystemExit: `--help`, `--version`, or a command that argparse refuses (status 2).
    """
    parsed = _parser().parse_args(arguments)
    try:
        status = int(parsed.carry_out(parsed))
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("nnsight-lab: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`| head`); Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except _mistakes() as error:
        print(f"nnsight-lab: {one_line(error)}", file=sys.stderr)
        return 1


def _mistakes() -> tuple[type[BaseException], ...]:
    """Errors that what was given is the cause of. Imported late, because `--help` needs none of it."""
    from ..demo import DemoModelError
    from ..engine import TraceError
    from ..experiments import ExperimentError
    from ..models import ModelUnavailableError, PromptError

    return (UsageError, ExperimentError, TraceError, PromptError, ModelUnavailableError, DemoModelError, OSError)


def _parser() -> argparse.ArgumentParser:
    from .. import __version__
    from . import run, source, sweep

    parser = argparse.ArgumentParser(
        prog="nnsight-lab", description="Read, edit and compare what any line of a model's forward computes."
    )
    parser.add_argument("--version", action="version", version=f"nnsight-lab {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in (source, run, sweep):
        command.add_to(commands)
    return parser
