"""What a recipe does at a site: the step kinds, as plain data.

The package's docstring says how sites and positions are written. A step acts on the site's output, or with
`io="input"` on the first argument of its call. Where the value is a tuple, list or mapping, `element` is the path to
the tensor meant; by default it is the first tensor.

Edits act on a copy of the value at that site: other holders of the same memory are not changed. `positions`, `heads`
and `index` narrow them; what is left out is edited whole. Where a field takes several entries, a single one may be
written alone, and a tensor or array stands for its numbers.
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


class Token(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, repr_omit_defaults=True):
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


def freeze(struct: Struct, field: str, *single: type) -> None:
    """Make a field a tuple where it is given as a list, range, array or tensor, or as one entry of the types named."""
    value = getattr(struct, field)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, range)):
        value = tuple(value)
    elif isinstance(value, single) and not isinstance(value, bool):
        value = (value,)
    msgspec.structs.force_setattr(struct, field, value)


def _as_text(place: slice) -> str:
    bounds = (place.start, place.stop) if place.step is None else (place.start, place.stop, place.step)
    return ":".join("" if bound is None else str(bound) for bound in bounds)


class Step(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    repr_omit_defaults=True,
    tag_field="kind",
    tag=str.lower,
):
    """What all steps have.

    Attributes:
        site: where it acts, `transformer.h.5.mlp` or `transformer.h.5.mlp.source.self_act_0`.
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
        if not isinstance(self.site, str):
            raise ValueError(f'site is text, "transformer.h.5.mlp", not {type(self.site).__name__}')
        if self.io not in ("output", "input"):
            raise ValueError(f'io is "output" or "input", not {self.io!r}; give other fields by name, positions=[-1]')
        freeze(self, "element", int, str)
        if self.call is not None and self.call < 0:
            raise ValueError(f"call counts from 0, {self.call} is not possible")


class Capture(Step, frozen=True):
    """Keep the value at a site.

        Capture("transformer.h.5.mlp")

    It is a copy on the CPU of the whole tensor, of the edited run in `result.activations[site]` and of the clean run
    in `result.clean_activations[site]`. Standing after an edit of the same site it keeps the edited value. It takes
    no positions or heads: index the tensor.
    """


class Edit(Step, frozen=True, kw_only=True):
    """What all edits have beside a step's `site`, `io`, `element`, `call` and `enabled`.

    Attributes:
        positions: token positions: `-1`, `[0, 3]`, `"2:5"`, `" Tower"`, `Token(" the", occurrence=1)`, or several of
            these in a list. None means all. The position axis is the one as long as the prompt.
        heads: attention heads: `3`, `[0, 3]` or `"0:4,7"`; None means all. The value is `[batch, heads, position,
            head_dim]`, `[batch, position, heads, head_dim]`, or its last axis, as wide as all heads, is cut into them.
            With grouped queries, values of keys and values have the smaller number of heads.
        index: entries of the last axis (neurons), written like `heads`; with heads cut out of the last axis, entries
            within each head.
    """

    positions: tuple[Position, ...] | None = None
    heads: Indices | None = None
    index: Indices | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _freeze_positions(self, "positions")
        for field in ("heads", "index"):
            freeze(self, field, int)
        for field in ("positions", "heads", "index"):
            if getattr(self, field) == ():
                raise ValueError(f"{field} is empty: leave it out to edit all, or disable the step")
        for field in ("heads", "index"):
            value = getattr(self, field)
            if isinstance(value, str) and not _INDICES.fullmatch(value):
                raise ValueError(f'{field} {value!r} is not an index expression such as "0:10,17"')


def _freeze_positions(edit: Edit, field: str) -> None:
    value = getattr(edit, field)
    if isinstance(value, slice):
        value = _as_text(value)
        msgspec.structs.force_setattr(edit, field, value)
    freeze(edit, field, int, str, Token)


class Zero(Edit, frozen=True):
    """Replace the selected entries by 0: x = 0 (zero ablation).

        Zero("transformer.h.5.mlp")                                   # the whole output
        Zero("transformer.h.5.mlp", positions=-1)                     # at the last token
        Zero("transformer.h.5.attn.c_proj", io="input", heads=[3])    # what head 3 puts out
        Zero("transformer.h.5.mlp.source.self_act_0", index="0:40")   # neurons 0 to 39 after the activation function

    Scopes, see `Edit` and `Step`: `positions` are -1, [0, 3], "2:5" or " Tower"; `heads` and `index` are 3, [0, 3] or
    "0:4,7"; `io="input"`, `element` and `call` say which tensor of which call.
    """


class Mean(Edit, frozen=True, kw_only=True):
    """Replace the selected entries by a mean of the value as it arrives at the site (mean ablation).

        Mean("transformer.h.5.mlp", positions=[" Tower"])

    `over="positions"`: x[b, p, ...] = mean over q of x[b, q, ...], all positions of the prompt (edited or not), for
    each batch row and feature on its own. `over="batch"`: x[b, ...] = mean over c of x[c, ...], for each position and
    feature. Scopes as in `Edit`.
    """

    over: Literal["positions", "batch"] = "positions"


class Scale(Edit, frozen=True, kw_only=True):
    """Multiply the selected entries: x = factor * x.

        Scale("transformer.h.5.attn", factor=0.5, positions="2:5")

    Scopes as in `Edit`.
    """

    factor: float

    def __post_init__(self) -> None:
        super().__post_init__()
        _finite(self.factor, "factor")


class Noise(Edit, frozen=True, kw_only=True):
    """Add Gaussian noise to the selected entries: x = x + std * n, with n drawn from N(0, 1).

        Noise("transformer.wte", std=0.1, seed=1, positions=[" Eiffel", " Tower"])

    `std` is in units of the activation. Drawn with `seed` in float32 on the CPU for the whole value and then cast, so
    that the noise at one entry does not depend on which others are edited, nor on the device. Scopes as in `Edit`.
    """

    std: float
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _finite(self.std, "std")
        if self.std < 0:
            raise ValueError(f"std is a standard deviation, {self.std} is negative")


class Add(Edit, frozen=True, kw_only=True):
    """Add a vector to the selected entries: x = x + vector (activation steering).

        Add("transformer.h.5", vector=direction, positions=-1)

    `vector` is numbers along the last axis (a list, or a tensor `[d_model]`) or a `StoredTensor`, broadcast to the
    shape of the whole value. Scopes as in `Edit`.
    """

    vector: tuple[float, ...] | StoredTensor

    def __post_init__(self) -> None:
        super().__post_init__()
        freeze(self, "vector")
        if self.vector == ():
            raise ValueError("vector is empty")


class Replace(Edit, frozen=True, kw_only=True):
    """Replace the selected entries: x = value.

        Replace("transformer.h.5.mlp.source.self_act_0", value=1.0, index=7, positions=-1)

    `value` is a number, nested lists of numbers (or a tensor) or a `StoredTensor`, broadcast to the shape of the whole
    value. Scopes as in `Edit`.
    """

    value: float | list[Any] | StoredTensor

    def __post_init__(self) -> None:
        super().__post_init__()
        if hasattr(self.value, "tolist"):
            msgspec.structs.force_setattr(self, "value", self.value.tolist())


class Patch(Edit, frozen=True, kw_only=True):
    """Replace the selected entries by those of an unedited run: x = x_source (activation patching).

        Patch("transformer.h.3", positions=[" Tower"])                # of the recipe's source prompt, same position
        Patch("transformer.h.3", positions=4, from_positions=3)       # from another position
        Patch("transformer.h.2", from_prompt="base", from_site="transformer.h.8")

    Attributes:
        from_prompt: "source", the recipe's source prompt, or "base".
        from_site: another site to take it from; None means this one. A path written like `site`.
        from_positions: the positions in that prompt, one for each of `positions`. By default the same positions;
            with prompts of different length, negative numbers count from the end of each and what has no
            counterpart is refused.

    Further scopes as in `Edit`.
    """

    from_prompt: Literal["source", "base"] = "source"
    from_site: str | None = None
    from_positions: tuple[Position, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _freeze_positions(self, "from_positions")
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
