"""What a wrapper keeps between traces, and the slot through which a forward is observed during one.

`ForwardSlot` puts a dispatcher in the place where a module looks its forward up (the instance's `forward`, or the
`_old_forward` that accelerate's hook calls). The dispatcher gives each run its own twin and everyone else the
original, and is removed with the last run that uses it. A twin that a run gives back is kept for the next one, so that
observing a forward again costs no more than observing its module.
"""

from __future__ import annotations

import copy
import functools
import threading
import weakref
from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

from greenlet import getcurrent
from torch import nn

from .gates import Gate, gate_for
from .listing import Listing
from .taps import Tap, tap_of

if TYPE_CHECKING:
    from .run import Run

_ABSENT: Any = object()
_slots: weakref.WeakValueDictionary[int, ForwardSlot] = weakref.WeakValueDictionary()
_lock = threading.RLock()  # a trace that the garbage collector ends may come in between


def forward_name(module: nn.Module) -> str:
    """The instance attribute whose function is the module's own forward."""
    own = module.__dict__
    return "_old_forward" if "_hf_hook" in own and "_old_forward" in own else "forward"


class Twin(NamedTuple):
    """A forward behind a gate, made from `basis`: a function, its code and what it was bound to."""

    basis: tuple[Any, Any, Any]
    gate: Gate
    forward: Callable[..., Any]


def same_basis(old: tuple[Any, Any, Any], new: tuple[Any, Any, Any]) -> bool:
    """Whether two forwards are made of the same function, code and receiver."""
    return old[0] is new[0] and old[1] is new[1] and old[2] is new[2]


class _Dispatcher(functools.partial[Any]):
    """What stands in a forward's place while it is observed. A copy or pickle of the module gets the original."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copy.deepcopy(self.func.__wrapped__, memo)  # type: ignore[attr-defined]

    def __reduce_ex__(self, protocol: Any) -> Any:
        original = self.func.__wrapped__  # type: ignore[attr-defined]
        return original.__reduce__() if isinstance(original, MethodType) else (copy.copy, (original,))


class ForwardSlot:
    """The place of one module's forward, shared by all runs that observe it."""

    __slots__ = ("__weakref__", "_dispatch", "module", "name", "original", "previous", "spare", "users")

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.users = 0
        self.name = "forward"
        self.original: Callable[..., Any] | None = None
        self.previous: Any = _ABSENT
        self.spare: dict[bool, Twin] = {}
        self._dispatch: _Dispatcher | None = None

    def basis(self) -> tuple[Any, Any, Any]:
        """What the module's forward is made of; it changes when the forward is another."""
        original = self.callable()
        function = getattr(original, "__func__", original)
        # The code is told apart too, because reloading tools put new code into the same function.
        return function, getattr(function, "__code__", None), getattr(original, "__self__", None)

    def callable(self) -> Callable[..., Any]:
        """The module's own forward, whether or not it is being observed."""
        if self.original is not None:
            return self.original
        forward: Callable[..., Any] = getattr(self.module, forward_name(self.module))
        return forward

    # In `attach` and `detach` what belongs together is done without a call in between: interrupts come after calls.

    def attach(self, forwards: dict[nn.Module, Twin], twin: Twin) -> None:
        """Let `twin` be the forward of the run that keeps its forwards in `forwards`."""
        with _lock:
            module = self.module
            new = module not in forwards
            if self.users == 0:
                own = module.__dict__
                name = forward_name(module)
                previous = own.get(name, _ABSENT)
                original = getattr(module, name)
                dispatcher = self._dispatcher(original)
                self.name, self.previous, self.original = name, previous, original
                own[name] = dispatcher
            self.users += new
            forwards[module] = twin

    def detach(self, forwards: dict[nn.Module, Twin]) -> Twin:
        """Undo `attach`; returns the twin, for `give_back`."""
        with _lock:
            module, own = self.module, self.module.__dict__
            twin = forwards[module]
            del forwards[module]
            self.users -= 1
            if self.users == 0:
                if self.previous is not _ABSENT:
                    own[self.name] = self.previous
                elif self.name in own:
                    del own[self.name]
                self.previous = _ABSENT
                self.original = None
        return twin

    def take(self, everything: bool) -> Twin:
        """A twin of the forward for one run's use. Raises SourceUnavailableError."""
        basis = self.basis()
        twin = self.spare.pop(everything, None)
        if twin is None or not same_basis(twin.basis, basis):
            original = self.callable()
            gate = gate_for(original, everything, "forward")
            twin = Twin(basis, gate, gate.wrap(original, "forward"))
        return twin

    def give_back(self, twin: Twin) -> None:
        twin.gate.reset()
        self.spare[twin.gate.rewritten.listing.everything] = twin

    def _dispatcher(self, original: Callable[..., Any]) -> Callable[..., Any]:
        key = self.module
        if self._dispatch is not None and self._dispatch.func.__wrapped__ == original:  # type: ignore[attr-defined]
            return self._dispatch

        def forward(*args: Any, **kwargs: Any) -> Any:
            run: Run | None = getattr(getcurrent(), "nnsight_run", None)
            twin = None if run is None else run.forwards.get(key)
            return (original if twin is None else twin.forward)(*args, **kwargs)

        forward.__wrapped__ = original  # type: ignore[attr-defined]  # signatures are read from it
        self._dispatch = _Dispatcher(forward)
        return self._dispatch


def slot_of(module: nn.Module) -> ForwardSlot:
    slot = _slots.get(id(module))
    if slot is None or slot.module is not module:
        with _lock:
            slot = _slots.get(id(module))
            if slot is None or slot.module is not module:
                slot = _slots[id(module)] = ForwardSlot(module)
    return slot


class Instruments:
    """The taps of one wrapped tree, its callees known from earlier runs, and its touched sources.

    `touched` holds the modules one of whose operations was addressed outside a trace, with the address of their
    `.source` and whether everything in it was asked for: their forwards are observed from the start of the next one.
    """

    def __init__(self, root: nn.Module, label: str) -> None:
        self.root = root
        self.label = label
        self.touched: dict[nn.Module, tuple[str, bool]] = {}
        self.slots: dict[nn.Module, ForwardSlot] = {}
        self.callees: dict[tuple[str, int, str], Any] = {}
        self._taps: list[Tap] = []
        self._parents: dict[Tap, list[Tap]] = {}
        self._lineages: dict[Tap, tuple[Tap, ...]] = {}
        self.tap_set: frozenset[Tap] = frozenset()

    def taps(self) -> list[Tap]:
        if not self._taps:
            self.refresh()
        return self._taps

    def slot(self, module: nn.Module) -> ForwardSlot:
        """The module's forward slot, kept with its spare twins for as long as the wrapper lives."""
        slot = self.slots.get(module)
        if slot is None:
            slot = self.slots[module] = slot_of(module)
        return slot

    def refresh(self) -> None:
        """Take notice of a changed tree."""
        parents: dict[Tap, list[Tap]] = {}
        for module in self.root.modules():
            parent = tap_of(module)
            parents.setdefault(parent, [])
            for child in module._modules.values():
                if child is not None:
                    parents.setdefault(tap_of(child), []).append(parent)
        self._parents, self._lineages = parents, {}  # whole, for other threads may be reading them
        self._taps = list(parents)
        self.tap_set = frozenset(self._taps)

    def lineage(self, tap: Tap) -> tuple[Tap, ...]:
        """The taps of all modules that the tapped one is part of, on whatever path; none outside the tree."""
        known = self._lineages.get(tap)
        if known is not None:
            return known
        found: dict[Tap, None] = {}
        above = list(self._parents.get(tap, ()))
        while above:
            parent = above.pop()
            if parent not in found:
                found[parent] = None
                above += self._parents.get(parent, ())
        lineage = self._lineages[tap] = tuple(found)
        return lineage

    def path_of(self, module: nn.Module) -> str | None:
        """The code that addresses `module` from the root, or None."""
        for path, candidate in self.root.named_modules(remove_duplicate=False):
            if candidate is module:
                return spell(self.root, path, self.label)
        return None

    def remember_callee(self, caller: Listing, label: str, callee: Any) -> None:
        """Keep what an operation called, which should hold no values of the run."""
        self.callees[_place(caller, label)] = callee

    def known_callee(self, caller: Listing, label: str) -> Any:
        """What the operation called when it was last observed, or None."""
        return self.callees.get(_place(caller, label))


def _place(caller: Listing, label: str) -> tuple[str, int, str]:
    return (caller.filename, caller.first_line, label)


# Attributes that a wrapped module has of its own; a child of that name is spelled `.child("name")`.
RESERVED = frozenset({"output", "input", "inputs", "source", "skip", "next", "child", "get", "path"})
ROOT_RESERVED = frozenset({"trace", "tokenizer", "lab", "generate", "generator", "session", "scan", "edit"})


def spell(root: nn.Module, path: str, label: str) -> str:
    """`path` as code: `transformer.h.0.mlp` -> `model.transformer.h[0].mlp`."""
    text, module = label, root
    for name in path.split(".") if path else ():
        if name.isdigit() and isinstance(module, (nn.ModuleList, nn.Sequential)):
            text += f"[{name}]"
        elif not name.isidentifier() and isinstance(module, nn.ModuleDict):
            text += f"[{name!r}]"
        elif name in RESERVED or not name.isidentifier() or (module is root and name in ROOT_RESERVED):
            text += f'.child("{name}")'
        else:
            text += f".{name}"
        module = module._modules[name]  # type: ignore[assignment]
    return text
