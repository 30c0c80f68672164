"""Figures of experiments, as plotly figures: `plots.plot(result)`, or the function for one kind of picture."""

from .activations import activation
from .attentions import attention
from .errors import PlotError
from .export import save
from .kinds import plot
from .lensgrids import lens
from .sweepgrids import attribution, sweep
from .tokenbars import topk

__all__ = ["PlotError", "activation", "attention", "attribution", "lens", "plot", "save", "sweep", "topk"]
