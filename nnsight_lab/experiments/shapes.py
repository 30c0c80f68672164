"""Shapes of values for a prompt one token longer, remembered.

They depend on the model and the prompt's length alone, and finding them takes a run, which a second sweep of the same
sites need not make again.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from ..engine import NNsight
from .inputs import Inputs
from .plan import Visit
from .sites import SitePath
from .survey import Wanted, longer_shapes

_known: weakref.WeakKeyDictionary[nn.Module, dict[Any, tuple[int, ...] | None]] = weakref.WeakKeyDictionary()


def remembered_shapes(
    model: NNsight, inputs: Inputs, wanted: Wanted, paths: Mapping[str, SitePath]
) -> Callable[[Visit], tuple[int, ...] | None]:
    """A function from a visit to the shape it has for a prompt one token longer; see `longer_shapes`."""
    known = _known.setdefault(model._model, {})
    ask = longer_shapes(model, inputs, wanted, paths)

    def shape(visit: Visit) -> tuple[int, ...] | None:
        key = (inputs.length, visit.site, visit.io, visit.call, visit.wanted)
        if key not in known:
            known[key] = ask(visit)
        return known[key]

    return shape
