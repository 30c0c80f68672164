"""Every error the engine raises on purpose.

Each says what happened, at which site, and what to type instead. They derive from `TraceError`, so that one
`except` catches them all; `UnknownNameError` is an `AttributeError` as well, because it stands where Python
itself would have raised one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TraceError(RuntimeError):
    """Base of all errors of the tracing engine."""


class OutsideTraceError(TraceError):
    """A site's value was asked for while no trace of its model was open."""


class OutOfOrderError(TraceError):
    """A site was asked for after the forward had already passed it."""


class NotReachedError(TraceError):
    """A site was asked for, or assigned, that the forward never reached."""


class TraceStateError(TraceError):
    """A tracer was used in a way that its state does not allow (entered twice, used after its end)."""


class SkipTooLateError(TraceError):
    """`.skip(value)` was called on a site whose call had already begun."""


class RecomputedEditError(TraceError):
    """A site inside a region under gradient checkpointing was assigned, where a backward could follow."""


class GradientEditError(TraceError):
    """A gradient was changed inside `with loss.backward():`, when its backward pass had run."""


class InputAccessError(TraceError):
    """`.input` was asked of a call without arguments."""


class SourceUnavailableError(TraceError):
    """A function has no Python source that could be listed or rewritten."""


class CalleeIsModuleError(SourceUnavailableError):
    """`.source` was asked of an operation that calls a module; the module has a `.source` of its own."""


class CalleeUnknownError(SourceUnavailableError):
    """`.source` was asked outside a trace of an operation whose callee is only known from a run."""


class InvokeError(TraceError):
    """The prompts of one trace (`tracer.invoke`) cannot be run together, or a body asked for what is not its rows."""


class UnknownNameError(TraceError, AttributeError):
    """A name that is neither a submodule, an attribute, nor an operation."""


class ScanError(TraceError):
    """A forward on fake tensors needs a value that only a real one has."""


class ValidationError(TraceError, TypeError):
    """A site was assigned something of another structure, shape, dtype or device than its own value."""


class CacheLookupError(TraceError, KeyError):
    """A cache was asked for a site that it does not have, or for the one value of a site with several."""

    __str__ = TraceError.__str__  # a KeyError's is in quotation marks


def nearest(name: str, candidates: Iterable[str], limit: int = 3) -> str:
    """A phrase naming the candidates closest to `name`, or the empty string."""
    names = list(dict.fromkeys(candidates))
    close = difflib.get_close_matches(name, names, n=limit, cutoff=0.5)
    if not close:
        close = [c for c in names if name.lower() in c.lower()][:limit]
    if not close:
        return ""
    return " Did you mean " + " or ".join(repr(c) for c in close) + "?"
