"""nnsight-lab: read, edit and compare what any line of a model's forward computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import comms
from .engine import (
    CacheLookupError,
    CalleeIsModuleError,
    CalleeUnknownError,
    GradientEditError,
    InputAccessError,
    InvokeError,
    NNsight,
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
    save,
)
from .engine.source import ModuleSource

if TYPE_CHECKING:
    from . import demo, experiments, plots
    from .models import LanguageModel
    from .widgets import Lab

__version__ = "0.1.0"

# Loaded at first use, so that importing the package costs no more than importing torch.
_LAZY = {
    "Lab": "nnsight_lab.widgets",
    "LanguageModel": "nnsight_lab.models",
    "demo": None,
    "experiments": None,
    "plots": None,
}

__all__ = [
    "CacheLookupError",
    "CalleeIsModuleError",
    "CalleeUnknownError",
    "GradientEditError",
    "InputAccessError",
    "InvokeError",
    "Lab",
    "LanguageModel",
    "NNsight",
    "NotReachedError",
    "OutOfOrderError",
    "OutsideTraceError",
    "RecomputedEditError",
    "ScanError",
    "SkipTooLateError",
    "SourceUnavailableError",
    "TraceError",
    "TraceStateError",
    "UnknownNameError",
    "ValidationError",
    "demo",
    "experiments",
    "plots",
    "save",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    home = _LAZY[name]
    value = (
        importlib.import_module(f".{name}", __name__) if home is None else getattr(importlib.import_module(home), name)
    )
    globals()[name] = value
    return value


def _open_lab(model: NNsight, *args: Any, **options: Any) -> Lab:
    from .widgets import Lab

    return Lab(model, *args, **options)


def _source_data(model: NNsight, module: str, lab: str) -> dict[str, Any]:
    from .widgets.sourcebundle import MIME, source_bundle

    return {MIME: source_bundle(model, module, lab)}


NNsight._open_lab = staticmethod(_open_lab)
ModuleSource._make_page_data = staticmethod(_source_data)
comms.register()


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
