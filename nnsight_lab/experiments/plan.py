"""How a recipe is carried out on one model and prompt: every scope worked out to numbers.

The clean run shows the shapes of the values and the order of the sites. From both and the recipe the plan is made;
the edited run applies it, and the exported code is written from it. It is data and is stored with the result.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

# One axis of a selection: None takes the axis whole.
AxisIndex = tuple[int, ...] | None
# "output" is a dataclass that is also a dict, as transformers' models return.
# "number" stands alone, for a site whose value is a plain number.
Container = Literal["tuple", "list", "namedtuple", "dict", "output", "number"]


class Selection(Struct, frozen=True):
    """Entries of a tensor, one list of numbers (or None: all) for each axis.

    Attributes:
        axes: for each axis of the value, after the split.
        split: cut the last axis into this many heads first; 0 for no split.
    """

    axes: tuple[AxisIndex, ...] = ()
    split: int = 0

    @property
    def whole(self) -> bool:
        return all(axis is None for axis in self.axes)


class Element(Struct, frozen=True):
    """Where the tensor stands in a site's value: keys from outside in, and what kind of container each is a key of."""

    keys: tuple[int | str, ...] = ()
    containers: tuple[Container, ...] = ()


class Visit(Struct, frozen=True):
    """One call of one site, as a run came by.

    Attributes:
        site, io, call: which; `call` counts from 0.
        wanted: the path to the tensor as the step writes it; None for the first one.
        element: where that tensor stands.
        shape, dtype, device: of that tensor.
        address: the code that reaches the site, `model.transformer.h[0].mlp`.
    """

    site: str
    io: str
    call: int
    wanted: tuple[int | str, ...] | None
    element: Element
    shape: tuple[int, ...]
    dtype: str
    device: str
    address: str


class Action(Struct, frozen=True):
    """One step at one call of its site.

    Attributes:
        step: number of the step in the recipe.
        visit: number of the visit in `Plan.visits`.
        selection: what is edited.
        position_axis: which axis of the value (before any split) is the position; None where none was needed.
        source: for `Patch`, number of the visit in `Plan.source_visits` (or in `Plan.visits`, patching from "base").
        source_selection: for `Patch`, which entries are taken.
    """

    step: int
    visit: int
    selection: Selection = Selection()
    position_axis: int | None = None
    source: int | None = None
    source_selection: Selection = Selection()


class Plan(Struct, frozen=True):
    """Everything that a run of a recipe needs beyond the recipe.

    Attributes:
        visits: of the steps' sites in the clean run, in the order the forward reached them.
        source_visits: the same for the source prompt.
        actions: in the order in which they are carried out.
        model_line: the line of code that loads the model, empty where the reader has to give one.
        tokenizer: whether the model has one.
        output: how the logits are read: "logits" (last position of `[batch, position, vocabulary]`), "classes"
            (`[batch, class]`) or "tensor" (the first tensor of the output).
        output_element: where the output tensor stands in what the model returns.
    """

    visits: tuple[Visit, ...] = ()
    source_visits: tuple[Visit, ...] = ()
    actions: tuple[Action, ...] = ()
    model_line: str = ""
    tokenizer: bool = False
    output: Literal["logits", "classes", "tensor"] = "logits"
    output_element: Element = Element()

    def key(self, action: Action) -> str:
        """The name of what a `Capture` keeps: the site, `:input` for an input, `:0` for an element that the step names,
        and `[call]` where the site was called several times."""
        visit = self.visits[action.visit]
        key = visit.site + (":input" if visit.io == "input" else "")
        if visit.wanted is not None:
            key += ":" + ".".join(str(part) for part in visit.wanted)
        calls = {v.call for v in self.visits if (v.site, v.io) == (visit.site, visit.io)}
        return f"{key}[{visit.call}]" if len(calls) > 1 else key
