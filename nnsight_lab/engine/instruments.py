"""What a wrapper keeps between traces, and the slot through which a forward is observed during one.

`ForwardSlot` puts a dispatcher in the place where a module looks its forward up (the instance's `forward`, or the
`_old_forward` that accelerate's hook calls). The dispatcher gives each run its own twin and everyone else the
original, and is removed with the last run that uses it.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent
from torch import nn

from .listing import Listing
from .taps import Tap, tap_of

if TYPE_CHECKING:
    from .run import Run

_ABSENT: Any = object()
_slots: weakref.WeakValueDictionary[int, ForwardSlot] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def forward_name(module: nn.Module) -> str:
    """The instance attribute whose function is the module's own forward."""
    hooked = "_hf_hook" in module.__dict__ and "_old_forward" in module.__dict__
    return "_old_forward" if hooked else "forward"


class ForwardSlot:
    """The place of one module's forward, shared by all runs that observe it."""

    __slots__ = ("__weakref__", "module", "name", "original", "previous", "users")

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.users = 0
        self.name = "forward"
        self.original: Callable[..., Any] = module.forward
        self.previous: Any = _ABSENT

    def attach(self) -> None:
        with _lock:
            if self.users == 0:
                own = self.module.__dict__
                self.name = forward_name(self.module)
                self.previous = own.get(self.name, _ABSENT)
                self.original = getattr(self.module, self.name)
                own[self.name] = self._dispatcher()
            self.users += 1

    def detach(self) -> None:
        with _lock:
            self.users -= 1
            if self.users == 0:
                own = self.module.__dict__
                if self.previous is _ABSENT:
                    own.pop(self.name, None)
                else:
                    own[self.name] = self.previous
                self.previous = _ABSENT

    def _dispatcher(self) -> Callable[..., Any]:
        original = self.original
        key = self.module

        def forward(*args: Any, **kwargs: Any) -> Any:
            run: Run | None = getattr(getcurrent(), "nnsight_run", None)
            twin = None if run is None else run.forwards.get(key)
            return (twin or original)(*args, **kwargs)

        forward.__wrapped__ = original  # type: ignore[attr-defined]  # signatures are read from it
        return forward


def slot_of(module: nn.Module) -> ForwardSlot:
    slot = _slots.get(id(module))
    if slot is None or slot.module is not module:
        slot = ForwardSlot(module)
        _slots[id(module)] = slot
    return slot


class Instruments:
    """The taps of one wrapped tree, its callees known from earlier runs, and its touched sources.

    `touched` holds the modules one of whose operations was addressed outside a trace: their forwards are observed
    from the start of the next one.
    """

    def __init__(self, root: nn.Module, label: str) -> None:
        self.root = root
        self.label = label
        self.touched: dict[nn.Module, str] = {}
        self.callees: dict[tuple[str, int, str], Any] = {}
        self._taps: list[Tap] = []
        self.tap_set: frozenset[Tap] = frozenset()

    def taps(self) -> list[Tap]:
        if not self._taps:
            self.refresh()
        return self._taps

    def refresh(self) -> None:
        """Take notice of a changed tree."""
        self._taps = [tap_of(module) for module in self.root.modules()]
        self.tap_set = frozenset(self._taps)

    def path_of(self, module: nn.Module) -> str | None:
        """The code that addresses `module` from the root, or None."""
        for path, candidate in self.root.named_modules(remove_duplicate=False):
            if candidate is module:
                return spell(self.root, path, self.label)
        return None

    def remember_callee(self, caller: Listing, label: str, callee: Any) -> None:
        """Keep what an operation called, without the object that a method was bound to."""
        self.callees[_place(caller, label)] = getattr(callee, "__func__", callee)

    def known_callee(self, caller: Listing, label: str) -> Any:
        """What the operation called when it was last stepped into, or None."""
        return self.callees.get(_place(caller, label))


def _place(caller: Listing, label: str) -> tuple[str, int, str]:
    return (caller.filename, caller.first_line, label)


# Attributes that a wrapped module has of its own; a child of that name is spelled `.child("name")`.
RESERVED = frozenset({"output", "input", "inputs", "source", "skip", "child", "get", "path"})
ROOT_RESERVED = frozenset({"trace", "tokenizer", "generate", "session", "scan", "edit"})


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
