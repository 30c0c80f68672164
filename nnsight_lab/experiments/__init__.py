"""Experiments as plain data: recipes of steps, their results, and the code they stand for."""

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
