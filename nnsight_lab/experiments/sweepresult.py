"""What a sweep gives: a grid of numbers with named axes, and what each cell stands for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .errors import ExperimentError
from .grid import Axis, cell_step, cells
from .metrics import normalised_recovery
from .plan import Plan
from .plotted import Plotted

if TYPE_CHECKING:
    from .recipe import Recipe
    from .sweeps import Sweep


@dataclass(frozen=True, eq=False)
class SweepResult(Plotted):
    """The cells of a sweep.

    Attributes:
        sweep: what was run.
        axes: of the grid: "site", then "position", "head", "neuron" as far as they were swept.
        tokens, source_tokens: text of each token of the prompts.
        values: the metric of every cell, float64, one axis for each of `axes`; NaN where a cell was not computed or
            where the metric is NaN: `done` tells which.
        done: whether a cell was computed, same shape.
        logits: of the tokens that the sweep keeps, `[..., token]`, float64.
        baseline: the metric of the clean run.
        baseline_logits: `[token]` of the clean run.
        source_value: the metric of the source prompt's run, if there was one.
        metric_name: the metric with the texts of its tokens.
        plan: how the cells were carried out, from which the code is made; actions are numbered by cell.
        method: how the cells were computed.
        notes: which ways were not possible and why, and what was left out.
        seconds: that it took in all.
        peak_bytes: memory at the peak beyond what was in use before; None where it cannot be told.
        budget_bytes: the memory that it was allowed.
    """

    sweep: Sweep
    axes: tuple[Axis, ...]
    tokens: tuple[str, ...]
    source_tokens: tuple[str, ...]
    values: Tensor
    done: Tensor
    logits: Tensor
    baseline: float
    baseline_logits: Tensor
    source_value: float | None = None
    metric_name: str = ""
    plan: Plan = field(default_factory=Plan)
    method: str = ""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    peak_bytes: int | None = None
    budget_bytes: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of entries of each axis."""
        return tuple(self.values.shape)

    @property
    def complete(self) -> bool:
        """Whether every cell was computed."""
        return bool(self.done.all())

    def axis(self, name: str) -> Axis:
        """The axis called `name`. Raises ExperimentError where the sweep has none."""
        for axis in self.axes:
            if axis.name == name:
                return axis
        raise ExperimentError(f"There is no axis {name!r}; there are {', '.join(axis.name for axis in self.axes)}.")

    @property
    def differences(self) -> Tensor:
        """Values minus the clean run's."""
        return self.values - self.baseline

    def recovery(self) -> Tensor:
        """Normalised recovery of every cell: 0 where the metric is the clean run's, 1 where it is the source's.

        Raises:
            ExperimentError: the sweep has no source prompt.
        """
        if self.source_value is None:
            raise ExperimentError("There is no source prompt, so there is nothing to recover: give the sweep a source.")
        baseline, full = self.baseline, self.source_value
        flat = [normalised_recovery(value, baseline, full) for value in self.values.flatten().tolist()]
        return torch.tensor(flat, dtype=torch.float64).reshape(self.values.shape)

    def cell(self, *index: int) -> Recipe:
        """The recipe that one cell stands for.

        Raises:
            IndexError: there is no such cell.
        """
        if len(index) != len(self.axes):
            names = ", ".join(axis.name for axis in self.axes)
            raise IndexError(f"A cell has {len(self.axes)} numbers ({names}), not {len(index)}.")
        for axis, number in zip(self.axes, index, strict=True):
            if not -len(axis) <= number < len(axis):
                raise IndexError(f"{axis.name} {number}: there are {len(axis)}.")
        return self.sweep.recipe(cell_step(self.sweep.step, self.axes, index))

    def best(self, count: int = 5) -> list[tuple[tuple[int, ...], float]]:
        """The cells that differ most from the clean run, with their values; NaN cells are left out."""
        found = [(index, float(self.values[index])) for index in cells(self.axes)]
        found = [(index, value) for index, value in found if not math.isnan(value)]
        return sorted(found, key=lambda item: -abs(item[1] - self.baseline))[:count]

    # Views

    def to_pandas(self) -> Any:
        """The cells as a pandas DataFrame, one row each: a column for each axis, `value`, `difference`, `done`, and
        one for each token whose logits were kept. Raises ExperimentError where pandas is not installed."""
        try:
            import pandas
        except ImportError as error:
            raise ExperimentError("to_pandas needs pandas: pip install 'nnsight-lab[pandas]'.") from error
        indices = list(cells(self.axes))
        columns: dict[str, Sequence[Any]] = {
            axis.name: [axis.labels[index[number]] for index in indices] for number, axis in enumerate(self.axes)
        }
        columns["value"] = self.values.flatten().tolist()
        columns["difference"] = self.differences.flatten().tolist()
        columns["done"] = self.done.flatten().tolist()
        for number, token in enumerate(self.sweep.logits):
            columns[f"logit {token}"] = self.logits[..., number].flatten().tolist()
        return pandas.DataFrame(columns)

    def code(self) -> str:
        """A script in the trace API that computes the cells one by one, as `values`.

        Where nothing tells how the model was made, its first line, `model = ...`, is to be filled in. Raises
        ExperimentError for sites that one forward calls several times.
        """
        from .sweepcode import export_sweep

        return export_sweep(self)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the sweep to a folder, which is made: `sweep.json` and `sweep.safetensors`.

        Args:
            overwrite: write into a folder that holds something; a sweep in it is replaced, other files stay.

        Raises:
            StoredResultError: the folder holds something.
        """
        from .sweepstorage import save_sweep

        save_sweep(self, Path(path), overwrite)

    @classmethod
    def load(cls, path: str | Path) -> SweepResult:
        """Read a folder that `save` wrote. Raises StoredResultError where it holds no sweep."""
        from .sweepstorage import load_sweep

        return load_sweep(Path(path))

    def __str__(self) -> str:
        grid = " x ".join(f"{len(axis)} {axis.name}s" for axis in self.axes)
        metric = self.metric_name or type(self.sweep.metric).__name__
        missing = "" if self.complete else f", {int((~self.done).sum())} not computed"
        lines = [
            f"Sweep of {type(self.sweep.step).__name__} over {grid}{missing}: {metric}, clean {self.baseline:.4g}",
            f"{self.method[:1].upper()}{self.method[1:]}; {self.seconds:.2f} s",
            *self.notes,
        ]
        if self.done.any():
            lines.append("Largest effects:")
        for index, value in self.best():
            where = ", ".join(axis.labels[i] for axis, i in zip(self.axes, index, strict=True))
            lines.append(f"  {value:+10.4g}  {where}")
        return "\n".join(lines)

    __repr__ = __str__
