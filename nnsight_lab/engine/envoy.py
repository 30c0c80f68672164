"""Wrapped modules: the tree that a body addresses.

An `Envoy` stands for one module at one path. Attributes that are child modules give envoys, all others come from the
module itself; `.output`, `.input`, `.inputs`, `.skip` are the site's (see `Site`), `.source` its operations.
Envoys hold no values and install nothing; they can be kept, passed around and used in any number of traces.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from .errors import UnknownNameError, nearest
from .instruments import RESERVED, Instruments, spell
from .openruns import current_run, outside_trace
from .points import LEAVE, Arguments, Point
from .renaming import Renaming
from .run import Run
from .save import with_save
from .sites import Site
from .source import ModuleSource
from .taps import tap_of

# Methods that return the module itself; on a wrapper they return the wrapper.
_FLUENT = frozenset({
    "to", "train", "eval", "cpu", "cuda", "xpu", "float", "double", "half", "bfloat16", "type", "apply", "to_empty",
    "requires_grad_", "share_memory",
})  # fmt: skip


class Envoy(Site):
    """One module of a wrapped tree."""

    def __init__(self, module: nn.Module, root: Envoy | None, dotted: str) -> None:
        own = self.__dict__
        own["_module"] = module
        own["_root"] = root if root is not None else self
        own["_dotted"] = dotted
        own["_children"] = {}
        own["_tap"] = None
        own["_sources"] = {}

    # Addressing

    @property
    def path(self) -> str:
        """The code that reaches this module: `model.transformer.h[0].mlp`."""
        own = self.__dict__
        if "_path" not in own:
            root = self._root
            own["_path"] = spell(root._module, self._dotted, root._instruments.label)
        return own["_path"]

    @property
    def _instruments(self) -> Instruments:
        return self._root.__dict__["_own_instruments"]

    def _envoy_of(self, name: str, module: nn.Module) -> Envoy:
        children: dict[str, Envoy] = self.__dict__["_children"]
        found = children.get(name)
        if found is None or found._module is not module:
            dotted = f"{self._dotted}.{name}" if self._dotted else name
            found = children[name] = Envoy(module, self._root, dotted)
        return found

    def _repoint(self, module: nn.Module) -> None:
        """Stand for `module` from now on, and so below."""
        self.__dict__["_module"] = module
        self.__dict__["_tap"] = None
        for name, envoy in list(self._children.items()):
            child = module._modules.get(name)
            if child is None:
                del self._children[name]
            else:
                envoy._repoint(child)

    def child(self, name: str) -> Envoy:
        """The child module called `name`, also where the name is one of the wrapper's own (`output`) or an alias.

        Raises:
            UnknownNameError: there is no such child.
        """
        module = self._module._modules.get(name)
        if module is None:
            renamed = self._renamed(name)
            if renamed is not None:
                return renamed
            raise UnknownNameError(f"{self.path} has no child module {name!r}.{self._instead_of(name)}")
        return self._envoy_of(name, module)

    def _renamed(self, name: str) -> Envoy | None:
        """The module that has `name` as an alias here, or None."""
        renaming: Renaming | None = self._root.__dict__.get("_renaming")
        path = None if renaming is None else renaming.find(self._module, name)
        return None if path is None else self.get(path)

    def get(self, path: str) -> Envoy:
        """The module at a dotted path below this one, `transformer.h.0.mlp`.

        Raises:
            UnknownNameError: a part of the path does not exist; the nearest names are given.
        """
        envoy = self
        for name in path.split(".") if path else ():
            envoy = envoy.child(name)
        return envoy

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        module = own.get("_module")
        if module is None:  # being unpickled or copied
            raise AttributeError(name)
        if "_pending_error" in own:
            raise own.pop("_pending_error")
        child = module._modules.get(name)
        if child is not None:
            return self._envoy_of(name, child)
        renamed = self._renamed(name)
        if renamed is not None:
            return renamed
        try:
            value = getattr(module, name)
        except AttributeError as error:
            if name.startswith(("__", "_repr_", "_ipython_")):
                raise
            if hasattr(type(module), name):  # a property of the module that failed
                raise
            raise UnknownNameError(
                f"{self.path} ({type(module).__name__}) has no submodule or attribute {name!r}.{self._instead_of(name)}"
            ) from error
        if name in _FLUENT and getattr(value, "__self__", None) is module:
            return _Fluent(value, self)
        return value

    def _names(self) -> list[str]:
        """What a user addresses here: child modules, the site's attributes, the module's own data."""
        module = self._module
        children = [key for key, value in module._modules.items() if value is not None]
        renaming: Renaming | None = self._root.__dict__.get("_renaming")
        if renaming is not None:
            children += renaming.names(module)
        data = [key for key in vars(module) if not key.startswith("_")]
        return [*children, *sorted(RESERVED), *data]

    def _instead_of(self, name: str) -> str:
        """A hint for a name that does not exist: the nearest ones, else the child modules there are."""
        renaming: Renaming | None = self._root.__dict__.get("_renaming")
        hint = (renaming.missing(name) if renaming is not None else "") or nearest(name, self._names())
        children = [key for key, value in self._module._modules.items() if value is not None]
        if hint or not children:
            return hint
        shown = ", ".join(children[:8]) + (", ..." if len(children) > 8 else "")
        return f" Its modules: {shown}."

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(getattr(type(self), name, None), property):
            object.__setattr__(self, name, value)
        elif hasattr(self._module, name):
            if isinstance(value, Envoy):
                value = value._module
            setattr(self._module, name, value)
        else:
            raise UnknownNameError(
                f"{self.path} ({type(self._module).__name__}) has nothing called {name!r} to assign to."
                f"{self._instead_of(name)} A new attribute goes on the module itself: {self.path}._module.{name} = ..."
            )

    def __getitem__(self, key: Any) -> Any:
        module = self._module
        if type(key) is int and isinstance(module, nn.ModuleList):
            found = module._modules.get(str(key))
            if found is not None:
                return self._envoy_of(str(key), found)
        asked = key
        if isinstance(key, slice):
            return [self[index] for index in range(*key.indices(len(self)))]
        if isinstance(module, nn.ModuleDict):
            return self.child(key)
        if isinstance(module, (nn.ModuleList, nn.Sequential)):
            names = list(module._modules)
            key = _number(key)
            if key is None or not -len(names) <= key < len(names):
                raise IndexError(f"{self.path} has {len(names)} modules; {asked!r} is not one of their numbers.")
            return self.child(names[key])
        raise TypeError(f"{self.path} is a {type(module).__name__}, which cannot be indexed.")

    def __len__(self) -> int:
        return len(self._module)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        if isinstance(self._module, nn.ModuleDict):
            return iter(self._module)
        if isinstance(self._module, (nn.ModuleList, nn.Sequential)):
            return (self.child(name) for name in self._module._modules)
        raise TypeError(f"{self.path} is a {type(self._module).__name__}, which cannot be iterated over.")

    def __contains__(self, key: Any) -> bool:
        return key in self._module

    def __dir__(self) -> list[str]:
        api = [name for name in object.__dir__(self) if not name.startswith("_") or name.startswith("__")]
        return sorted({*api, *self._names()})

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Envoy]]:
        """Pairs of dotted path and envoy, this one first; with `remove_duplicate=False` aliases too."""
        for path, _ in self._module.named_modules(remove_duplicate=remove_duplicate):
            yield path, self.get(path)

    def modules(self) -> Iterator[Envoy]:
        """The envoys of this module and all below it, each module once."""
        return (envoy for _, envoy in self.named_modules())

    def children(self) -> Iterator[Envoy]:
        """The envoys of the direct children."""
        return (envoy for _, envoy in self.named_children())

    def named_children(self) -> Iterator[tuple[str, Envoy]]:
        """Pairs of name and envoy of the direct children."""
        return ((name, self._envoy_of(name, module)) for name, module in self._module.named_children())

    # Being used

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module itself, outside any trace: in a body, a logit lens is `model.lm_head(hidden)`."""
        run = current_run(self._root)
        if run is None:
            return self._module(*args, **kwargs)
        with run.uncounted(self._module):
            return self._module(*args, **kwargs)

    def next(self, step: int = 1) -> Envoy:
        """This module in the next step of a generation: `model.lm_head.next().output`, once for each further step.

        The model goes on to that step, for all modules; each counts its own `next`, so that two modules that are asked
        once each are both read in the same step.

        Raises:
            OutsideTraceError: no trace is open.
            NotReachedError: the generation ended before.
            OutOfOrderError: the model is past that step.
        """
        run = current_run(self._root)
        if run is None:
            raise outside_trace(f"{self.path}.next()")
        if step < 1:
            raise ValueError(f"{self.path}.next({step}): steps go forward, by 1 or more.")
        run.in_steps().forward_for(tap_of(self._module), step)
        return self

    def _locate(self, attribute: str) -> tuple[Run, Point, int | None]:
        run, point = self._point(attribute)
        return run, point, None

    def _point(self, attribute: str) -> tuple[Run, Point]:
        own = self.__dict__
        run = current_run(own["_root"])
        if run is None:
            raise outside_trace(f"{self.path}.{attribute}")
        tap = own["_tap"]
        if tap is None:
            tap = own["_tap"] = tap_of(own["_module"])
        point = run.points.get(tap)
        if point is None:
            point = run.module_point(tap, self.path)
        return run, point

    # Python answers an AttributeError in a property by asking `__getattr__` for the same name, which would hide an
    # error of the model; each getter leaves it there to be raised again.

    @property
    def output(self) -> Any:
        try:
            run, point = self._point("output")
            value = run.read(point, LEAVE)
        except AttributeError as error:
            self.__dict__["_pending_error"] = error
            raise
        return value if isinstance(value, Tensor) else with_save(value)

    @output.setter
    def output(self, value: Any) -> None:
        self._write_output(value)

    @property
    def input(self) -> Any:
        try:
            return self._read_input()
        except AttributeError as error:
            self.__dict__["_pending_error"] = error
            raise

    @input.setter
    def input(self, value: Any) -> None:
        self._write_input(value)

    @property
    def inputs(self) -> Arguments:
        try:
            return self._read_inputs()
        except AttributeError as error:
            self.__dict__["_pending_error"] = error
            raise

    @inputs.setter
    def inputs(self, value: Arguments) -> None:
        self._write_inputs(value)

    output.__doc__, input.__doc__, inputs.__doc__ = Site.output.__doc__, Site.input.__doc__, Site.inputs.__doc__

    @property
    def source(self) -> ModuleSource:
        """The operations of this module's forward. Browsing them changes nothing."""
        return self._source_of(False)

    def _source_of(self, everything: bool) -> ModuleSource:
        sources: dict[bool, ModuleSource] = self.__dict__["_sources"]
        source = sources.get(everything)
        if source is None:
            source = sources[everything] = ModuleSource(self, everything)
        return source

    def __str__(self) -> str:
        from .tree import render_tree

        renaming: Renaming | None = self._root.__dict__.get("_renaming")
        also = {} if renaming is None else renaming.shown(self._root._module, self._instruments.label)
        return render_tree(self._module, self.path, also)

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from .render import lab_line, render_lab_line
        from .tree import render_tree_html

        line = lab_line(self._instruments.label, module=self.path)
        return {"text/plain": str(self), "text/html": render_tree_html(str(self)) + render_lab_line(line)}


def _number(key: Any) -> int | None:
    """`key` as an index: an int, or what stands for one (a numpy integer, an integer tensor)."""
    try:
        return operator.index(key)
    except TypeError:
        return None


class _Fluent:
    """A bound method of the module whose result, when it is the module, is given as the wrapper."""

    def __init__(self, method: Any, envoy: Envoy) -> None:
        self.__wrapped__ = method
        self.__doc__ = method.__doc__
        self.__name__ = method.__name__
        self._envoy = envoy

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self.__wrapped__(*args, **kwargs)
        return self._envoy if result is self._envoy._module else result
