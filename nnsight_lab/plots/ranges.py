"""What the colours of a heatmap stand for: the range, what was trimmed, and which cells are no numbers.

The range is symmetric around zero, or starts at zero for values without a sign. A few outliers would leave the rest
of a picture without colour, so the range can end at a quantile of the absolute values; the colour bar then says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .errors import PlotError
from .labels import counted

# Below this the largest value is within reach of the others, and hiding it would gain nothing.
_OUTLIER = 1.5


@dataclass(frozen=True)
class Range:
    """The values at the ends of a colour scale.

    Attributes:
        low, high: values that get the first and the last colour; equal to -high and high, or to 0 and high.
        beyond_low, beyond_high: how many finite cells lie outside, and are drawn in the last colour.
        extreme: the largest absolute finite value.
    """

    low: float
    high: float
    beyond_low: int = 0
    beyond_high: int = 0
    extreme: float = 0.0

    @property
    def note(self) -> str:
        """What was trimmed, in words; empty where nothing was."""
        beyond = self.beyond_low + self.beyond_high
        if not beyond:
            return ""
        return f"colours end at {self.high:.3g}: {counted(beyond, 'cell')} beyond, up to {self.extreme:.3g}"

    @property
    def ticks(self) -> tuple[list[float], list[str]]:
        """Places and texts of the colour bar's ticks, with ≤ and ≥ at ends that were trimmed."""
        places = np.linspace(self.low, self.high, 5).tolist()
        texts = ["0" if place == 0 else f"{place:.3g}".replace("-", "\u2212") for place in places]
        if self.beyond_low:
            texts[0] = f"≤ {texts[0]}"
        if self.beyond_high:
            texts[-1] = f"≥ {texts[-1]}"
        return places, texts


def find_range(values: np.ndarray, trim: float | None, signed: bool = True, limit: float | None = None) -> Range:
    """The range for `values`.

    Args:
        trim: share of the finite cells, by absolute value, that must lie inside the range; None keeps all inside. The
            range is trimmed only where the largest value is over 1.5 times as far out.
        signed: symmetric around zero, else from zero.
        limit: the end of the range, in place of what the values say.

    Raises:
        PlotError: `trim` is not in (0, 1], or `limit` is no positive number.
    """
    if trim is not None and not 0 < trim <= 1:
        raise PlotError(f"trim: a share of cells above 0 and up to 1, such as 0.995, or None; not {trim}.")
    if limit is not None and not (np.isfinite(limit) and limit > 0):
        raise PlotError(f"limit: a positive number, the value of the last colour; not {limit}.")
    sizes = np.abs(values[np.isfinite(values)])
    extreme = float(sizes.max()) if sizes.size else 0.0
    high = extreme
    if limit is not None:
        high = limit
    elif trim is not None and sizes.size:
        inner = float(np.quantile(sizes, trim, method="higher"))
        if inner and extreme > _OUTLIER * inner:
            high = inner
    high = high or 1.0
    low = -high if signed else 0.0
    finite = values[np.isfinite(values)]
    return Range(low, high, int((finite < low).sum()), int((finite > high).sum()), extreme)
