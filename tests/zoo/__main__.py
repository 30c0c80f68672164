"""Build and run the zoo, kind by kind: `python -m tests.zoo [causal vision ...]`.

Prints what fails or differs between two forwards, and at the end the number of architectures and the seconds that
building and one forward took, by kind. With `--excluded` it tries the excluded classes instead.
"""

import sys
import time
from collections import Counter
from typing import Any

import torch
import transformers
from torch import nn

from . import ARCHITECTURES, EXCLUDED, Architecture, bit_identical, build
from .architectures import candidates


def _survey(architecture: Architecture) -> tuple[str | None, float]:
    """What is wrong with an architecture, and the seconds of its build and first forward."""
    start = time.perf_counter()
    try:
        model, inputs = build(architecture)
        first = _forward(model, inputs)
        seconds = time.perf_counter() - start
        differing = bit_identical(first, _forward(model, inputs))
    except Exception as error:  # A survey reports every failure and goes on.
        return f"{type(error).__name__}: {str(error).strip()[:200]}", time.perf_counter() - start
    return (f"two forwards differ at {differing[:3]}" if differing else None), seconds


def _forward(model: nn.Module, inputs: dict[str, Any]) -> Any:
    torch.manual_seed(0)
    with torch.no_grad():
        return model(**inputs)


def main(arguments: list[str]) -> None:
    """Survey the kinds named in `arguments`, or all."""
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    excluded = "--excluded" in arguments
    kinds = {argument for argument in arguments if not argument.startswith("--")}
    sound, failed, seconds = Counter[str](), Counter[str](), Counter[str]()
    for architecture in [a for a in candidates() if a.name in EXCLUDED] if excluded else ARCHITECTURES:
        if kinds and architecture.kind not in kinds:
            continue
        problem, took = _survey(architecture)
        seconds[architecture.kind] += took
        (failed if problem else sound)[architecture.kind] += 1
        if problem:
            print(f"{architecture.name} ({architecture.kind}): {problem}")
    for kind in seconds:
        print(f"{kind:16} {sound[kind]:4} sound  {failed[kind]:3} not  {seconds[kind]:6.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
