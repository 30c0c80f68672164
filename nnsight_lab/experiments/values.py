"""The tensor inside what a site gives: finding it, and putting another in its place.

A module may return a tensor, a tuple, a dict or a dataclass of tensors. Containers are made anew around the new tensor
and never changed in place, because the model may hold on to the old one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from .errors import ScopeError
from .plan import Container, Element


def container_of(value: Any) -> Container | None:
    """What kind of container `value` is; None for a tensor or anything that is not looked into."""
    if isinstance(value, tuple):
        return "namedtuple" if hasattr(value, "_replace") else "tuple"
    if isinstance(value, list):
        return "list"
    if isinstance(value, dict):
        return "output" if dataclasses.is_dataclass(value) else "dict"
    return None


def find_element(value: Any, wanted: tuple[int | str, ...] | None, where: str) -> Element:
    """The path to the tensor meant.

    Args:
        wanted: the path given by the step, or None for the first tensor (depth first).
        where: for messages: "steps[0] at transformer.h.0".

    Raises:
        ScopeError: the path leads nowhere, or there is no tensor.
    """
    if wanted is not None:
        return _follow(value, wanted, where)
    for element in _tensors(value, (), ()):
        return element
    if isinstance(value, (bool, int, float)):
        return Element((), ("number",))
    raise ScopeError(f"{where}: the value is of type {type(value).__name__} and holds no tensor.")


def _tensors(value: Any, keys: tuple[int | str, ...], kinds: tuple[Container, ...]) -> Iterator[Element]:
    if isinstance(value, Tensor):
        yield Element(keys, kinds)
        return
    kind = container_of(value)
    if kind is not None:
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in entries:
            if isinstance(key, (int, str)):
                yield from _tensors(item, (*keys, key), (*kinds, kind))


def _follow(value: Any, wanted: tuple[int | str, ...], where: str) -> Element:
    kinds: list[Container] = []
    for depth, key in enumerate(wanted):
        kind = container_of(value)
        if kind is None:
            raise ScopeError(
                f"{where}: element {list(wanted)}: there is nothing to index in a {type(value).__name__} "
                f"(after {list(wanted[:depth])})."
            )
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError) as error:
            known = list(value) if isinstance(value, dict) else f"0 to {len(value) - 1}"
            raise ScopeError(f"{where}: element {list(wanted)}: no {key!r} among {known}.") from error
        kinds.append(kind)
    if not isinstance(value, Tensor):
        raise ScopeError(f"{where}: element {list(wanted)} is of type {type(value).__name__}, not a tensor.")
    return Element(wanted, tuple(kinds))


def pick(value: Any, element: Element) -> Tensor:
    """The tensor at `element`; a plain number is made one."""
    for key in element.keys:
        value = value[key]
    return value if isinstance(value, Tensor) else torch.as_tensor(value)


def put(value: Any, element: Element, new: Tensor) -> Any:
    """`value` with `new` at `element`, every container on the way made anew."""
    if not element.keys:
        return new if isinstance(value, Tensor) else type(value)(new.item())
    key, inner = element.keys[0], Element(element.keys[1:], element.containers[1:])
    changed = put(value[key], inner, new)
    match element.containers[0]:
        case "namedtuple":
            assert isinstance(key, int)
            return value._replace(**{value._fields[key]: changed})
        case "tuple" | "list":
            items = list(value)
            items[key] = changed  # type: ignore[index]  # these containers have integer keys
            return items if isinstance(value, list) else tuple(items)
        case "output":
            return type(value)(**{**value, str(key): changed})
        case _:
            return {**value, key: changed}


def pick_code(name: str, element: Element) -> str:
    """The expression that does what `pick` does."""
    if element.containers == ("number",):
        return f"torch.as_tensor({name})"
    for key, container in zip(element.keys, element.containers, strict=True):
        field = container == "output" and str(key).isidentifier()
        name += f".{key}" if field else f"[{key!r}]"
    return name


def put_code(name: str, element: Element, new: str) -> str:
    """The expression that does what `put` does, for code: `(x, *value[1:])`."""
    if not element.keys:
        return f"type({name})({new}.item())" if element.containers else new
    key, inner = element.keys[0], Element(element.keys[1:], element.containers[1:])
    changed = put_code(f"{name}[{key!r}]", inner, new)
    match element.containers[0]:
        case "namedtuple":
            return f"{name}._replace(**{{{name}._fields[{key}]: {changed}}})"
        case "tuple" | "list":
            assert isinstance(key, int)
            before = f"*{name}[:{key}], " if key else ""
            after = "" if key == -1 else f", *{name}[{key + 1}:]"
            body = f"{before}{changed}{after or ','}"
            return f"({body})" if element.containers[0] == "tuple" else f"[{body}]"
        case "output":
            return f"type({name})(**{{**{name}, {key!r}: {changed}}})"
        case _:
            return f"{{**{name}, {key!r}: {changed}}}"
