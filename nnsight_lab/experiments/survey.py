"""A run without edits that notes what the recipe's sites give, in the order in which the forward reaches them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..engine import NNsight
from .inputs import Inputs
from .passes import Handler, Pass, Place, forward_pass
from .plan import Visit
from .sites import SitePath, site_code
from .values import find_element, pick

# By place: the elements meant there (None: the first tensor), each with the field that says so.
Wanted = Mapping[Place, list[tuple[Any, str]]]


@dataclass(frozen=True, eq=False)
class Survey:
    """What the run showed: the model's output, the visits in order, and the values that were to be kept, by visit."""

    run: Pass
    visits: tuple[Visit, ...]
    values: Mapping[int, Tensor]


def survey(
    model: NNsight, inputs: Inputs, wanted: Wanted, paths: Mapping[str, SitePath], keep: Collection[Place] = ()
) -> Survey:
    """Run `inputs` without edits.

    Args:
        wanted: the places to look at.
        paths: their sites, taken apart.
        keep: places whose values are copied.

    Raises:
        ScopeError: a value holds no tensor where a step means one.
    """
    visits: list[Visit] = []
    values: dict[int, Tensor] = {}

    def handler(place: Place) -> Handler:
        def note(value: Any, call: int) -> Any:
            for element_wanted, where in wanted[place]:
                element = find_element(value, element_wanted, f"{where} at {place}")
                tensor = pick(value, element)
                if place in keep:
                    values[len(visits)] = tensor.detach().clone()
                visits.append(
                    Visit(
                        place.site,
                        place.io,
                        call,
                        element_wanted,
                        element,
                        tuple(tensor.shape),
                        str(tensor.dtype).removeprefix("torch."),
                        str(tensor.device),
                        site_code(model, paths[place.site]),
                    )
                )
            return value

        return note

    handlers = {place: (paths[place.site], handler(place)) for place in wanted}
    return Survey(forward_pass(model, inputs.args, inputs.kwargs, handlers), tuple(visits), values)


def longer_shapes(
    model: NNsight, inputs: Inputs, wanted: Wanted, paths: Mapping[str, SitePath]
) -> Callable[[Visit], tuple[int, ...] | None]:
    """A function from a visit to the shape it has for a prompt one token longer. It runs the model when first asked."""
    shapes: dict[tuple[str, str, int, Any], tuple[int, ...]] | None = None

    def shape(visit: Visit) -> tuple[int, ...] | None:
        nonlocal shapes
        if shapes is None:
            longer = inputs.longer()
            found = survey(model, longer, wanted, paths).visits if longer is not None else ()
            shapes = {(v.site, v.io, v.call, v.wanted): v.shape for v in found}
        return shapes.get((visit.site, visit.io, visit.call, visit.wanted))

    return shape
