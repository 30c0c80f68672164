"""The lines of code that stand for one edit of one tensor, in the words of `edits.apply_edit`."""

from __future__ import annotations

import pprint
from collections.abc import Sequence

from .plan import Action, Selection
from .steps import Add, AnyStep, Mean, Noise, Patch, Replace, Scale, StoredTensor, Zero

WIDTH = 100


def index_code(selection: Selection, sizes: Sequence[int]) -> str:
    """What stands between the brackets: `:, [7]`. See `scope.index_of`."""
    limited = [axis for axis, numbers in enumerate(selection.axes) if numbers is not None]
    if not limited:
        return "..."
    first, last = limited[0], limited[-1]
    parts = [":"] * first
    for axis in range(first, last + 1):
        numbers = selection.axes[axis]
        listed = tuple(range(sizes[axis])) if numbers is None else numbers
        parts.append(_numbers_code(listed, last - axis, alone=first == last))
    return ", ".join(parts)


def _numbers_code(numbers: tuple[int, ...], following: int, alone: bool) -> str:
    """One axis: a list, a slice, or with `following` limited axes after it a tensor that broadcasts against theirs."""
    run = numbers == tuple(range(numbers[0], numbers[0] + len(numbers))) and len(numbers) > 2
    if alone:
        return f"{numbers[0]}:{numbers[-1] + 1}" if run else str(list(numbers))
    made = f"torch.arange({numbers[0]}, {numbers[-1] + 1})" if run else f"torch.tensor({list(numbers)})"
    return made + (f"[:{', None' * following}]" if following else "")


def sizes_after_split(shape: Sequence[int], selection: Selection) -> tuple[int, ...]:
    """The shape of a value whose last axis has been cut into heads."""
    if not selection.split:
        return tuple(shape)
    return (*shape[:-1], selection.split, shape[-1] // selection.split)


def constant_lines(step: AnyStep, name: str) -> list[str]:
    """The assignment of the numbers that a step carries, if it carries any."""
    numbers = step.vector if isinstance(step, Add) else step.value if isinstance(step, Replace) else None
    if numbers is None or isinstance(numbers, (int, float)):
        return []
    if isinstance(numbers, StoredTensor):
        return [f"{name} = load_file({numbers.file!r})[{numbers.name!r}]"]
    listed = pprint.pformat(_lists(numbers), width=WIDTH, compact=True)
    return [
        f"{name} = torch.tensor(",
        *(f"    {line}" for line in f"{listed},\ndtype=torch.float32,".splitlines()),
        ")",
    ]


def _lists(numbers: object) -> object:
    return [_lists(item) for item in numbers] if isinstance(numbers, (list, tuple)) else numbers


def edit_lines(
    step: AnyStep, action: Action, shape: Sequence[int], constant: str, taken: str, taken_shape: Sequence[int]
) -> list[str]:
    """Lines that edit `x`, a copy of the value.

    Args:
        shape: of the value.
        constant: name of the step's numbers, see `constant_lines`.
        taken, taken_shape: for `Patch`, name and shape of the value it takes entries from.
    """
    selection = action.selection
    split = f".unflatten(-1, ({selection.split}, -1))" if selection.split else ""
    lines = [f"heads = x{split}  # the same memory as x"] if split else []
    index = index_code(selection, sizes_after_split(shape, selection))
    target = f"{'heads' if split else 'x'}[{index}]"

    def selected(name: str) -> str:
        return name if selection.whole else f"{name}.expand_as(x){split}[{index}]"

    match step:
        case Zero():
            lines.append(f"{target} = 0")
        case Scale():
            lines.append(f"{target} *= {step.factor!r}")
        case Mean():
            axis = 0 if step.over == "batch" else action.position_axis
            lines += [f"mean = x.mean({axis}, keepdim=True)", f"{target} = {selected('mean')}"]
        case Noise():
            generator = f"torch.Generator().manual_seed({step.seed})"
            lines.append(f"noise = (torch.randn(x.shape, generator={generator}) * {step.std!r}).to(x)")
            lines.append(f"{target} += {selected('noise')}")
        case Add():
            lines.append(f"{target} += {selected(f'{constant}.to(x)')}")
        case Replace(value=float() | int() as number):
            lines.append(f"{target} = {number!r}")
        case Replace():
            lines.append(f"{target} = {selected(f'{constant}.to(x)')}")
        case Patch():
            other = action.source_selection
            there = index_code(other, sizes_after_split(taken_shape, other))
            cut = f".unflatten(-1, ({other.split}, -1))" if other.split else ""
            lines.append(f"{target} = {taken}{cut}" + ("" if other.whole else f"[{there}]"))
    return lines
