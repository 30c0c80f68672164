"""Addresses as text, in every way they are written, and the submodules that a name in one means.

Recipes write `transformer.h.5.mlp`; listings, messages and exported code write `model.transformer.h[5].mlp`. Both are
read as the names from the model down: transformer, h, 5, mlp. A name may be a pattern: `*` stands for any characters of
one name, `2:5` for the members of a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from torch import nn

from ..engine.errors import nearest

_NUMBER = r"-?\d+"
_SLICE = rf"(?:{_NUMBER})?:(?:{_NUMBER})?(?::(?:{_NUMBER})?)?"
_PART = re.compile(
    r"""\.?child\(\s*(?P<quote>['"])(?P<child>.*?)(?P=quote)\s*\)
    | \[\s*(?P<mark>['"])(?P<key>.*?)(?P=mark)\s*\]
    | \[\s*(?P<member>[^\[\]'"]+?)\s*\]
    | \.?(?P<name>[^.\[\]()\s]+)(?:\(everything=True\))?""",
    re.VERBOSE,
)
_LISTED = 12


def read_names(address: str) -> tuple[str, ...] | None:
    """The names in an address, `("transformer", "h", "5")`, or None where it is no address."""
    names: list[str] = []
    at = 0
    while at < len(address):
        part = _PART.match(address, at)
        if part is None or (part["name"] is not None and (at > 0) != (address[at] == ".")):
            return None
        names.append(next(part[group] for group in ("child", "key", "member", "name") if part[group] is not None))
        at = part.end()
    return tuple(names)


def readings(root: nn.Module, label: str, address: str) -> tuple[tuple[str, ...], ...]:
    """What an address may mean, the first meaning first: as written, then without the wrapper's own name in front.

    Args:
        root: the model.
        label: the wrapper's name, by which messages and listings begin: `model`.
    """
    names = read_names(address)
    if names is None:
        names = tuple(address.split("."))
    if not names or names[0] not in (label, "model"):
        return (names,)
    return (names, names[1:]) if root._modules.get(names[0]) is not None else (names[1:],)


def is_pattern(name: str) -> bool:
    """Whether a name stands for several."""
    return "*" in name or re.fullmatch(_SLICE, name) is not None


def matches_name(pattern: str, name: str) -> bool:
    """Whether `pattern`, where `*` stands for any characters, is this name."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), name) is not None


def children_called(module: nn.Module, name: str) -> tuple[str, ...]:
    """The children of `module` that a name or pattern means, in the model's order. Negative numbers count from the
    end of a list."""
    children = _children(module)
    if name in children:
        return (name,)
    members = [key for key in children if key.isdigit()]
    if re.fullmatch(_NUMBER, name):
        return (members[int(name)],) if -len(members) <= int(name) < 0 else ()
    if re.fullmatch(_SLICE, name):
        return tuple(members[slice(*(int(bound) if bound else None for bound in name.split(":")))])
    return tuple(key for key in children if matches_name(name, key)) if "*" in name else ()


def follow(module: nn.Module, names: Sequence[str]) -> tuple[tuple[str, ...], nn.Module]:
    """The names that lead from child to child, spelled as the model spells them, and the module they end at."""
    done: list[str] = []
    for name in names:
        found = () if is_pattern(name) else children_called(module, name)
        if not found:
            break
        done.append(found[0])
        module = module._modules[found[0]]  # type: ignore[assignment]  # children_called leaves empty places out
    return tuple(done), module


def modules_called(module: nn.Module, names: Sequence[str], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths that names and patterns lead to, in the model's order."""
    if not names:
        yield path
        return
    for key in children_called(module, names[0]):
        child = module._modules[key]
        assert child is not None  # children_called leaves empty places out
        yield from modules_called(child, names[1:], (*path, key))


def first_miss(module: nn.Module, names: Sequence[str]) -> tuple[tuple[str, ...], nn.Module, str]:
    """Where names and patterns cease to lead on: the path and the module so far, and the name that it lacks.

    Args:
        names: that lead nowhere from `module`.
    """
    best: tuple[tuple[str, ...], nn.Module, str] = ((), module, names[0])
    for key in children_called(module, names[0]):
        child = module._modules[key]
        assert child is not None  # children_called leaves empty places out
        path, place, name = first_miss(child, names[1:])
        if len(path) + 1 > len(best[0]):
            best = ((key, *path), place, name)
    return best


def suggestion(module: nn.Module, name: str) -> str:
    """A phrase on the submodules that a wrong name may have meant; the likeliest first, else those there are."""
    children = _children(module)
    if not children:
        return " It has no submodules."
    if all(key.isdigit() for key in children):
        known = f" It has {children[0]} to {children[-1]}." if len(children) > 1 else f" It has {children[0]} alone."
        number = re.match(r"\D*(\d+)", name)
        if number and number[1] in children:
            return f" Did you mean {number[1]!r}?{known}"
        inner = module._modules[children[0]]
        if inner is not None and inner._modules.get(name) is not None:
            return f"{known} Each has {name!r}: did you mean '{children[0]}.{name}' or, in a sweep, '*.{name}'?"
        return known
    listed = ", ".join(children[:_LISTED]) + (", ..." if len(children) > _LISTED else "")
    return nearest(name, children) or f" It has {listed}."


def _children(module: nn.Module) -> list[str]:
    return [key for key, child in module._modules.items() if child is not None]
