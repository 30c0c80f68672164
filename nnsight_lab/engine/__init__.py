"""The tracing engine: torch and greenlet only."""

from .errors import (
    CacheLookupError,
    CalleeIsModuleError,
    CalleeUnknownError,
    InputAccessError,
    NotReachedError,
    OutOfOrderError,
    OutsideTraceError,
    RecomputedEditError,
    SkipTooLateError,
    SourceUnavailableError,
    TraceError,
    TraceStateError,
    UnknownNameError,
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
    "InputAccessError",
    "Listing",
    "NNsight",
    "NotReachedError",
    "Operation",
    "OperationSite",
    "OutOfOrderError",
    "OutsideTraceError",
    "RecomputedEditError",
    "SkipTooLateError",
    "Source",
    "SourceUnavailableError",
    "TraceError",
    "TraceStateError",
    "Tracer",
    "UnknownNameError",
    "save",
]
