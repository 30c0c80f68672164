"""Many edited runs of one prompt in one forward: the rolling batch.

A row of the batch is one cell of a sweep: the prompt with one edit. Nothing before the edit's layer differs from the
clean run, so the row need not exist there. The model's own forward is started on a full batch; layers before the
first edit are skipped; at each layer's entrance the rows whose edit lies in it are appended to those on their way, with
the clean residual stream, and whatever the model prepared for the batch (masks, position embeddings) is narrowed to
the rows present. Every layer runs once, on as many rows as have been edited by then. In a causal model the positions
before the edited one cannot change either: with `start` above 0 only later positions are computed, over a cache of
the clean keys and values.

The forward between, before and after the layers is the model's own. The edits are made where the engine meets the
sites. Rows are in the order of their layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..engine import NNsight
from ..engine.points import ENTER, LEAVE, Arguments
from .passes import Place
from .prefix import (
    Prefix,
    cropped_cache,
    hidden_of,
    input_hidden,
    last_logits,
    short_output,
    takes_use_cache,
    with_hidden,
    with_input_hidden,
)
from .sites import SitePath, locate
from .values import find_element, pick, put

# Takes the value at the site as a run of this one row has it, and how many positions it is short of at the front;
# returns what replaces it.
RowEdit = Callable[[Tensor, int], Tensor]


@dataclass(frozen=True, eq=False)
class Row:
    """One edited run.

    Attributes:
        place, path: the site.
        element: path to the tensor inside the value; None for the first.
        calls: numbers of the site's calls that are edited.
        join: the layer at which the row first differs from the clean run; `len(layers)` for after the last.
        start: the first position that the edit can change.
        edits: the edit at each of those calls.
        in_stream: the site is the residual stream that enters `join`, so that the row is appended edited.
    """

    place: Place
    path: SitePath
    element: tuple[int | str, ...] | None
    calls: tuple[int, ...]
    join: int
    start: int
    edits: tuple[RowEdit, ...]
    in_stream: bool = False


class _Batch:
    """The rows present at each moment of one forward."""

    def __init__(self, prefix: Prefix, rows: Sequence[Row], start: int, size: int, reuse: bool) -> None:
        self.prefix = prefix
        self.rows = rows
        self.start = start
        self.reuse = reuse
        self.size = size
        self.present = size
        self.cache: Any = None
        depth = len(prefix.layers)
        self.joined = [sum(row.join <= layer for row in rows) for layer in range(depth + 1)]

    def appended(self, layer: int, present: Tensor) -> Tensor:
        """The rows on their way and those that join at `layer`."""
        first, last = self.joined[layer - 1] if layer else 0, self.joined[layer]
        if layer == 0:
            return present[:last]
        parts = [present[:first]] if first else []
        if last > first:
            clean = self.prefix.hidden(layer)[:, self.start :]
            for row in self.rows[first:last]:
                parts.append(row.edits[0](clean, self.start) if row.in_stream else clean)
        return torch.cat(parts) if len(parts) > 1 else parts[0]

    def narrowed(self, value: Any) -> Any:
        """What the model prepared for the whole batch, for the rows present alone."""
        if isinstance(value, Tensor):
            whole = value.shape[0] if value.dim() else 0
            if whole and self.size > 1 and whole % self.size == 0:
                return value[: whole // self.size * self.present]
            return value
        if type(value) not in (tuple, list, dict):
            return value
        keys = list(value) if type(value) is dict else range(len(value))
        items = [self.narrowed(value[key]) for key in keys]
        if all(new is value[key] for key, new in zip(keys, items, strict=True)):
            return value  # the layers may write to it
        return dict(zip(keys, items, strict=True)) if type(value) is dict else type(value)(items)

    def enter(self, layer: int) -> Callable[[Arguments], Arguments]:
        def change(arguments: Arguments) -> Arguments:
            args, kwargs = arguments
            hidden = self.appended(layer, input_hidden(args, kwargs))
            self.present = self.joined[layer]
            return with_input_hidden(self.narrowed(args), self.narrowed(kwargs), hidden)

        return change

    def leave(self, layer: int) -> Callable[[Any], Any]:
        last = layer == len(self.prefix.layers) - 1

        def change(output: Any) -> Any:
            if self.cache is not None:
                held = self.cache.layers[layer]
                held.keys = held.values = held.keys.new_empty(0)
            if not last:
                return output
            hidden = self.appended(layer + 1, hidden_of(output))
            self.present = self.joined[layer + 1]
            return with_hidden(output, hidden)

        return change

    def arm_layers(self, model: NNsight, run: Any) -> None:
        depth = len(self.prefix.layers)
        for layer in range(depth):
            _, point, _ = model.get(f"{self.prefix.path}.{layer}")._locate("input")
            if self.joined[layer]:
                run.write(point, ENTER, self.enter(layer))
            else:
                run.skip(point, self.prefix.calls[layer].output)
            if layer == depth - 1 or (self.joined[layer] and self.cache is not None):
                run.write(point, LEAVE, self.leave(layer))

    def arm_sites(self, model: NNsight, run: Any) -> None:
        by_site: dict[tuple[Place, tuple[int | str, ...] | None], list[int]] = {}
        for number, row in enumerate(self.rows):
            if not (row.in_stream and self.reuse):
                by_site.setdefault((row.place, row.element), []).append(number)
        for (place, element), numbers in by_site.items():
            row = self.rows[numbers[0]]
            site = locate(model, row.path, f"site {place.site!r}")
            _, point, _ = site._locate(place.io)
            phase = ENTER if place.io == "input" else LEAVE
            for which, call in enumerate(row.calls):
                run.write(point, phase, self.at_site(place, element, numbers, which), call)

    def at_site(
        self, place: Place, element: tuple[int | str, ...] | None, numbers: Sequence[int], which: int
    ) -> Callable[[Any], Any]:
        def edited(value: Any) -> Any:
            where = find_element(value, element, str(place))
            return put(value, where, self.edited_rows(pick(value, where), numbers, which))

        def change(value: Any) -> Any:
            if place.io == "output":
                return edited(value)
            args, kwargs = value
            if args:
                return (edited(args[0]), *args[1:]), kwargs
            first = next(iter(kwargs))
            return args, {**kwargs, first: edited(kwargs[first])}

        return change

    def edited_rows(self, value: Tensor, numbers: Sequence[int], which: int) -> Tensor:
        present = self.present
        if not value.dim() or value.shape[0] % present:
            raise BatchError(f"a value of shape {list(value.shape)} is not made of {present} rows")
        block = value.shape[0] // present
        value = value.clone()
        for number in numbers:
            span = slice(number * block, (number + 1) * block)
            value[span] = self.rows[number].edits[which](value[span], self.start)
        return value


class BatchError(RuntimeError):
    """A value at a site cannot be told apart by rows."""


def run_rows(model: NNsight, prefix: Prefix, rows: Sequence[Row], start: int = 0, reuse: bool = True) -> Tensor:
    """Run all rows in one forward.

    Args:
        rows: in the order of `join`, none with a `start` before `start`.
        start: positions before it are taken from the clean keys and values.
        reuse: skip the layers before a row's edit; without it all rows run through the whole model.

    Returns:
        Logits `[row, vocabulary]` at the last position.

    Raises:
        BatchError: the value at a site does not consist of rows.
    """
    size = len(rows) if not reuse else _unmistakable(len(rows), prefix, start)
    batch = _Batch(prefix, rows, start, size, reuse)
    keywords = dict(short_output(model._model))
    for name, value in prefix.inputs.items():
        cut = value[:, start:] if start and name != "attention_mask" and isinstance(value, Tensor) else value
        keywords[name] = cut.expand(size, *cut.shape[1:]) if isinstance(cut, Tensor) else cut
    if takes_use_cache(model._model):
        keywords["use_cache"] = start > 0
    if start:
        batch.cache = cropped_cache(model._model, prefix, start, [max(n, 1) for n in batch.joined[:-1]])
        keywords[prefix.cache_name] = batch.cache
    with torch.no_grad(), model.trace(**keywords) as tracer:
        run = tracer._run
        if reuse:
            batch.arm_layers(model, run)
        batch.arm_sites(model, run)
        run.finish()
        output = run.result
    return last_logits(output)[: len(rows)]


def _unmistakable(rows: int, prefix: Prefix, start: int) -> int:
    """The least batch size, at least `rows`, that no size of anything else than the batch is a multiple of."""
    sizes = {prefix.length, prefix.length - start}
    for call in prefix.calls:
        for value in _tensors((call.args, call.kwargs)):
            sizes.add(value.shape[0] if value.dim() else 1)
    size = rows
    while size > 1 and any(other > 1 and other % size == 0 for other in sizes):
        size += 1
    return size


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [tensor for item in value for tensor in _tensors(item)] if isinstance(value, (tuple, list)) else []
