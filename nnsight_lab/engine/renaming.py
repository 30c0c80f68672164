"""`NNsight(..., rename={...})`: further names for modules, so that one body fits models that spell a part differently.

An alias is a way to write an address, nothing more: it is looked up where a name is not the model's own, and leads to
the module's envoy, whose path, messages and keys keep the real name. Names that would hide something are refused when
the model is wrapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import nn

from .instruments import RESERVED, ROOT_RESERVED, spell

RenameKey = str | type[nn.Module]


class Renaming:
    """The aliases of one wrapped tree.

    Args:
        names: from what is renamed to its alias or aliases. A name (`"attn"`) is renamed wherever a module has such a
            child, a dotted path (`"transformer.h"`) gets its alias on the module where it starts; `*` in it stands for
            any one name. A module class stands for the one child of that class. A key that nothing fits has no effect:
            one mapping may serve models that spell the same part differently.
        root: the wrapped module.
        label: how the wrapper is called.
        api: the wrapper's class, whose attributes cannot be aliases.

    Raises:
        ValueError: an alias is no name, hides a name that is there, or means two modules.
    """

    def __init__(self, names: Mapping[RenameKey, str | Sequence[str]], root: nn.Module, label: str, api: type) -> None:
        self.given = dict(names)
        self._keys: dict[str, list[RenameKey]] = {}
        for key, aliases in names.items():
            for alias in [aliases] if isinstance(aliases, str) else aliases:
                if not alias.isidentifier() or alias.startswith("_"):
                    raise ValueError(f"rename: {alias!r} cannot be an alias; it must be a plain name like 'layers'.")
                self._keys.setdefault(alias, []).append(key)
        for path, module in root.named_modules():
            for alias, found in self._of(module):
                where = spell(root, path, label)
                taken = self._taken(module, alias, module is root, api)
                if taken is not None:
                    raise ValueError(f"rename: {alias!r} for {where}.{found} would hide {taken}. Take another alias.")

    def _taken(self, module: nn.Module, alias: str, is_root: bool, api: type) -> str | None:
        """What an alias would hide, if anything."""
        if alias in RESERVED or (is_root and alias in ROOT_RESERVED) or hasattr(api, alias):
            return f"nnsight-lab's own .{alias}"
        if module._modules.get(alias) is not None:
            return "the child module of that name"
        return f"the {type(module).__name__}'s own .{alias}" if hasattr(module, alias) else None

    def _of(self, module: nn.Module) -> Iterator[tuple[str, str]]:
        """Pairs of alias and the real path that it stands for, below `module`."""
        for alias in self._keys:
            found = self.find(module, alias)
            if found is not None:
                yield alias, found

    def names(self, module: nn.Module) -> list[str]:
        """The aliases that `module` has."""
        return [alias for alias, _ in self._of(module)]

    def find(self, module: nn.Module, alias: str) -> str | None:
        """The real path below `module` that an alias stands for there, or None.

        Raises:
            ValueError: it stands for two modules.
        """
        found = {path: None for key in self._keys.get(alias, ()) for path in _fitting(module, key) if path != alias}
        if len(found) > 1:
            raise ValueError(f"rename: {alias!r} would stand for {' and '.join(found)} at once. Name them apart.")
        return next(iter(found), None)

    def missing(self, name: str) -> str:
        """A phrase on an alias that was asked for where it stands for nothing, or the empty string."""
        keys = self._keys.get(name, ())
        spelled = " or ".join(key if isinstance(key, str) else key.__name__ for key in keys)
        return f" It is an alias of {spelled}, which this module does not have." if keys else ""

    def shown(self, root: nn.Module, label: str) -> dict[int, list[str]]:
        """How the tree shows the aliases of each renamed module, by its id."""
        found: dict[int, list[str]] = {}
        for path, module in root.named_modules():
            for alias, real in self._of(module):
                text = f".{alias}" if "." not in real else f"{spell(root, path, label)}.{alias}"
                found.setdefault(id(module.get_submodule(real)), []).append(text)
        return found


def _fitting(module: nn.Module, key: RenameKey) -> list[str]:
    """The paths below `module` that a key of `rename` names."""
    if isinstance(key, type):
        return [name for name, child in module._modules.items() if isinstance(child, key)]
    paths: list[tuple[str, Any]] = [("", module)]
    for part in key.removeprefix(".").split("."):
        paths = [
            (f"{path}.{name}" if path else name, child)
            for path, parent in paths
            for name, child in parent._modules.items()
            if child is not None and part in (name, "*")
        ]
    return [path for path, _ in paths]
