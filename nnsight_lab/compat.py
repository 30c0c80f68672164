"""Running code that was written for nnsight, unmodified: opt-in, and taken back when asked.

    import nnsight_lab.compat

    nnsight_lab.compat.install()
    from nnsight import LanguageModel        # nnsight-lab's

`install` puts a module called `nnsight` (and those of its submodules that notebooks import from) into `sys.modules`,
whose names are nnsight-lab's own objects. It also gives *every* object a `.save()` while a trace is open, as nnsight
does: by a descriptor on `object` that exists only for code inside a trace, so that `hasattr(x, "save")` outside stays
what it was. Nothing of either happens unless `install` is called.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from types import ModuleType
from typing import Any

from .engine import TraceError
from .engine.openruns import any_open
from .engine.save import save

# Where nnsight's users import from, and what is there.
_NAMES: dict[str, tuple[str, ...]] = {
    "nnsight": ("NNsight", "LanguageModel", "Envoy", "save", "__version__"),
    "nnsight.modeling": ("LanguageModel",),
    "nnsight.modeling.base": ("NNsight",),
    "nnsight.modeling.language": ("LanguageModel",),
    "nnsight.intervention": ("Envoy",),
    "nnsight.intervention.envoy": ("Envoy",),
}


class CompatError(TraceError):
    """The `nnsight` module cannot be stood in for, or has no such name here."""


class _AnySave:
    """`.save` of any object, for code inside a trace."""

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None or not any_open():
            raise AttributeError("save")
        return lambda: save(instance)


class _StandIn(ModuleType):
    """A module whose names are nnsight-lab's."""

    def __init__(self, name: str) -> None:
        super().__init__(name, f"nnsight-lab in the place of {name}.")
        self.__path__: list[str] = []
        self.__all__ = [entry for entry in _NAMES[name] if not entry.startswith("_")]
        if "save" in _NAMES[name]:  # or the one of every object would be found first
            self.save = save

    def __getattr__(self, name: str) -> Any:
        if name in _NAMES[self.__name__]:
            return _own(name)
        if name.startswith("__"):
            raise AttributeError(name)
        raise CompatAttributeError(
            f"{self.__name__}.{name} is not in nnsight-lab; docs/migrating-from-nnsight.md says what is."
        )


class CompatAttributeError(CompatError, AttributeError):
    """A name of nnsight that nnsight-lab does not have."""


def _own(name: str) -> Any:
    import nnsight_lab

    if name == "Envoy":
        from .engine.envoy import Envoy

        return Envoy
    return getattr(nnsight_lab, name)


def _namespace() -> dict[str, Any]:
    """The dictionary of `object`, which Python shows read-only."""
    return gc.get_referents(object.__dict__)[0]


def _changed() -> None:
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(object))


def install(*, save_on_any_object: bool = True) -> None:
    """Let `import nnsight` give nnsight-lab from now on; a second call changes only what it asks for.

    Args:
        save_on_any_object: give every object a `.save()` inside traces. Tensors, and values that sites return, have
            one without it.

    Raises:
        CompatError: nnsight itself has been imported in this process.
    """
    present = sys.modules.get("nnsight")
    if present is not None and not isinstance(present, _StandIn):
        raise CompatError(
            "nnsight itself is imported in this process already: call nnsight_lab.compat.install() before the first "
            "`import nnsight`, in a fresh kernel."
        )
    for name in _NAMES:
        sys.modules.setdefault(name, _StandIn(name))
    for name in _NAMES:
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, sys.modules[name])
    if save_on_any_object:
        _namespace()["save"] = _AnySave()
        _changed()


def uninstall() -> None:
    """Take back what `install` did. Names that were imported meanwhile stay nnsight-lab's."""
    for name in _NAMES:
        if isinstance(sys.modules.get(name), _StandIn):
            del sys.modules[name]
    if isinstance(_namespace().get("save"), _AnySave):
        del _namespace()["save"]
        _changed()


__all__ = ["CompatAttributeError", "CompatError", "install", "uninstall"]
