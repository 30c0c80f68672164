"""Which rows share a forward.

A forward costs a fixed part for each layer (its weights are read, its kernels started) and a part for each token. Rows
whose edits begin at different positions can share one if all start where the first of them does, which computes some
positions in vain. The cheapest cut of the start positions into runs of neighbours is found by dynamic programming.
Then a budget of rows cuts each group, along the layers, so that only the first piece passes through the early ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from .rolling import Row

# The fixed part of a layer's cost, as the number of tokens that cost the same. Measured with a layer of 3.5 million
# weights on a CPU core: 1.4 ms and 0.6 ms of calls against 0.08 ms a token. A GPU needs far more tokens to be busy.
FIXED_TOKENS = {"cpu": 24, "cuda": 1024}
# More rows are hardly faster, and a forward cannot be cancelled.
MOST_ROWS = 512


def groups(rows: Sequence[Row], length: int, depth: int, most: int, device: str = "cpu") -> list[tuple[int, list[int]]]:
    """Cut rows into forwards.

    Args:
        length: tokens of the prompt.
        depth: number of layers.
        most: rows that a forward may have.

    Returns:
        Pairs of the position from which the forward computes and the numbers of its rows, in the order of `join`.
    """
    starts = sorted({row.start for row in rows})
    fixed = FIXED_TOKENS.get(device, 256) * depth

    # work[i]: layers to be run for the rows of all starts before the i-th.
    layers = Counter[int]()
    for row in rows:
        layers[row.start] += depth - row.join
    work = [0, *accumulate(layers[start] for start in starts)]
    # best[i]: the least cost of the starts from the i-th on, and where their first group ends.
    best: list[tuple[int, int]] = [(0, 0)] * (len(starts) + 1)
    for first in range(len(starts) - 1, -1, -1):
        best[first] = min(
            (fixed + (work[end] - work[first]) * (length - starts[first]) + best[end][0], end)
            for end in range(first + 1, len(starts) + 1)
        )
    made: list[tuple[int, list[int]]] = []
    first = 0
    while first < len(starts):
        end = best[first][1]
        chosen = [i for i, row in enumerate(rows) if starts[first] <= row.start <= starts[end - 1]]
        chosen.sort(key=lambda i: rows[i].join)
        made += [(starts[first], chosen[at : at + most]) for at in range(0, len(chosen), most)]
        first = end
    return made
