"""The per-thread switches of torch that must not leak between the body and the model.

Body and model share one thread, so they share torch's thread-local state. Whoever pauses inside `no_grad`,
`inference_mode`, `autocast`, a default device or dtype, a torch function or dispatch mode, or saved-tensor hooks
(gradient checkpointing) would leave the other one in it. `Alternation` reads the switches at each turn and, only when
the two sides differ, puts the other side's in their place.

Inference mode can be set only by holding a guard object, whose release puts back the whole dispatch state that it
found, autocast included. Hence the order in an exchange: mode stacks down, guards released, switches set one by
one, mode stacks up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import repeat
from typing import Any, NamedTuple

import torch
from torch.utils import _device as default_device
from torch.utils._python_dispatch import _pop_mode, _push_mode

_is_grad_enabled = torch.is_grad_enabled
_is_inference = torch.is_inference_mode_enabled
_default_dtype = torch.get_default_dtype
_any_autocast = torch._C._is_any_autocast_enabled
_function_modes = torch._C._len_torch_function_stack
_dispatch_modes = torch._C._len_torch_dispatch_stack
_top_hooks: Callable[[bool], tuple[Any, Any] | None] = torch._C._autograd._top_saved_tensors_default_hooks

Autocast = tuple[tuple[str, bool, torch.dtype], ...]


class Stacks(NamedTuple):
    """The thread's mode stacks, each from the bottom up, and the default device that goes with them."""

    function: tuple[Any, ...]
    dispatch: tuple[Any, ...]
    hooks: tuple[tuple[Any, Any], ...]
    device: torch.device | None


# Grad mode, inference mode, default dtype; autocast and stacks only where something is on. A plain tuple, because one
# is made and compared at every turn.
ThreadState = tuple[bool, bool, torch.dtype, Autocast | None, Stacks | None]


@cache
def _autocast_devices() -> tuple[str, ...]:
    accelerator = torch.accelerator.current_accelerator()
    return ("cpu",) if accelerator is None else ("cpu", accelerator.type)


def _autocast() -> Autocast:
    return tuple(
        (device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)) for device in _autocast_devices()
    )


def _lift_hooks() -> tuple[tuple[Any, Any], ...]:
    """Take the saved-tensor hooks off their stack; only its top can be looked at."""
    found = []
    while (top := _top_hooks(True)) is not None:
        found.append(top)
        torch._C._autograd._pop_saved_tensors_default_hooks()
    return tuple(reversed(found))


def _lay_hooks(hooks: tuple[tuple[Any, Any], ...]) -> None:
    for pack, unpack in hooks:
        torch._C._autograd._push_saved_tensors_default_hooks(pack, unpack)


def _stacks() -> Stacks:
    hooks = _lift_hooks()
    _lay_hooks(hooks)
    return Stacks(
        tuple(torch._C._get_function_stack_at(i) for i in range(_function_modes())),
        tuple(torch._C._get_dispatch_stack_at(i) for i in range(_dispatch_modes())),
        hooks,
        default_device.CURRENT_DEVICE,
    )


def _take_down(stacks: Stacks | None) -> None:
    if stacks is None:
        return
    for _ in stacks.function:
        torch._C._pop_torch_function_stack()
    for mode in reversed(stacks.dispatch):
        _pop_mode(getattr(mode, "_mode_key", None))
    _lift_hooks()
    default_device.CURRENT_DEVICE = None


def _put_up(stacks: Stacks | None) -> None:
    if stacks is None:
        return
    for mode in stacks.function:
        torch._C._push_on_torch_function_stack(mode)
    for mode in stacks.dispatch:
        _push_mode(mode)
    _lay_hooks(stacks.hooks)
    default_device.CURRENT_DEVICE = stacks.device


def capture() -> ThreadState:
    """The calling thread's present state."""
    return (
        _is_grad_enabled(),
        _is_inference(),
        _default_dtype(),
        _autocast() if _any_autocast() else None,
        _stacks() if _function_modes() or _dispatch_modes() or _top_hooks(True) is not None else None,
    )


class Alternation:
    """The switches of a run's two sides. Made where the trace is opened: the model starts with what holds there."""

    __slots__ = ("_autocast_dtypes", "_guards", "model")

    def __init__(self) -> None:
        self.model = capture()
        self._autocast_dtypes = [torch.get_autocast_dtype(device) for device in _autocast_devices()]
        self._guards: list[Any] = []

    @property
    def grad(self) -> bool:
        """Whether gradients are recorded on the model's side."""
        return self.model[0]

    def to_model(self, body: ThreadState) -> None:
        """Put the model's switches in place of the body's, which hold now."""
        if self._guards or body != self.model:
            self._put(body, self.model)

    def to_body(self, body: ThreadState) -> None:
        """Note the model's switches and put the body's in place."""
        self.model = model = capture()
        if self._guards or body != model:
            self._put(model, body)

    def end(self) -> None:
        """Let go of what is held, leaving the thread's switches as they are."""
        if self._guards:
            now = capture()
            stacks = now[4]
            _take_down(stacks)
            self._guards.clear()
            self._set(now)
            _put_up(stacks)

    def _put(self, present: ThreadState, wanted: ThreadState) -> None:
        _take_down(present[4])
        self._guards.clear()
        inference = wanted[1]
        if _is_inference() != inference:
            self._guards.append(torch._C._InferenceMode(inference))
        self._set(wanted)
        _put_up(wanted[4])

    def _set(self, wanted: ThreadState) -> None:
        grad, _, dtype, autocast, _ = wanted
        if _default_dtype() != dtype:
            torch.set_default_dtype(dtype)
        if _is_grad_enabled() != grad:
            torch._C._set_grad_enabled(grad)
        if autocast is None:
            autocast = tuple(zip(_autocast_devices(), repeat(False), self._autocast_dtypes, strict=False))
        if _autocast() != autocast:
            for device, enabled, cast_to in autocast:
                torch.set_autocast_enabled(device, enabled)
                torch.set_autocast_dtype(device, cast_to)
            torch.clear_autocast_cache()
