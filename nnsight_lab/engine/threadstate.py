"""The per-thread switches of torch that must not leak between the body and the model.

Body and model share one thread, so they share torch's thread-local state. Whoever pauses inside `no_grad`,
`inference_mode` or `autocast` would leave the other one in it. `capture` takes a snapshot at each switch and
`exchange` puts another in its place. Grad mode and inference mode are read at every switch; autocast only when
it is on for one of the two.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

_AUTOCAST_DEVICES = ("cpu", "cuda", "xpu", "mps", "hpu", "privateuseone")

_is_grad_enabled = torch.is_grad_enabled
_is_inference = torch.is_inference_mode_enabled
_set_grad_enabled = torch._C._set_grad_enabled
_any_autocast = torch._C._is_any_autocast_enabled


class ThreadState(NamedTuple):
    """Grad mode, inference mode and, when on anywhere, the autocast settings of each device type."""

    grad: bool
    inference: bool
    autocast: tuple[tuple[str, bool, torch.dtype], ...] | None


def _capture_autocast() -> tuple[tuple[str, bool, torch.dtype], ...]:
    found = []
    for device in _AUTOCAST_DEVICES:
        try:
            found.append((device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)))
        except RuntimeError:  # this build of torch does not know the device type
            continue
    return tuple(found)


def capture() -> ThreadState:
    """The calling thread's present state."""
    return ThreadState(_is_grad_enabled(), _is_inference(), _capture_autocast() if _any_autocast() else None)


def exchange(present: ThreadState, wanted: ThreadState) -> Any:
    """Make `wanted` the thread's state, given that `present` is.

    Returns a guard that must be kept alive while the state is in use, and released (`release`) before the next
    exchange; None when nothing had to be held.
    """
    if present == wanted:
        return None
    guard = None
    if present.inference != wanted.inference:
        guard = torch._C._InferenceMode(wanted.inference)
    if _is_grad_enabled() != wanted.grad:
        _set_grad_enabled(wanted.grad)
    if present.autocast != wanted.autocast:
        for device, enabled, dtype in wanted.autocast or [
            (d, False, t) for d, _, t in present.autocast or ()
        ]:
            torch.set_autocast_enabled(device, enabled)
            torch.set_autocast_dtype(device, dtype)
        torch.clear_autocast_cache()
    return guard
