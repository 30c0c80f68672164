"""Where the engine meets a module's call.

`torch.nn.Module.__call__` consults the instance attribute `_compiled_call_impl` before anything else; a tap puts
itself there while a trace is running and takes itself away afterwards. That place is outside the module's own
hooks, so `.output` is what the caller receives, hooks included, and the call keeps torch's fast path.

There is one tap a module, whatever the number of wrappers, and it asks the current greenlet which run it belongs
to: the same module called from another thread, from the body, or by another trace passes straight through. A tap
that nobody asked for only counts its module's calls and notes that it is running, which is how "already passed" and
"never ran" are told apart.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent
from torch import nn

if TYPE_CHECKING:
    from .run import Run

_SLOT = "_compiled_call_impl"
_registry: weakref.WeakValueDictionary[int, Tap] = weakref.WeakValueDictionary()
_lock = threading.Lock()


class Tap:
    """The engine's place in one module's call. Made by `tap_of`, shared by all wrappers of the module."""

    __slots__ = ("__weakref__", "call", "module", "previous", "users")

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.users = 0
        self.previous: Any = None
        self.call: Callable[..., Any] = module._call_impl

    def attach(self) -> None:
        """Take the slot; the caller holds the lock."""
        if self.users == 0:
            slots = self.module.__dict__
            self.previous = slots.get(_SLOT)
            self.call = self.module._call_impl if self.previous is None else self.previous
            slots[_SLOT] = self.enter
        self.users += 1

    def detach(self) -> None:
        """Give the slot back; the caller holds the lock."""
        self.users -= 1
        if self.users == 0:
            slots = self.module.__dict__
            if self.previous is None:
                slots.pop(_SLOT, None)
            else:
                slots[_SLOT] = self.previous
            self.previous = None

    def enter(self, *args: Any, **kwargs: Any) -> Any:
        """What the module's call does while the tap is attached."""
        run: Run | None = getattr(getcurrent(), "nnsight_run", None)
        if run is None or run.closed:
            return self.call(*args, **kwargs)
        run.calls[self] += 1
        stack = run.stack
        stack.append(self)
        try:
            point = run.points.get(self)
            if point is not None:
                return point.visit(self.call, args, kwargs)
            value = self.call(*args, **kwargs)
            point = run.points.get(self)
            # The body may have asked for this module while it ran: its way out is still ahead.
            return value if point is None else point.leave(args, kwargs, value)
        finally:
            stack.pop()


def tap_of(module: nn.Module) -> Tap:
    """The one tap of `module`."""
    tap = _registry.get(id(module))
    if tap is None or tap.module is not module:
        tap = Tap(module)
        _registry[id(module)] = tap
    return tap


def attach(taps: Iterable[Tap]) -> None:
    with _lock:
        for tap in taps:
            tap.attach()


def detach(taps: Iterable[Tap]) -> None:
    with _lock:
        for tap in taps:
            tap.detach()
