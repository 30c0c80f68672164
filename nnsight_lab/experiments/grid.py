"""The grid of a sweep: which sites a pattern means, what stands on each axis, and the step of each cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import msgspec

from ..engine import NNsight
from .addresses import is_pattern, matches_name, readings
from .errors import ScopeError, UnknownSiteError
from .inputs import Inputs
from .sites import SitePath, expand_modules, parse_site, source_of
from .steps import AnyStep, Indices, Position
from .tokens import resolve_indices, resolve_positions

# "each" is one entry for every one there is; a tuple lists the entries; None leaves the axis out.
PositionAxis = Literal["each"] | tuple[Position, ...] | None
IndexAxis = Literal["each"] | tuple[Indices | int, ...] | None


@dataclass(frozen=True)
class Axis:
    """One axis of a grid.

    Attributes:
        name: "site", "position", "head" or "neuron".
        labels: what to write at each entry.
        entries: what the cell's step gets: a site, positions, or indices.
    """

    name: str
    labels: tuple[str, ...]
    entries: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.entries)


def expand_sites(model: NNsight, pattern: str | Sequence[str], where: str = "site") -> dict[str, SitePath]:
    """The sites that a pattern means, in the model's order.

    `*` stands for any characters of one name, so that `model.layers.*` are the layers and not what is inside them:
    `transformer.h.*.mlp.source.self_act_*`. `2:5` takes members of a list, `transformer.h.2:5` or `transformer.h[2:5]`.

    Raises:
        UnknownSiteError: it means none; the nearest names are given.
    """
    if not isinstance(pattern, str):
        return {site: path for one in pattern for site, path in expand_sites(model, one, where).items()}
    if not any(is_pattern(name) for name in readings(model._model, model._instruments.label, pattern)[0]):
        path = parse_site(model, pattern, where)
        return {str(path): path}
    modules, labels = expand_modules(model, pattern, where)
    found = {}
    for module in modules:
        for path in _operations(model, SitePath(module), model.get(module), labels):
            found[str(path)] = path
    if not found:
        listing = ", ".join(model.get(modules[0]).source.listing.labels)
        raise UnknownSiteError(f"{where}: no operation is called {labels[0]!r} in {modules[0]}.source: {listing}.")
    return found


def _operations(model: NNsight, path: SitePath, found: Any, labels: Sequence[str]) -> Iterator[SitePath]:
    if not labels:
        yield path
        return
    first, rest = labels[0], labels[1:]
    names = [name for name in found.source.listing.labels if matches_name(first, name)] if "*" in first else [first]
    for name in names:
        inner = SitePath(path.module, (*path.operations, name))
        if rest:
            yield from _operations(model, inner, source_of(found, name)[name], rest)
        else:
            yield parse_site(model, str(inner), "site")


def position_axis(positions: PositionAxis, inputs: Inputs) -> Axis | None:
    """The axis of positions, labelled with number and token. Raises ScopeError for positions that do not exist."""
    if positions is None:
        return None
    if inputs.length is None:
        raise ScopeError("positions: the input is not tokens, so it has no positions; set positions=None.")
    every: Sequence[Position] = range(inputs.length) if positions == "each" else positions
    resolved = [
        resolve_positions([position], inputs.tokens, inputs.length, f"positions[{i}]")
        for i, position in enumerate(every)
    ]
    labels = tuple(_position_label(entry, inputs.tokens) for entry in resolved)
    # As written, because in a source prompt of another length a negative number means another position.
    return Axis("position", labels, tuple((position,) for position in every))


def _position_label(entry: Sequence[int], tokens: Sequence[str]) -> str:
    numbers = str(entry[0]) if len(entry) == 1 else f"{entry[0]}-{entry[-1]}"
    return f"{numbers} {''.join(tokens[i] for i in entry)}" if tokens else numbers


def head_axis(heads: IndexAxis, size: int | None) -> Axis | None:
    """The axis of attention heads. Raises ScopeError where their number is not known or exceeded."""
    if heads is None:
        return None
    if size is None:
        raise ScopeError("heads: the model's configuration does not say how many attention heads it has.")
    every: Sequence[Indices | int] = range(size) if heads == "each" else heads
    entries = tuple(
        resolve_indices((entry,) if isinstance(entry, int) else entry, size, f"heads[{i}]", "heads")
        for i, entry in enumerate(every)
    )
    return Axis("head", tuple(",".join(map(str, entry)) for entry in entries), entries)


def neuron_axis(neurons: IndexAxis) -> Axis | None:
    """The axis of entries of the last axis of a value; how many there are the run tells, and checks.

    Raises:
        ScopeError: "each", because the number is not known before the run.
    """
    if neurons is None:
        return None
    if neurons == "each":
        raise ScopeError('neurons: "each" is not possible, list them: neurons=tuple(range(64)).')
    entries = tuple((entry,) if isinstance(entry, int) else entry for entry in neurons)
    labels = tuple(entry if isinstance(entry, str) else ",".join(map(str, entry)) for entry in entries)
    return Axis("neuron", labels, entries)


_FIELDS: Mapping[str, str] = {"site": "site", "position": "positions", "head": "heads", "neuron": "index"}


def cell_step(step: AnyStep, axes: Sequence[Axis], index: Sequence[int]) -> AnyStep:
    """The step of one cell: the sweep's step with site, positions, heads and index of the cell."""
    chosen = zip(axes, index, strict=True)
    return msgspec.structs.replace(step, **{_FIELDS[axis.name]: axis.entries[i] for axis, i in chosen})


def cells(axes: Sequence[Axis]) -> Iterator[tuple[int, ...]]:
    """The index of every cell, row by row."""
    return product(*(range(len(axis)) for axis in axes))
