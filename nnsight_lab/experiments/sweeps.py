"""A sweep: one step, carried out at every site, position and head of a grid, one cell at a time in meaning.

The cells are independent edited runs, and are computed together as far as the model allows. Four ways, the fastest
first: together, each cell from the layer and position of its edit on; together, each from the layer of its edit on, at
all positions (models that are not causal, or keep more than keys and values); all cells as rows of full forwards; one
full forward a cell. The first
forward of a way is checked, once for each model, kind of site and prompt length: some of its cells with large effects
are run alone through the whole model. When the numbers differ by more than rounding, or the model refuses, the next
way is taken and the result says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from ..engine import NNsight
from .errors import RecipeError
from .grid import Axis, IndexAxis, PositionAxis, expand_sites, head_axis, neuron_axis, position_axis
from .inputs import Inputs, ready
from .metrics import Answer, AnyMetric, LogitDiff, Metric, TopK
from .models import load_model
from .recipe import Prompt, Recipe
from .recipe import _with_path as with_path
from .scope import HeadShape
from .sites import SitePath, parse_site
from .steps import AnyStep, Capture, Edit, Patch, Token, freeze

if TYPE_CHECKING:
    from .sweepresult import SweepResult

VERSION = 1


class Sweep(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, repr_omit_defaults=True, kw_only=True):
    """A sweep as plain data.

    Attributes:
        step: the edit. Its `site` may be a pattern: `model.layers.*`, `transformer.h.*.mlp.source.self_act_*`.
        base, source: the prompts, as in a recipe.
        metric: what each cell is judged by; any but `TopK`.
        sites: patterns in place of the step's site, one or several.
        positions: "each" token, a list of positions (each an entry of the axis), one position, or None for the step's
            own.
        heads, neurons: "each", a list of entries or one number; None for the step's own.
        logits: tokens whose logits are kept for every cell.
        model: name of the model; needed only where no model is passed.
        version: of the format.
    """

    step: AnyStep
    base: Prompt
    metric: AnyMetric
    source: Prompt | None = None
    sites: tuple[str, ...] = ()
    positions: PositionAxis = "each"
    heads: IndexAxis = None
    neurons: IndexAxis = None
    logits: tuple[Answer, ...] = ()
    model: str | None = None
    version: int = VERSION

    def __post_init__(self) -> None:
        for name in ("base", "source"):
            freeze(self, name)
        for name in ("sites", "logits"):
            freeze(self, name, str, int)
        if self.positions != "each":
            freeze(self, "positions", int, str, Token)
        for name in ("heads", "neurons"):
            freeze(self, name, int)
            value = getattr(self, name)
            if isinstance(value, str) and value != "each":
                raise RecipeError(
                    f'{name}: {value!r} may be one entry or several: write ("{value}",) to edit them together, or list '
                    "them, (0, 1, 2), for a cell each."
                )
        if isinstance(self.metric, tuple) and len(self.metric) == 2:
            msgspec.structs.force_setattr(self, "metric", LogitDiff(*self.metric))

    def validate(self) -> None:
        """Check the fields against each other. Raises RecipeError, naming the first field that is not valid."""
        if not isinstance(self.step, Edit) or isinstance(self.step, Capture):
            raise RecipeError(f"step: an edit such as Zero(site=...), not {type(self.step).__name__}")
        if not isinstance(self.metric, Metric) or isinstance(self.metric, TopK):
            raise RecipeError(
                f"metric: a number for each cell, LogitDiff, Probability, KL or Rank, not {type(self.metric).__name__}"
            )
        if isinstance(self.step, Patch) and self.source is None:
            raise RecipeError("source: the step patches from a source prompt; give one.")
        if not self.step.enabled:
            raise RecipeError("step.enabled: a disabled step has nothing to sweep.")
        Recipe(base=self.base, source=self.source, steps=(self.step,), metric=self.metric).validate()

    def recipe(self, step: AnyStep) -> Recipe:
        """The recipe of one cell."""
        source = self.source if isinstance(step, Patch) else None
        return Recipe(model=self.model, base=self.base, source=source, steps=(step,), metric=self.metric)

    def to_json(self, indent: int = 2) -> str:
        """The sweep as JSON text."""
        self.validate()
        return msgspec.json.format(msgspec.json.encode(msgspec.to_builtins(self)), indent=indent).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Sweep:
        """Read a sweep. Raises RecipeError, naming the field that is not valid."""
        try:
            data = msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise RecipeError(f"This is not JSON: {error}") from error
        try:
            read = msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            raise RecipeError(with_path(error)) from error
        read.validate()
        return read

    def run(self, model: NNsight | None = None, **options: Any) -> SweepResult:
        """Run the sweep; see `nnsight_lab.experiments.sweep`."""
        from .sweeping import run_sweep

        return run_sweep(self, model, **options)


def sweep(
    model: NNsight,
    step: AnyStep,
    *,
    base: Prompt,
    metric: AnyMetric | tuple[Answer, Answer],
    source: Prompt | None = None,
    sites: str | tuple[str, ...] | list[str] = (),
    positions: PositionAxis = "each",
    heads: IndexAxis = None,
    neurons: IndexAxis = None,
    logits: tuple[Answer, ...] = (),
    memory: int | None = None,
    progress: bool | Callable[[int, int], Any] = True,
    cancel: Any = None,
) -> SweepResult:
    """Carry out one step over a grid of sites, positions, heads and neurons.

    Args:
        model: a wrapped language model.
        step, base, source, metric, sites, positions, heads, neurons, logits: see `Sweep`. A pair of tokens as
            metric is `LogitDiff(correct, wrong)`.
        memory: bytes that the computation may take beyond what is in use; by default a quarter of what is free.
        progress: show a progress bar, or a function of (cells done, all cells).
        cancel: a function, or an object with `is_set()` such as `threading.Event`; asked between forwards. What is
            done by then is kept, as it is on KeyboardInterrupt.

    Returns:
        The grid; cells that were not computed are not `done` and hold NaN.

    Raises:
        RecipeError, UnknownSiteError, ScopeError: a field that is not valid for this model and prompt.
    """
    plan = Sweep(
        step=step,
        base=base,
        metric=metric,  # type: ignore[arg-type]  # the sweep makes a metric of a pair
        source=source,
        sites=sites,  # type: ignore[arg-type]  # and a tuple of one pattern or a list
        positions=positions,
        heads=heads,
        neurons=neurons,
        logits=logits,
    )
    return plan.run(model, memory=memory, progress=progress, cancel=cancel)


@dataclass(frozen=True, eq=False)
class Grid:
    """A sweep on a model: prompts ready to run, sites taken apart, axes, and the step with its sites as they are."""

    step: AnyStep
    base: Inputs
    source: Inputs | None
    paths: dict[str, SitePath]
    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis) for axis in self.axes)


def lay_out(plan: Sweep, model: NNsight | None) -> tuple[NNsight, str, Grid]:
    """The model, the line of code that loads it, and the grid of a sweep. Raises as `sweep` does."""
    plan.validate()
    model, model_line = load_model(plan.recipe(plan.step), model)
    base = ready(model, plan.base, "base")
    if base.ids is None or base.ids.shape[0] != 1:
        raise RecipeError("base: a sweep needs one prompt of tokens.")
    source = ready(model, plan.source, "source") if plan.source is not None else None
    paths = expand_sites(model, plan.sites or plan.step.site, "sites" if plan.sites else "step.site")
    heads = None if plan.heads is None else HeadShape.of(getattr(model._model, "config", None))
    axes = [
        Axis("site", tuple(paths), tuple(paths)),
        position_axis(plan.positions, base),
        head_axis(plan.heads, heads.counts[0] if heads is not None else None),
        neuron_axis(plan.neurons),
    ]
    step = plan.step
    if isinstance(step, Patch) and step.from_site is not None:
        path = parse_site(model, step.from_site, "step.from_site")
        step = msgspec.structs.replace(step, from_site=str(path))
        paths = paths | {str(path): path}
    return model, model_line, Grid(step, base, source, paths, tuple(axis for axis in axes if axis is not None))
