"""Looking at many values of one forward at once, as a debugger shows the variables of a frame.

`observe` runs a recipe's edited forward (the clean one where nothing is edited) and looks at every site asked for. Any
value can be seen: its structure is told in words, and of each tensor inside shape and dtype. Copies of tensors are
kept as far as a budget goes; what was not kept is had by asking for that site alone.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from ..engine import NNsight, TraceError
from .execute import Execution
from .passes import Handler, Pass, Place
from .recipe import Recipe
from .sites import SitePath, parse_site
from .values import container_of

ARGUMENTS = "arguments"
# Entries of a container that are told one by one, and characters of a plain value.
_MANY, _LONG = 12, 60


@dataclass(frozen=True)
class TensorInside:
    """A tensor in a value: the path to it (empty for the value itself), its shape and its dtype (`float32`)."""

    element: tuple[int | str, ...]
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, eq=False)
class Seen:
    """One value, as it was at its latest call.

    Attributes:
        summary: the value in a few words: "[1,8,384] f32", "tuple of 2", "None".
        structure: the value in lines, an entry each.
        tensors: those inside, depth first.
        kept: copies on the CPU by element, of those that the budget had room for.
    """

    summary: str
    structure: str
    tensors: tuple[TensorInside, ...]
    kept: Mapping[tuple[int | str, ...], Tensor] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Sighting:
    """What was seen at a place.

    Attributes:
        calls: how often the forward came by.
        reason: why it did not, else empty.
        seen: the value at the latest call; None where there was none.
        by_call: the value at each call, for the calls asked for.
    """

    calls: int
    reason: str
    seen: Seen | None
    by_call: Mapping[int, Seen] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Observation:
    """What one forward showed.

    Attributes:
        sightings: by place; a place is a site with "output", "input" or "arguments".
        arguments: of the functions asked for, what each parameter was bound to, by site and name.
        seconds: that the forward took.
    """

    sightings: Mapping[Place, Sighting]
    arguments: Mapping[str, Mapping[str, Seen]]
    seconds: float


def observe(
    model: NNsight,
    recipe: Recipe,
    sites: Iterable[str | Place],
    *,
    functions: Iterable[str] = (),
    base: Any = None,
    source: Any = None,
    keep: int = 64 * 2**20,
    calls: Iterable[int] = (),
) -> Observation:
    """Run a recipe's edited forward and look at many values.

    Args:
        sites: sites whose outputs are looked at, or places; those that the forward does not reach say why.
        functions: sites (modules, or operations that call a Python function) whose bound arguments are looked at.
        base, source: inputs in place of the recipe's prompts, as in `run`.
        keep: bytes of tensors to keep copies of, in the order in which the forward meets them.
        calls: numbers of calls whose values are kept beside the latest one's.

    Raises:
        UnknownSiteError: the model has no such site.
        ExperimentError, TraceError: as `run` does.
    """
    recipe.validate()
    execution = Execution(model, recipe, base, source)
    look = _Look(keep, frozenset(calls))
    watching: dict[Place, tuple[SitePath, Handler]] = {}
    for entry in sites:
        place = entry if isinstance(entry, Place) else Place(entry, "output")
        path = parse_site(model, place.site, "site")
        watching[place] = (path, look.at(place))
    functions = tuple(functions)
    for site in functions:
        place = Place(site, ARGUMENTS)
        watching[place] = (parse_site(model, site, "function"), look.at_arguments(place))
    run: Pass = execution.observed(watching)
    sightings = {
        place: Sighting(
            run.calls.get(place, 0), run.reasons.get(place, ""), look.latest.get(place), look.numbered(place)
        )
        for place in watching
        if place.io != ARGUMENTS
    }
    # What an operation calls may be known from this very run only, so names are told after it.
    arguments = {site: _named(model, site, look.given[site]) if site in look.given else {} for site in functions}
    return Observation(sightings, arguments, run.seconds)


class _Look:
    """The handlers of one observation and what they saw."""

    def __init__(self, keep: int, calls: frozenset[int]) -> None:
        self._room = keep
        self._calls = calls
        self.latest: dict[Place, Seen] = {}
        self._numbered: dict[tuple[Place, int], Seen] = {}
        self.given: dict[str, tuple[tuple[Seen, ...], dict[str, Seen]]] = {}

    def at(self, place: Place) -> Handler:
        def handler(value: Any, call: int) -> Any:
            before = self.latest.pop(place, None)
            if before is not None:
                self._room += _bytes(before)
            seen = self.latest[place] = self._see(value)
            if call in self._calls:
                self._numbered[place, call] = seen
            return value

        return handler

    def at_arguments(self, place: Place) -> Handler:
        def handler(value: Any, call: int) -> Any:
            args, kwargs = value
            self.given[place.site] = (
                tuple(map(self._see, args)),
                {name: self._see(argument) for name, argument in kwargs.items()},
            )
            return value

        return handler

    def numbered(self, place: Place) -> dict[int, Seen]:
        return {call: seen for (where, call), seen in self._numbered.items() if where == place}

    def _see(self, value: Any) -> Seen:
        tensors, kept = [], {}
        for element, tensor in tensors_in(value):
            tensors.append(TensorInside(element, tuple(tensor.shape), _dtype(tensor)))
            size = tensor.element_size() * tensor.numel()
            if size <= self._room:
                self._room -= size
                kept[element] = tensor.detach().to("cpu", copy=True)
        return Seen(summarise(value), "\n".join(_lines(value, "")), tuple(tensors), kept)


def _bytes(seen: Seen) -> int:
    return sum(t.element_size() * t.numel() for t in seen.kept.values())


def _named(model: NNsight, site: str, given: tuple[tuple[Seen, ...], dict[str, Seen]]) -> dict[str, Seen]:
    """What a call was given by the names of the listed function's parameters."""
    path = parse_site(model, site, "function")
    found: Any = model.get(path.module)
    for label in path.operations:
        found = getattr(found.source(everything=True), label)
    args, kwargs = given
    called = found._callee() if path.operations else found._module.forward
    try:
        listed = inspect.signature(found.source(everything=True)._function()).parameters
        bound = inspect.signature(called).bind_partial(*args, **kwargs).arguments
    except (TraceError, ValueError, TypeError):
        return {}
    # A decorator without `functools.wraps` has parameters of its own; `*args` and `**kwargs` are not one value.
    return {name: seen for name, seen in bound.items() if name in listed and isinstance(seen, Seen)}


def tensors_in(value: Any, element: tuple[int | str, ...] = ()) -> list[tuple[tuple[int | str, ...], Tensor]]:
    """Every tensor in a value with the path to it, depth first."""
    if isinstance(value, Tensor):
        return [(element, value)]
    return [found for key, item in _entries(value) for found in tensors_in(item, (*element, key))]


def _entries(value: Any) -> list[tuple[int | str, Any]]:
    kind = container_of(value)
    if kind is None:
        return []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [(key, item) for key, item in items if isinstance(key, (int, str))]


_SHORT = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "u8", "complex64": "c64", "complex128": "c128",
}  # fmt: skip


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def summarise(value: Any) -> str:
    """A value in a few words: `[1,8,384] f32`, `tuple of 2`, `None`, `True`.

    >>> summarise((1, 2)), summarise(None), summarise("eager")
    ('tuple of 2', 'None', "'eager'")
    """
    if isinstance(value, Tensor):
        name = _dtype(value)
        return f"[{','.join(map(str, value.shape))}] {_SHORT.get(name, name)}"
    if container_of(value) is not None:
        return f"{type(value).__name__} of {len(value)}"
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        text = repr(value)
        return text if len(text) <= _LONG else text[: _LONG - 1] + "…"
    if isinstance(value, type) or callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    return type(value).__name__


def _lines(value: Any, indent: str) -> list[str]:
    """The structure of a value, an entry a line."""
    lines = [summarise(value)] if not indent else []
    entries = _entries(value)
    if not entries and dataclasses.is_dataclass(value) and not isinstance(value, type):
        entries = [(f.name, getattr(value, f.name, None)) for f in dataclasses.fields(value)]
    for key, item in entries[:_MANY]:
        lines.append(f"{indent}  {key}: {summarise(item)}")
        lines += _lines(item, indent + "  ")
    if len(entries) > _MANY:
        lines.append(f"{indent}  … {len(entries) - _MANY} more")
    return lines


__all__ = ["ARGUMENTS", "Observation", "Seen", "Sighting", "TensorInside", "observe", "summarise", "tensors_in"]
