"""Two functions timed in turns, so that whatever else the machine does falls on both."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """Medians of paired runs.

    Attributes:
        ratio: median over the pairs of (time of the first) / (time of the second).
        first, second: median times in microseconds.
        pairs: how many pairs were run.
    """

    ratio: float
    first: float
    second: float
    pairs: int

    def __str__(self) -> str:
        return f"{self.ratio:.2f}x  ({self.first:.0f} us to {self.second:.0f} us, {self.pairs} pairs)"


def paired(first: Callable[[], object], second: Callable[[], object], pairs: int = 400, warm_up: int = 30) -> Ratio:
    """Time `first` against `second`, one after the other, `pairs` times; which goes first alternates."""
    for _ in range(warm_up):
        first()
        second()
    ratios, firsts, seconds = [], [], []
    collecting = gc.isenabled()
    gc.disable()
    try:
        for number in range(pairs):
            order = (first, second) if number % 2 == 0 else (second, first)
            spent = {}
            for function in order:
                start = time.perf_counter()
                function()
                spent[function] = time.perf_counter() - start
            ratios.append(spent[first] / spent[second])
            firsts.append(spent[first] * 1e6)
            seconds.append(spent[second] * 1e6)
    finally:
        if collecting:
            gc.enable()
    return Ratio(statistics.median(ratios), statistics.median(firsts), statistics.median(seconds), pairs)
