"""`plot`: the picture that belongs to a result, by what the result is.

Each kind of result has its handlers by name, the first being the default. They are looked up by the class's name along
its ancestry, so that nothing has to be imported that is not in use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .activations import activation
from .attentions import attention
from .errors import PlotError
from .lensgrids import lens
from .sweepgrids import attribution, sweep
from .tokenbars import topk

if TYPE_CHECKING:
    import plotly.graph_objects as go

_KINDS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "Result": {"topk": topk, "activation": activation, "attention": attention},
    "SweepResult": {"sweep": sweep},
    "AttributionResult": {"attribution": attribution},
    "LensResult": {"lens": lens},
    "Tensor": {"activation": activation, "attention": attention},
    "ndarray": {"activation": activation, "attention": attention},
}


def plot(result: Any, *arguments: Any, kind: str | None = None, **options: Any) -> go.Figure:
    """The figure of a result, a sweep, a lens or a tensor.

    Args:
        result: what to draw. A `Result` is drawn as "topk" bars by default, or as "activation" or "attention"; a
            tensor as "activation" or "attention"; a sweep, a lens and attribution patching as their
            grids.
        arguments, options: of the function of that kind: `topk`, `activation`, `attention`, `sweep`, `attribution` or
            `lens`, whose docstrings say what the picture shows.
        kind: the name of one of those kinds; None takes the default.

    Raises:
        PlotError: there is no picture of this, or none of that kind.
    """
    for base in type(result).__mro__:
        kinds = _KINDS.get(base.__name__)
        if kinds is None:
            continue
        if kind is None:
            return next(iter(kinds.values()))(result, *arguments, **options)
        if kind not in kinds:
            raise PlotError(f"kind: a {base.__name__} can be drawn as {', '.join(kinds)}, not as {kind!r}.")
        return kinds[kind](result, *arguments, **options)
    raise PlotError(f"There is no picture of a {type(result).__name__}: give a result, a sweep, a lens or a tensor.")
