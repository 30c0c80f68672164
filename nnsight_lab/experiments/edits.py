"""What each edit does to a tensor.

Every edit makes a copy and writes the selected entries; exported code consists of the same operations in the same
order, which is why its numbers are the same bit for bit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .errors import ScopeError
from .plan import Action
from .scope import index_of, view_of
from .steps import Add, Mean, Noise, Patch, Replace, Scale, Step, StoredTensor, Zero


def apply_edit(step: Step, action: Action, value: Tensor, taken: Tensor | None, where: str) -> Tensor:
    """`value` with the selected entries edited; a new tensor of the same shape, dtype and device.

    Args:
        taken: for `Patch`, the value it takes entries from.
        where: for messages: "steps[0]".

    Raises:
        ScopeError: a vector that does not fit, a value of integers that the edit would need to round.
    """
    if not isinstance(step, (Zero, Replace, Patch)) and not value.is_floating_point() and not value.is_complex():
        raise ScopeError(f"{where}: the value is of {value.dtype}; {type(step).__name__} needs a floating-point one.")
    x = value.clone()
    view = view_of(x, action.selection)
    index = index_of(action.selection, view.shape)

    def selected(full: Tensor) -> Tensor:
        return view_of(full.expand_as(x), action.selection)[index]

    match step:
        case Zero():
            view[index] = 0
        case Scale():
            view[index] = view[index] * step.factor
        case Mean():
            axis = 0 if step.over == "batch" else action.position_axis
            assert axis is not None  # the plan works the axis out for this step
            view[index] = selected(value.mean(axis, keepdim=True))
        case Noise():
            drawn = torch.randn(value.shape, generator=torch.Generator().manual_seed(step.seed)) * step.std
            view[index] = view[index] + selected(drawn.to(value))
        case Add():
            view[index] = view[index] + selected(_fitting(step.vector, value, f"{where}.vector"))
        case Replace(value=float() | int() as number):
            view[index] = number
        case Replace():
            view[index] = selected(_fitting(step.value, value, f"{where}.value"))
        case Patch():
            assert taken is not None  # the plan gives every patch its source
            view[index] = _taken(action, taken, view[index], where).to(value)
        case _:
            raise TypeError(f"{type(step).__name__} is no edit")
    return x


def _taken(action: Action, taken: Tensor, selected: Tensor, where: str) -> Tensor:
    source = view_of(taken, action.source_selection)
    entries = source[index_of(action.source_selection, source.shape)]
    if entries.shape != selected.shape:
        raise ScopeError(
            f"{where}: the entries taken have shape {list(entries.shape)}, those patched {list(selected.shape)}."
        )
    return entries


def _fitting(numbers: Any, value: Tensor, where: str) -> Tensor:
    made = constant(numbers, where).to(value)
    try:
        fits = torch.broadcast_shapes(made.shape, value.shape) == value.shape
    except RuntimeError:
        fits = False
    if not fits:
        raise ScopeError(
            f"{where}: shape {list(made.shape)} cannot be broadcast to the value's shape {list(value.shape)}."
        )
    return made


def constant(numbers: Any, where: str) -> Tensor:
    """The tensor that a step's numbers stand for, in float32 unless it is stored otherwise.

    Raises:
        ScopeError: ragged lists, or a stored tensor that cannot be read.
    """
    if isinstance(numbers, StoredTensor):
        return _stored(numbers, where)
    try:
        return torch.tensor(numbers, dtype=torch.float32)
    except (TypeError, ValueError) as error:
        raise ScopeError(f"{where}: these are not numbers in equal rows: {error}") from error


def _stored(reference: StoredTensor, where: str) -> Tensor:
    from safetensors import SafetensorError, safe_open

    if not Path(reference.file).is_file():
        raise ScopeError(f"{where}: there is no file {reference.file}.")
    try:
        with safe_open(reference.file, framework="pt") as file:
            names = list(file.keys())
            if reference.name not in names:
                raise ScopeError(f"{where}: {reference.file} holds {', '.join(names)}, but no {reference.name!r}.")
            return file.get_tensor(reference.name)
    except SafetensorError as error:
        raise ScopeError(f"{where}: {reference.file} is not a safetensors file: {error}") from error


def scramble(action: Action, value: Tensor, seed: int) -> Tensor:
    """`value` with the selected entries replaced by random ones, for finding out whether anything depends on them.

    Floating-point entries become Gaussian noise about three times as large as the value's largest entry, as far as its
    square stays finite in the value's dtype; integers and booleans become 0 or 1.
    """
    generator = torch.Generator().manual_seed(seed)
    if value.is_floating_point():
        limit = min(1e4, torch.finfo(value.dtype).max ** 0.5 / 8)
        largest = value.detach().abs().nan_to_num(posinf=1.0).max().float().cpu().clamp(min=1.0, max=limit)
        drawn = torch.randn(value.shape, generator=generator) * (3 * largest)
    else:
        drawn = torch.randint(0, 2, value.shape, generator=generator)
    x = value.clone()
    view = view_of(x, action.selection)
    index = index_of(action.selection, view.shape)
    view[index] = view_of(drawn.to(value), action.selection)[index]
    return x
