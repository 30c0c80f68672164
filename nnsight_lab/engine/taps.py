"""Where the engine meets a module's call.

`torch.nn.Module.__call__` consults the instance attribute `_compiled_call_impl` before anything else; a tap puts
itself there while a trace is running and takes itself away afterwards. That place is outside the module's own
hooks, so `.output` is what the caller receives, hooks included, and the call keeps torch's fast path.

There is one tap a module, whatever the number of wrappers, in one of two grades:

- counting: the slot holds `functools.lru_cache(maxsize=0)` around the module's call, which caches nothing and counts
  calls in C. Every module of the tree has it from the first request of a trace on, at no cost that could be measured,
  so that "already passed" and "never ran" can be told apart for a module that nobody had asked for when it ran.
- observing: the slot holds `enter`, which finds the run by the current greenlet and lets its point see the call. Only
  the modules asked for and their ancestors have it. A call from another thread, from the body or from another trace
  passes straight through; it makes the run's counts uncertain, which the run is told.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent
from torch import nn

if TYPE_CHECKING:
    from .run import Run

_SLOT = "_compiled_call_impl"
_registry: weakref.WeakValueDictionary[int, Tap] = weakref.WeakValueDictionary()
_lock = threading.RLock()  # a trace that the garbage collector ends may come in between
_open: list[Run] = []


class Tap:
    """The engine's place in one module's call. Made by `tap_of`, shared by all wrappers of the module."""

    __slots__ = ("__weakref__", "counter", "module", "observers", "own", "previous", "users")

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.own = module.__dict__
        self.counter = _counting(module._call_impl)
        self.users = 0
        self.observers = 0
        self.previous: Any = None

    def enter(self, *args: Any, **kwargs: Any) -> Any:
        """What the module's call does while it is observed."""
        run: Run | None = getattr(getcurrent(), "nnsight_run", None)
        if run is None or self not in run.observed:
            _disturb(self, run)
            return self.counter(*args, **kwargs)
        if len(_open) > 1:
            _disturb(self, run)
        run.observed[self] += 1
        stack = run.stack
        stack.append(self)
        try:
            point = run.points.get(self)
            if point is not None:
                value = point.visit(self.counter, args, kwargs)
            else:
                value = self.counter(*args, **kwargs)
                point = run.points.get(self)
                if point is not None:  # asked for while it ran: its way out is still ahead
                    value = point.leave(args, kwargs, value)
            if run.late:
                for caller in run.late.pop(self, ()):
                    value = caller.leave(args, kwargs, value)
            return value
        finally:
            if stack:
                stack.pop()

    def calls(self) -> int:
        """Calls counted since the tap was attached by its first user."""
        return self.counter.cache_info().misses


def _counting(call: Callable[..., Any]) -> Any:
    return functools.lru_cache(maxsize=0)(call)


def _disturb(tap: Tap, caller: Run | None) -> None:
    for run in _open:
        if run is not caller and tap in run.observed:
            run.disturbed = True


def tap_of(module: nn.Module) -> Tap:
    """The one tap of `module`."""
    tap = _registry.get(id(module))
    if tap is None or tap.module is not module:
        with _lock:
            tap = _registry.get(id(module))
            if tap is None or tap.module is not module:
                tap = _registry[id(module)] = Tap(module)
    return tap


def attach(run: Run, taps: list[Tap]) -> None:
    """Let the taps count for `run`; the counts so far of those that were counting already go to `run.before`."""
    done = 0
    with _lock:
        try:
            if run not in _open:
                _open.append(run)
            for tap in taps:
                users = tap.users
                tap.users = users + 1
                done += 1
                if users:
                    run.before[tap] = tap.calls()
                    continue
                counter = tap.counter
                previous = tap.own.setdefault(_SLOT, counter)
                if previous is counter:
                    counter.cache_clear()
                else:
                    if previous is not None:  # a module compiled on its own: its compiled call is what is counted
                        tap.previous = previous
                        tap.counter = _counting(previous)
                    tap.own[_SLOT] = tap.counter
        finally:
            run.taps += taps[:done]


def observe(run: Run, tap: Tap, count: int) -> None:
    """Let an attached tap see its module's calls, of which `run` has had `count` so far."""
    with _lock:
        tap.observers += 1
        tap.own[_SLOT] = tap.enter
        run.observed[tap] = count


def detach(run: Run) -> None:
    """Undo `attach` and `observe` for `run`.

    An interrupt in here is raised at the end: until then the loops go on where it met them. Python lets one in after
    calls and at the ends of loops only, so what a turn of a loop does without a call is done as a whole.
    """
    with _lock:
        observed, taps = iter(run.observed), iter(run.taps)
        run.observed, run.taps = {}, []
        interrupt: BaseException | None = None
        while True:
            try:
                for tap in observed:
                    tap.observers -= 1
                    if not tap.observers:
                        tap.own[_SLOT] = tap.counter
                for tap in taps:
                    users = tap.users = tap.users - 1
                    if not users and tap.previous is None:
                        del tap.own[_SLOT]
                    elif not users:
                        tap.own[_SLOT] = tap.previous
                        tap.previous = None
                        tap.counter = _counting(tap.module._call_impl)
                if run in _open:
                    _open.remove(run)
                break
            except BaseException as error:
                interrupt = error
    if interrupt is not None:
        raise interrupt
