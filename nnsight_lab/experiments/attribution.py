"""Attribution patching: all cells of a patching sweep estimated from two forwards and one backward.

To first order, putting the source's activation in the place of the clean one changes the metric by their difference
times the metric's gradient at the clean run (Nanda 2023, "Attribution Patching: Activation Patching At Industrial
Scale"; Syed, Rager and Conmy 2023). That is a linear approximation, which is poor for the residual stream and wherever
a normalisation or a saturated softmax lies behind; so the exact sweep is run beside it and the error reported, unless
that is turned off.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..engine import NNsight
from ..engine.points import ENTER, LEAVE, Arguments
from .cellrows import heads_for, keywords_of, plan_cells, refuse_unreached
from .errors import ExperimentError, RecipeError
from .grid import Axis, IndexAxis, PositionAxis, cell_step, cells
from .inputs import Inputs
from .metrics import Answer, AnyMetric, LogitDiff, Probability
from .plan import Action, Visit
from .planning import elements_by_place
from .plotted import Plotted
from .prefix import last_logits
from .recipe import Prompt, Recipe
from .scope import index_of, view_of
from .shapes import remembered_shapes
from .sites import SitePath, locate
from .steps import Patch
from .survey import survey
from .sweepresult import SweepResult
from .sweeps import Sweep, lay_out
from .tokens import answer_reader
from .values import pick, put


@dataclass(frozen=True, eq=False)
class AttributionResult(Plotted):
    """Estimated and exact effects of a grid of patches.

    Attributes:
        sweep: the patching sweep that is estimated.
        axes: of the grid.
        estimates: of the change of the metric in every cell, float64.
        baseline: the metric of the clean run.
        exact: the sweep that was run beside it; None when it was turned off.
        seconds: that the estimate took.
    """

    sweep: Sweep
    axes: tuple[Axis, ...]
    estimates: Tensor
    baseline: float
    exact: SweepResult | None
    seconds: float

    @property
    def errors(self) -> Tensor:
        """Estimate minus exact change, in every cell. Raises ExperimentError without the exact sweep."""
        if self.exact is None:
            raise ExperimentError("The exact sweep was turned off, so the error is not known: exact=True.")
        return self.estimates - self.exact.differences

    @property
    def max_error(self) -> float:
        """Largest absolute error of a cell. Raises ExperimentError without the exact sweep."""
        return float(self.errors.abs().max())

    @property
    def correlation(self) -> float:
        """Pearson correlation of estimated and exact changes over the cells; NaN where one of them does not vary.

        Raises:
            ExperimentError: without the exact sweep.
        """
        errors = self.errors  # says so when there is no exact sweep
        pair = torch.stack([self.estimates.flatten(), (self.estimates - errors).flatten()])
        return float(torch.corrcoef(pair)[0, 1]) if pair.shape[1] > 1 else float("nan")

    def to_pandas(self) -> Any:
        """One row for each cell: the axes, `estimate`, and with the exact sweep `exact` and `error`."""
        try:
            import pandas
        except ImportError as error:
            raise ExperimentError("to_pandas needs pandas: pip install 'nnsight-lab[pandas]'.") from error
        indices = list(cells(self.axes))
        columns: dict[str, Any] = {
            axis.name: [axis.labels[index[number]] for index in indices] for number, axis in enumerate(self.axes)
        }
        columns["estimate"] = self.estimates.flatten().tolist()
        if self.exact is not None:
            columns["exact"] = self.exact.differences.flatten().tolist()
            columns["error"] = self.errors.flatten().tolist()
        return pandas.DataFrame(columns)

    def __str__(self) -> str:
        grid = " x ".join(f"{len(axis)} {axis.name}s" for axis in self.axes)
        line = f"Attribution patching over {grid}, {self.seconds:.2f} s"
        if self.exact is None:
            return f"{line}; not compared with exact patching"
        return (
            f"{line}; against exact patching ({self.exact.seconds:.2f} s): correlation {self.correlation:.3f}, "
            f"largest error {self.max_error:.3g}"
        )

    __repr__ = __str__


def attribute(
    model: NNsight,
    sites: str | tuple[str, ...],
    *,
    base: Prompt,
    source: Prompt,
    metric: AnyMetric | tuple[Answer, Answer],
    io: str = "output",
    element: tuple[int | str, ...] | None = None,
    positions: PositionAxis = "each",
    heads: IndexAxis = None,
    neurons: IndexAxis = None,
    exact: bool = True,
    **options: Any,
) -> AttributionResult:
    """Estimate what patching each cell from the source prompt does to the metric.

    Args:
        sites: a pattern or several.
        base, source, metric, positions, heads, neurons: as in `sweep`; the metric is `LogitDiff` or `Probability`.
        io, element: as in a step.
        exact: run the sweep as well, and report the error.
        options: of the sweep: `memory`, `progress`, `cancel`.

    Raises:
        RecipeError, UnknownSiteError, ScopeError: a field that is not valid for this model and prompt.
    """
    names = (sites,) if isinstance(sites, str) else tuple(sites)
    if not names or io not in ("output", "input"):
        raise RecipeError('sites: name at least one; io: "output" or "input".')
    chosen = LogitDiff(*metric) if isinstance(metric, tuple) else metric
    if not isinstance(chosen, LogitDiff | Probability):
        raise RecipeError(
            f"metric: {type(chosen).__name__} has no useful gradient here; take LogitDiff or Probability."
        )
    plan = Sweep(
        step=Patch(site=names[0], io=io, element=element),  # type: ignore[arg-type]  # checked above
        sites=names,
        base=base,
        source=source,
        metric=chosen,
        positions=positions,
        heads=heads,
        neurons=neurons,
    )
    model, _, grid = lay_out(plan, model)
    assert grid.source is not None  # the plan was validated: a patch has a source prompt
    begun = time.perf_counter()
    steps = tuple(cell_step(plan.step, grid.axes, index) for index in cells(grid.axes))
    recipe = Recipe(source=source, steps=steps)
    wanted = elements_by_place(recipe, "base")
    clean = survey(model, grid.base, wanted, grid.paths)
    refuse_unreached(clean, "base")
    source_wanted = elements_by_place(recipe, "source")
    other = survey(model, grid.source, source_wanted, grid.paths, list(source_wanted))
    refuse_unreached(other, "source")
    actions = plan_cells(
        recipe,
        grid.base,
        grid.source,
        clean,
        other,
        heads_for(model, steps),
        remembered_shapes(model, grid.base, wanted, grid.paths),
        remembered_shapes(model, grid.source, source_wanted, grid.paths),
    )
    used = {number: clean.visits[number] for number in {a.visit for cell in actions.values() for a in cell}}
    baseline, values, gradients = _gradients(model, grid.base, used, grid.paths, chosen)
    flat = [
        sum(_estimate(action, values, gradients, other.values) for action in cell)
        for _, cell in sorted(actions.items())
    ]
    estimates = torch.tensor(flat, dtype=torch.float64).reshape(grid.shape)
    seconds = time.perf_counter() - begun
    compared = plan.run(model, **options) if exact else None
    return AttributionResult(plan, grid.axes, estimates, baseline, compared, seconds)


def _estimate(
    action: Action, values: Mapping[int, Tensor], gradients: Mapping[int, Tensor], source: Mapping[int, Tensor]
) -> float:
    def entries(tensor: Tensor, selection: Any) -> Tensor:
        view = view_of(tensor, selection)
        return view[index_of(selection, view.shape)].double()

    assert action.source is not None  # the action of a patch
    change = entries(source[action.source], action.source_selection) - entries(values[action.visit], action.selection)
    return float((change * entries(gradients[action.visit], action.selection)).sum())


def _gradients(
    model: NNsight, inputs: Inputs, visits: Mapping[int, Visit], paths: Mapping[str, SitePath], metric: AnyMetric
) -> tuple[float, dict[int, Tensor], dict[int, Tensor]]:
    """The metric of the clean run, and by visit the value and the metric's gradient."""
    kept: dict[int, Tensor] = {}

    def watch(number: int, visit: Visit, value: Any) -> Any:
        tensor = pick(value, visit.element)
        if not tensor.is_floating_point():
            raise ExperimentError(f"{visit.address} is of {tensor.dtype}, which has no gradient.")
        # With frozen weights nothing before the site asks for gradients; a leaf of its own does.
        tensor = tensor if tensor.requires_grad else tensor.detach().requires_grad_()
        kept[number] = tensor
        # What goes on is a copy, so that the model may change it in place.
        return put(value, visit.element, tensor.clone())

    def change(number: int, visit: Visit) -> Any:
        def at_output(value: Any) -> Any:
            return watch(number, visit, value)

        def at_input(arguments: Arguments) -> Arguments:
            args, kwargs = arguments
            if args:
                return (watch(number, visit, args[0]), *args[1:]), kwargs
            first = next(iter(kwargs))
            return args, {**kwargs, first: watch(number, visit, kwargs[first])}

        return at_output if visit.io == "output" else at_input

    with torch.enable_grad(), model.trace(**keywords_of(model, inputs)) as tracer:
        run = tracer._run
        for number, visit in visits.items():
            site = locate(model, paths[visit.site], f"site {visit.site!r}")
            _, point, _ = site._locate(visit.io)
            run.write(point, LEAVE if visit.io == "output" else ENTER, change(number, visit), visit.call)
        run.finish()
        logits = last_logits(run.result)[0].double()
        answer_id = answer_reader(getattr(model, "tokenizer", None), logits.shape[-1])
        value = _differentiable(metric, logits, answer_id)
        numbers = list(kept)
        found = torch.autograd.grad(value, [kept[number] for number in numbers], allow_unused=True)
    values = {number: tensor.detach() for number, tensor in kept.items()}
    gradients = {
        number: torch.zeros_like(values[number]) if gradient is None else gradient
        for number, gradient in zip(numbers, found, strict=True)
    }
    return float(value.detach()), values, gradients


def _differentiable(metric: AnyMetric, logits: Tensor, answer_id: Any) -> Tensor:
    if isinstance(metric, LogitDiff):
        return logits[answer_id(metric.correct)] - logits[answer_id(metric.wrong)]
    assert isinstance(metric, Probability)  # the others were refused
    return logits.softmax(-1)[answer_id(metric.token)]
