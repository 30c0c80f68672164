"""From a callable to the Python function whose body is worth listing, and back.

A `forward` may be wrapped many times: by decorators with or without `functools.wraps`, by `functools.partial`, by
accelerate's hooks. `innermost` walks through the wrappers to the function at the bottom. `rebuild` makes the same
chain again around a replacement of that function: each wrapper is kept and runs, only the cell (or attribute) that
held the inner function holds the replacement. Wrappers share their state with the original.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from types import CellType, FunctionType, MethodType
from typing import Any

from torch import nn

from .errors import SourceUnavailableError

Replace = Callable[[FunctionType], FunctionType]


def describe(callee: Any) -> str:
    """A short name of a callable for messages."""
    name = getattr(callee, "__qualname__", None) or getattr(callee, "__name__", None) or type(callee).__qualname__
    module = getattr(callee, "__module__", None)
    return f"{module}.{name}" if module and module != "builtins" else str(name)


def _cell_value(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a cell that is still empty
        return None


def _wrapped_by(function: FunctionType, name: str | None) -> Any:
    """What `function` wraps as a decorator's product, or None when it is itself the body to list."""
    contents = [_cell_value(cell) for cell in function.__closure__ or ()]
    target = function.__dict__.get("__wrapped__")
    if target is not None:
        if any(value is target for value in contents):
            return target
        bottom = _bottom(target)
        for value in contents:
            if isinstance(value, (FunctionType, functools.partial, MethodType)) and _bottom(value) is bottom:
                return value
        return None
    code = function.__code__
    if name is None or (code.co_name == name and not code.co_qualname.endswith(f"<locals>.{name}")):
        return None
    # Without functools.wraps: the closed-over function that bears the name under which this one was found.
    for value in contents:
        if isinstance(value, FunctionType) and getattr(_bottom(value, name), "__name__", None) == name:
            return value
    return None


def _bottom(callee: Any, name: str | None = None) -> Any:
    """The innermost function of `callee`, or the first thing on the way that is not made of Python functions."""
    while True:
        if isinstance(callee, MethodType):
            callee = callee.__func__
        elif isinstance(callee, functools.partial):
            callee = callee.func
        elif isinstance(callee, FunctionType):
            inner = _wrapped_by(callee, name)
            if inner is None:
                return callee
            callee = inner
        else:
            attribute = _held_attribute(callee, name)
            inner = _call_method(callee) if attribute is None else vars(callee)[attribute]
            if inner is None:
                return callee
            callee = inner


def _held_attribute(callee: Any, name: str | None) -> str | None:
    """The attribute in which a decorator written as a class keeps the function it decorates."""
    if isinstance(callee, (type, nn.Module)) or not hasattr(callee, "__dict__"):
        return None
    target = vars(callee).get("__wrapped__")
    for key, value in vars(callee).items():
        if key == "__wrapped__" or not isinstance(value, FunctionType):
            continue
        if value is target or (target is None and name is not None and value.__name__ == name):
            return key
    return None


def _call_method(callee: Any) -> MethodType | None:
    if isinstance(callee, (type, nn.Module)):
        return None
    method = next((kind.__dict__["__call__"] for kind in type(callee).__mro__ if "__call__" in kind.__dict__), None)
    return MethodType(method, callee) if isinstance(method, FunctionType) else None


def innermost(callee: Any, name: str | None = None) -> FunctionType:
    """The Python function at the bottom of `callee`'s wrappers.

    Args:
        callee: any callable.
        name: the name under which it was found (`forward`); lets wrappers made without `functools.wraps` be seen
            through.

    Raises:
        SourceUnavailableError: the bottom is not a Python function (a C function, a class, a scripted function).
    """
    bottom = _bottom(callee, name)
    if isinstance(bottom, FunctionType):
        return bottom
    kind = "a class" if isinstance(bottom, type) else "not a Python function (it is implemented in C or compiled)"
    raise SourceUnavailableError(f"{describe(callee)} has no Python source to step into: it is {kind}.")


def bound_to(callee: Any) -> Any:
    """What the innermost function of a method or partial gets as its first argument, or None when the call tells."""
    while isinstance(callee, functools.partial):
        if callee.args and not isinstance(callee.func, MethodType):
            return callee.args[0]
        callee = callee.func
    return callee.__self__ if isinstance(callee, MethodType) else None


def rebuild(callee: Any, replace: Replace, name: str | None = None) -> Any:
    """`callee` with its innermost function replaced, every wrapper kept."""
    if isinstance(callee, MethodType):
        return MethodType(rebuild(callee.__func__, replace, name), callee.__self__)
    if isinstance(callee, functools.partial):
        copied = functools.partial(rebuild(callee.func, replace, name), *callee.args, **callee.keywords)
        copied.__dict__.update(callee.__dict__)
        return copied
    if isinstance(callee, FunctionType):
        inner = _wrapped_by(callee, name)
        if inner is None:
            return replace(callee)
        new = rebuild(inner, replace, name)
        cells = tuple(CellType(new) if _cell_value(cell) is inner else cell for cell in callee.__closure__ or ())
        return copy_function(callee, callee.__code__, cells, wrapped=new)
    attribute = _held_attribute(callee, name)
    if attribute is not None:
        return _holding(callee, attribute, rebuild(vars(callee)[attribute], replace, name))
    method = _call_method(callee)
    if method is not None:
        return rebuild(method, replace, name)
    raise SourceUnavailableError(f"{describe(callee)} has no Python source to step into.")


def _holding(holder: Any, attribute: str, replacement: Any) -> Any:
    """An object that is `holder` in all but `attribute`: it shares its `__dict__`, so state set on one is seen on both.

    The attribute is a property of a subclass, which is found again among the class's subclasses while it lives.
    """
    base = type(holder)
    kind = next((k for k in type.__subclasses__(base) if k.__dict__.get(_HELD) == attribute), None)
    if kind is None:
        held = property(lambda self: getattr(self, _REPLACEMENT))
        names = {"__slots__": (_REPLACEMENT,), _HELD: attribute, attribute: held, "__module__": base.__module__}
        kind = types.new_class(base.__name__, (base,), exec_body=lambda namespace: namespace.update(names))
    twin = object.__new__(kind)
    twin.__dict__ = vars(holder)
    setattr(twin, _REPLACEMENT, replacement)
    return twin


_HELD = "__nnsight_lab_held__"
_REPLACEMENT = "__nnsight_lab_replacement__"


def without_state(function: FunctionType) -> FunctionType:
    """A function that can be listed like `function` but holds none of its values: no defaults, empty closure cells."""
    cells = tuple(CellType() for _ in function.__code__.co_freevars)
    bare = FunctionType(function.__code__, function.__globals__, function.__name__, None, cells)
    bare.__qualname__, bare.__module__ = function.__qualname__, function.__module__
    return bare


def copy_function(
    function: FunctionType, code: Any, closure: tuple[CellType, ...], wrapped: Any = None
) -> FunctionType:
    """`function` with another code object and closure; everything else is the same."""
    copied = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure or None)
    copied.__kwdefaults__ = function.__kwdefaults__
    if function.__dict__:
        copied.__dict__.update(function.__dict__)
        if wrapped is not None and "__wrapped__" in copied.__dict__:
            copied.__dict__["__wrapped__"] = wrapped
    copied.__qualname__ = function.__qualname__
    copied.__module__ = function.__module__
    copied.__doc__ = function.__doc__
    # Where annotations are evaluated lazily, the function that does it is passed on instead.
    lazy = "__annotate__" if hasattr(function, "__annotate__") else "__annotations__"
    for name in (lazy, "__type_params__"):
        if getattr(function, name, None):
            setattr(copied, name, getattr(function, name))
    return copied
