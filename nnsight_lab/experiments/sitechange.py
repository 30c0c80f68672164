"""How far an edit moved the entries it selects, measured at the site itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .plan import Selection
from .scope import index_of, view_of


@dataclass(frozen=True)
class SiteChange:
    """Sums over the selected entries of one or several calls.

    Attributes:
        entries: how many there are.
        largest: largest absolute change of one.
        moved, norm: sums of squares of the changes and of the values before.
    """

    entries: int = 0
    largest: float = 0.0
    moved: float = 0.0
    norm: float = 0.0

    def __add__(self, other: SiteChange) -> SiteChange:
        return SiteChange(
            self.entries + other.entries,
            other.largest if math.isnan(other.largest) else max(self.largest, other.largest),
            self.moved + other.moved,
            self.norm + other.norm,
        )

    @property
    def relative(self) -> float | None:
        """Euclidean norm of the change over that of the values before; None where these are all 0."""
        return math.sqrt(self.moved / self.norm) if self.norm else None


def change_at(before: Tensor, after: Tensor, selection: Selection) -> SiteChange:
    """The change from `before` to `after`, two tensors of the same shape, over the entries selected."""
    old, new = (_numbers(value, selection) for value in (before, after))
    difference = torch.where(new == old, 0.0, new - old).abs()
    if not difference.numel():
        return SiteChange()
    return SiteChange(
        difference.numel(), float(difference.max()), float(difference.square().sum()), float(old.abs().square().sum())
    )


def _numbers(value: Tensor, selection: Selection) -> Tensor:
    view = view_of(value.detach(), selection)
    entries = view[index_of(selection, view.shape)]
    return entries if entries.is_complex() else entries.double()
