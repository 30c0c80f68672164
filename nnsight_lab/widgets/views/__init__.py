"""What the page is shown, made from models, prompts, observations and results: functions to `wire` structs.

Nothing here keeps state or knows the widget. Functions that come with an array give it beside the struct, as a numpy
array in the wire's dtype.
"""

from .answers import answer_view, label_of
from .axes import axes_of
from .grids import lens_grid, sweep_grid
from .listings import listing_view, sites_of
from .modules import model_facts, module_columns
from .peeks import peek
from .pictures import picture, snapshot, table_csv
from .prompts import alignment, prompt_view
from .steps import step_view, step_views

__all__ = [
    "alignment",
    "answer_view",
    "axes_of",
    "label_of",
    "lens_grid",
    "listing_view",
    "model_facts",
    "module_columns",
    "peek",
    "picture",
    "prompt_view",
    "sites_of",
    "snapshot",
    "step_view",
    "step_views",
    "sweep_grid",
    "table_csv",
]
