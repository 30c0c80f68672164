"""The tracing engine: torch and greenlet only."""

from .errors import (
    CacheLookupError,
    CalleeIsModuleError,
    CalleeUnknownError,
    GradientEditError,
    InputAccessError,
    InvokeError,
    NotReachedError,
    OutOfOrderError,
    OutsideTraceError,
    RecomputedEditError,
    ScanError,
    SkipTooLateError,
    SourceUnavailableError,
    TraceError,
    TraceStateError,
    UnknownNameError,
    ValidationError,
)
from .listing import Listing, Operation
from .save import save
from .source import OperationSite, Source
from .trace import Tracer
from .wrapper import NNsight

__all__ = [
    "CacheLookupError",
    "CalleeIsModuleError",
    "CalleeUnknownError",
    "GradientEditError",
    "InputAccessError",
    "InvokeError",
    "Listing",
    "NNsight",
    "NotReachedError",
    "Operation",
    "OperationSite",
    "OutOfOrderError",
    "OutsideTraceError",
    "RecomputedEditError",
    "ScanError",
    "SkipTooLateError",
    "Source",
    "SourceUnavailableError",
    "TraceError",
    "TraceStateError",
    "Tracer",
    "UnknownNameError",
    "ValidationError",
    "save",
]
