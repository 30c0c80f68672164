"""What a recipe does at a site: the step kinds, as plain data.

A step names a site, `transformer.h.11.mlp.source.self_act_0`: the dotted path of a module, then optionally
`.source.<operation>` (repeated to step into what an operation calls). It acts on the site's output, or with
`io="input"` on the first argument of its call. Where the value is a tuple, list or mapping, `element` is the path to
the tensor meant; by default it is the first tensor.

Edits act on a copy of the value at that site: other holders of the same memory are not changed. `positions`, `heads`
and `index` narrow them; what is left out is edited whole.
"""

from __future__ import annotations

import math
import re
from typing import Any, Literal

import msgspec
from msgspec import Struct

_SLICE = re.compile(r"\s*(-?\d+)?\s*:\s*(-?\d+)?\s*(?::\s*(-?\d+)?\s*)?")
_INDICES = re.compile(r"\s*(-?\d+|(-?\d+)?:(-?\d+)?(:-?\d+)?)\s*(,\s*(-?\d+|(-?\d+)?:(-?\d+)?(:-?\d+)?)\s*)*")


def is_slice(text: str) -> bool:
    """Whether a position written as text is a slice ("2:5", "-3:", ":") and not the text of a token."""
    return _SLICE.fullmatch(text) is not None


class Token(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Positions given by the text of a token, or of several in a row.

    Attributes:
        text: exactly as the tokenizer cuts it, with its leading space: " Tower".
        occurrence: which one, counted from 0, where the prompt has several; None refuses several.
    """

    text: str
    occurrence: int | None = None

    def __post_init__(self) -> None:
        if not self.text:
            raise ValueError("the text of a token is not empty")
        if self.occurrence is not None and self.occurrence < 0:
            raise ValueError("occurrence counts from 0")


class StoredTensor(Struct, frozen=True, forbid_unknown_fields=True):
    """A tensor in a safetensors file: its path and the tensor's name in it."""

    file: str
    name: str


# A number of a position (negative from the end), a slice "2:5", the text of a token " Tower", or a `Token`.
Position = int | str | Token
# Numbers along an axis: [0, 3] or an expression "0:10,17".
Indices = tuple[int, ...] | str


def _freeze(struct: Struct, field: str) -> None:
    value = getattr(struct, field)
    if isinstance(value, list):
        msgspec.structs.force_setattr(struct, field, tuple(value))


class Step(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind", tag=str.lower):
    """What all steps have.

    Attributes:
        site: where it acts.
        io: "output", or "input" for the first argument of the call.
        element: path to the tensor inside a tuple, list or mapping: [0], ["logits"]; None takes the first tensor.
        call: which call of the site, counted from 0, where one forward makes several; None means every one.
        enabled: a disabled step stays in the recipe and does nothing.
        generation_step: reserved; a recipe with it is refused until recipes can generate.
    """

    site: str
    io: Literal["output", "input"] = msgspec.field(default="output")
    element: tuple[int | str, ...] | None = None
    call: int | None = None
    enabled: bool = True
    generation_step: int | None = None

    def __post_init__(self) -> None:
        _freeze(self, "element")
        if self.call is not None and self.call < 0:
            raise ValueError(f"call counts from 0, {self.call} is not possible")


class Capture(Step, frozen=True):
    """Keep the value: `result.activations[site]`. Standing after an edit of the same site it keeps the edited value."""


class Edit(Step, frozen=True, kw_only=True):
    """What all edits have.

    Attributes:
        positions: token positions; None means all.
        heads: attention heads; None means all. The value is `[batch, heads, position, head_dim]`,
            `[batch, position, heads, head_dim]`, or its last axis, as wide as all heads, is cut into them. With
            grouped queries, values of keys and values have the smaller number of heads.
        index: entries of the last axis (neurons); with heads cut out of the last axis, entries within each head.
    """

    positions: tuple[Position, ...] | None = None
    heads: Indices | None = None
    index: Indices | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("positions", "heads", "index"):
            _freeze(self, field)
            if getattr(self, field) == ():
                raise ValueError(f"{field} is empty: leave it out to edit all, or disable the step")
        for field in ("heads", "index"):
            value = getattr(self, field)
            if isinstance(value, str) and not _INDICES.fullmatch(value):
                raise ValueError(f'{field} {value!r} is not an index expression such as "0:10,17"')


class Zero(Edit, frozen=True):
    """Replace by 0."""


class Mean(Edit, frozen=True, kw_only=True):
    """Replace by the mean of the value as it arrives at the site.

    `over="positions"`: over all positions of the prompt (edited or not), for each batch row and feature on its own.
    `over="batch"`: over the batch rows, for each position and feature.
    """

    over: Literal["positions", "batch"] = "positions"


class Scale(Edit, frozen=True, kw_only=True):
    """Multiply by `factor`."""

    factor: float

    def __post_init__(self) -> None:
        super().__post_init__()
        _finite(self.factor, "factor")


class Noise(Edit, frozen=True, kw_only=True):
    """Add Gaussian noise of standard deviation `std` (in units of the activation).

    Drawn with `seed` in float32 on the CPU for the whole value and then cast, so that the noise at one entry does
    not depend on which others are edited, nor on the device.
    """

    std: float
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _finite(self.std, "std")
        if self.std < 0:
            raise ValueError(f"std is a standard deviation, {self.std} is negative")


class Add(Edit, frozen=True, kw_only=True):
    """Add a vector, broadcast to the shape of the value: numbers along the last axis, or a stored tensor."""

    vector: tuple[float, ...] | StoredTensor

    def __post_init__(self) -> None:
        super().__post_init__()
        _freeze(self, "vector")
        if self.vector == ():
            raise ValueError("vector is empty")


class Replace(Edit, frozen=True, kw_only=True):
    """Replace by a number, nested lists of numbers or a stored tensor, broadcast to the shape of the value."""

    value: float | list[Any] | StoredTensor


class Patch(Edit, frozen=True, kw_only=True):
    """Replace by an activation of an unedited run.

    Attributes:
        from_prompt: "source", the recipe's source prompt, or "base".
        from_site: another site to take it from; None means this one. A path written like `site`.
        from_positions: the positions in that prompt, one for each of `positions`. By default the same positions;
            with prompts of different length, negative numbers count from the end of each and what has no
            counterpart is refused.
    """

    from_prompt: Literal["source", "base"] = "source"
    from_site: str | None = None
    from_positions: tuple[Position, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _freeze(self, "from_positions")
        if self.from_positions is not None and self.positions is None:
            raise ValueError("from_positions needs positions, which say where they go")
        if self.from_prompt == "base" and self.from_site is None and self.from_positions is None:
            raise ValueError(
                'a patch from "base" at the same site and positions would change nothing: name a from_site'
            )


AnyEdit = Zero | Mean | Scale | Noise | Add | Replace | Patch
AnyStep = Capture | AnyEdit


def _finite(value: float, field: str) -> None:
    if not math.isfinite(value):
        raise ValueError(f"{field} must be a finite number, not {value}")
