"""Which part of a value belongs to which rows of the batch.

A tensor whose first dimension is the batch size has a row per prompt; containers are gone through. `Rows.take` gives
views, so that an in-place change reaches the model and no other row. `Rows.put` builds a value in which the other rows
are as before. A tensor of one row that serves all (positions, a mask) is handed out as a copy, and put back as one row
for each prompt when it was changed. What else has no rows inside a container (numbers, configuration, a cache) is
handed on whole; a tensor that mixes rows in a way that is not known is refused. Inside a mixture's experts every tensor
is, since they are given the tokens that were routed to them, whose number may be the batch size by chance.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .errors import InvokeError

# Sites of a mixture's experts: `experts[2].output`, `experts.source.index_0.output`, `experts.down_proj.output`.
_IN_EXPERTS = re.compile(r"\bexperts(\[|\.(?!output$|input$|inputs$|skip$))")
# Keywords that hold one number for each position, not for each row.
_OF_ALL_ROWS = frozenset({"cache_position"})


def _shared_keys(value: Mapping[Any, Any]) -> list[Any]:
    return [key for key in _OF_ALL_ROWS if isinstance(value.get(key), Tensor)]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows `first` to `end` (not included) of a batch of `total`."""

    first: int
    end: int
    total: int

    @property
    def all(self) -> bool:
        """Whether these are all rows of the batch."""
        return self.end - self.first == self.total

    def take(self, value: Any, site: str) -> Any:
        """The rows' part of `value`, as views of its tensors.

        Raises:
            InvokeError: a tensor's rows cannot be told apart; the message names `site`.
        """
        if self.all:
            return value
        if isinstance(value, Tensor) and (value.dim() == 0 or value.shape[0] not in (1, self.total)):
            raise self._mixed(value, site)
        if _IN_EXPERTS.search(site):
            for leaf in leaves(value):
                if isinstance(leaf, Tensor):
                    raise self._mixed(leaf, site)
        return self._take(value, site)

    def _take(self, value: Any, site: str) -> Any:
        if isinstance(value, Tensor):
            if self._has_rows(value):
                return value[self.first : self.end]
            if _shared(value):
                return value.clone()
            raise self._mixed(value, site)
        if isinstance(value, (tuple, list)):
            return _like(value, [self._take(part, site) for part in value])
        if isinstance(value, Mapping):
            return _filled(value, {key: self._taken(key, part, site) for key, part in value.items()})
        return value

    def _taken(self, key: Any, part: Any, site: str) -> Any:
        if key in _OF_ALL_ROWS and isinstance(part, Tensor):
            return part.clone()
        return self._take(part, site)

    def put(self, value: Any, part: Any, site: str) -> Any:
        """`value` with `part` in these rows. `value` itself is not changed.

        Raises:
            InvokeError: `part` does not fit; the message names `site`.
        """
        if self.all or part is value:
            return part
        if isinstance(value, Tensor):
            if _IN_EXPERTS.search(site):
                raise self._mixed(value, site)
            return self._put_tensor(value, part, site)
        if isinstance(value, (tuple, list)):
            if not isinstance(part, (tuple, list)) or len(part) != len(value):
                raise self._unfit(value, part, site)
            return _like(value, [self.put(old, new, site) for old, new in zip(value, part, strict=True)])
        if isinstance(value, Mapping):
            if not isinstance(part, Mapping) or list(part) != list(value):
                raise self._unfit(value, part, site)
            if not all(torch.equal(value[key], part[key]) for key in _shared_keys(value)):
                raise self._unfit(value, part, site)
            return _filled(
                value,
                {key: old if key in _OF_ALL_ROWS else self.put(old, part[key], site) for key, old in value.items()},
            )
        plain = isinstance(value, (int, float, str, bytes, complex, type(None))) and type(part) is type(value)
        if plain and part == value:
            return value
        raise self._unfit(value, part, site)

    def _put_tensor(self, value: Tensor, part: Any, site: str) -> Tensor:
        if not self._has_rows(value):
            if _shared(value) and isinstance(part, Tensor) and part.shape == value.shape and torch.equal(part, value):
                return value
            if value.dim() == 0 or value.shape[0] != 1:
                raise self._mixed(value, site)
            value = value.expand(self.total, *value.shape[1:])
            if isinstance(part, Tensor) and part.dim() and part.shape[0] == 1:
                part = part.expand(self.end - self.first, *part.shape[1:])
        if isinstance(part, (int, float)):
            part = torch.full_like(value[self.first : self.end], part)
        if not isinstance(part, Tensor) or part.shape != (self.end - self.first, *value.shape[1:]):
            raise self._unfit(value, part, site)
        part = part.to(value.device, value.dtype)
        return torch.cat([value[: self.first], part, value[self.end :]])

    def _has_rows(self, value: Tensor) -> bool:
        return value.dim() > 0 and value.shape[0] == self.total

    def _mixed(self, value: Tensor, site: str) -> InvokeError:
        return InvokeError(
            f"{site} is a tensor of shape {list(value.shape)}, which does not tell which part belongs to which of the "
            f"{self.total} rows of the batch. Read it in a block of its own for all rows, `with tracer.invoke():`, "
            "or in a trace of one prompt."
        )

    def _unfit(self, value: Any, part: Any, site: str) -> InvokeError:
        rows = f"{self.end - self.first} of the {self.total} rows"
        return InvokeError(
            f"{site} was assigned {_kind(part)} for {rows} of {_kind(value)}, and the two do not fit together. "
            "Assign a value of the kind and shape that reading it in this block gives."
        )


def _shared(value: Tensor) -> bool:
    """Whether a tensor without rows holds something that all rows share: a number, a mask, positions."""
    return value.dim() == 0 or value.shape[0] == 1 or (value.dim() == 1 and not value.is_floating_point())


def _kind(value: Any) -> str:
    return f"a tensor of shape {list(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"


def _like(value: Any, parts: list[Any]) -> Any:
    """A tuple, list or named tuple of the type of `value`."""
    kind = type(value)
    if isinstance(value, list):
        made = copy.copy(value)
        made[:] = parts
        return made
    if hasattr(value, "_fields"):
        return kind(*parts)
    return kind(parts)


def _filled(value: Any, parts: dict[Any, Any]) -> Any:
    """A mapping of the type of `value` with other values: a `ModelOutput` keeps its type."""
    made = copy.copy(value)
    for key, part in parts.items():
        made[key] = part
    return made


def leaves(value: Any) -> Iterator[Any]:
    """The values inside nested tuples, lists and mappings."""
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from leaves(part)
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from leaves(part)
    else:
        yield value


def concatenate(inputs: list[Any]) -> tuple[Any, list[int]]:
    """One input out of several of the same structure, their tensors one after the other, and the rows of each.

    Raises:
        InvokeError: they do not go together.
    """
    counts: list[int] = []
    for index, value in enumerate(inputs):
        tensors = [leaf for leaf in leaves(value) if isinstance(leaf, Tensor) and leaf.dim() > 0]
        sizes = {tensor.shape[0] for tensor in tensors}
        if len(sizes) != 1:
            raise InvokeError(
                f"The input of invoke block {index} (they count from 0) has "
                + (
                    f"tensors of different batch sizes, {sorted(sizes)}"
                    if sizes
                    else "no tensor with a batch dimension"
                )
                + ", so it is not known how many rows of the batch are its own."
            )
        counts += sizes
    return _joined(inputs, "the input"), counts


def _joined(parts: list[Any], what: str) -> Any:
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, Tensor) and first.dim() > 0:
        if not all(isinstance(part, Tensor) and part.shape[1:] == first.shape[1:] for part in parts):
            raise InvokeError(
                f"The invoke blocks cannot make up one batch: {what} is {', '.join(map(_kind, parts))}, which differ "
                "in more than their first dimension. Use a trace for each."
            )
        return torch.cat(parts)
    same = all(type(part) is type(first) for part in parts)
    if same and isinstance(first, (tuple, list)) and len({len(part) for part in parts}) == 1:
        columns = zip(*parts, strict=True)
        return _like(first, [_joined(list(column), f"{what}[{n}]") for n, column in enumerate(columns)])
    if same and isinstance(first, Mapping) and all(part.keys() == first.keys() for part in parts):
        return _filled(first, {key: _joined([part[key] for part in parts], f"{what}[{key!r}]") for key in first})
    if all(
        part is first or (same and not isinstance(part, (Tensor, Mapping, tuple, list)) and part == first)
        for part in parts
    ):
        return first
    raise InvokeError(
        f"The invoke blocks cannot make up one batch: {what} differs among them ({', '.join(map(_kind, parts))}), and "
        "it is nothing that has a row for each prompt. Give all blocks the same, or use a trace for each."
    )
