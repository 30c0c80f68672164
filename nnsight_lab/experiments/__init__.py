"""Experiments as plain data: recipes of steps, their results, and the code they stand for.

A `Recipe` has a base prompt and steps such as `Zero(site, positions=...)`; `recipe.run(model)` gives a `Result`.
`sweep` carries one step out over a grid, `attribute` estimates such a grid, `lens` looks at every layer.

Sites are written as paths, dotted or as code:

    transformer.h.5.mlp                                a module; also transformer.h[5].mlp, model.transformer.h[5].mlp
    transformer.h.5.mlp.source.self_act_0              an operation of its forward, by its label in print(module.source)
    ...attn.source.attention_interface_0.source.<op>   an operation of the function that this operation calls
    ""                                                 the model itself

A step acts on what the site returns, with `io="input"` on its first argument. In sweeps and lenses `*` stands for any
characters of one name and `[2:5]` for members of a list: `transformer.h.*.mlp`, `transformer.h[2:5]`.

Positions are numbers (`0`, from the end `-1`), slices as text (`"2:5"`), texts of tokens with their leading space
(`" Tower"`, or several in a row), or `Token(" the", occurrence=1)`; heads and index entries are numbers or expressions
such as `"0:4,7"`. All of them begin at 0.

Answers of metrics are one token each, text or id. A word inside a text has its leading space: `" Paris"`.
"""

from .attribution import AttributionResult, attribute
from .errors import (
    ExperimentError,
    MovedOperationError,
    RecipeError,
    ScopeError,
    StoredResultError,
    UnknownSiteError,
)
from .execute import run
from .fingerprint import Fingerprint
from .lenses import lens
from .lensresult import LensResult
from .metrics import (
    KL,
    AnyMetric,
    LogitDiff,
    Probability,
    Rank,
    TopK,
    kl_divergence,
    measure,
    normalised_recovery,
    ranks,
)
from .recipe import Recipe
from .result import MetricValue, Result, SiteReport, Timing, TokenRow
from .steps import (
    Add,
    AnyEdit,
    AnyStep,
    Capture,
    Edit,
    Mean,
    Noise,
    Patch,
    Replace,
    Scale,
    Step,
    StoredTensor,
    Token,
    Zero,
)
from .sweepresult import SweepResult
from .sweeps import Sweep, sweep

__all__ = [
    "KL",
    "Add",
    "AnyEdit",
    "AnyMetric",
    "AnyStep",
    "AttributionResult",
    "Capture",
    "Edit",
    "ExperimentError",
    "Fingerprint",
    "LensResult",
    "LogitDiff",
    "Mean",
    "MetricValue",
    "MovedOperationError",
    "Noise",
    "Patch",
    "Probability",
    "Rank",
    "Recipe",
    "RecipeError",
    "Replace",
    "Result",
    "Scale",
    "ScopeError",
    "SiteReport",
    "Step",
    "StoredResultError",
    "StoredTensor",
    "Sweep",
    "SweepResult",
    "Timing",
    "Token",
    "TokenRow",
    "TopK",
    "UnknownSiteError",
    "Zero",
    "attribute",
    "kl_divergence",
    "lens",
    "measure",
    "normalised_recovery",
    "ranks",
    "run",
    "sweep",
]
