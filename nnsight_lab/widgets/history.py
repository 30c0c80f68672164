"""The runs, sweeps and lenses of one Lab, in order, and how long their tensors are kept.

A run is kept by its experiment and its small numbers. Its captured tensors are a cache: a run is deterministic, so
those that the memory budget has no room for are dropped, the oldest run's first, and computed again when asked for.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor

from ..experiments import Recipe, Result, Sweep, SweepResult
from . import wire
from .errors import LabError
from .naming import grid_detail, run_detail, title_of
from .state import Experiment
from .wire import Target

Kind = Literal["run", "sweep", "lens"]
# Bytes of captured tensors that a Lab keeps of its runs.
BUDGET_BYTES = 512 * 2**20


@dataclass(frozen=True, eq=False)
class Captured:
    """A value that a run gave, clean and edited, on the CPU."""

    clean: Tensor
    edited: Tensor

    @property
    def bytes(self) -> int:
        same = self.clean.data_ptr() == self.edited.data_ptr()
        return sum(t.element_size() * t.numel() for t in ((self.clean,) if same else (self.clean, self.edited)))


@dataclass(frozen=True)
class HistoryItem:
    """One entry as Python sees it.

    Attributes:
        run: its id.
        kind: "run", "sweep" or "lens".
        title, detail: what changed, and what came out.
        recipe: of the run; of a sweep the `Sweep`; of a lens the recipe with its prompt.
        result: a `Result`, `SweepResult` or `LensResult`.
    """

    run: str
    kind: Kind
    title: str
    detail: str
    recipe: Recipe | Sweep
    result: Any


@dataclass(eq=False)
class Record:
    """One entry of the history, and what is known of it.

    Attributes:
        experiment: the Lab's experiment when it was asked for.
        answer, code: of a run, as the page is shown them.
        complete: whether it is done; a sweep is in the history from its first cell on.
        captured: the tensors kept, by the value that they are of.
    """

    run: str
    kind: Kind
    experiment: Experiment
    title: str
    detail: str
    result: Any  # of the type that the kind tells
    answer: wire.Answer | None = None
    code: wire.CodeView = field(default_factory=wire.CodeView)
    complete: bool = True
    seconds: float = 0.0
    captured: dict[Target, Captured] = field(default_factory=dict)

    @property
    def entry(self) -> wire.HistoryEntry:
        return wire.HistoryEntry(self.run, self.kind, self.title, self.detail, self.complete)

    def item(self, model: str | None) -> HistoryItem:
        recipe = self.result.sweep if isinstance(self.result, SweepResult) else self.experiment.recipe(model)
        return HistoryItem(self.run, self.kind, self.title, self.detail, recipe, self.result)


class History:
    """The records of one Lab by id. Not thread-safe: the Lab's lock guards it."""

    def __init__(self, budget: int = BUDGET_BYTES) -> None:
        self.budget = budget
        self._records: dict[str, Record] = {}
        self._numbers = itertools.count(1)

    def __getitem__(self, run: str) -> Record:
        """Raises LabError where there is no such run."""
        try:
            return self._records[run]
        except KeyError:
            raise LabError(f"There is no run {run!r} in the history.") from None

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())

    def __len__(self) -> int:
        return len(self._records)

    def find(self, experiment: Experiment) -> Record | None:
        """The latest run that gives the numbers of `experiment`."""
        runs = [record for record in self if record.kind == "run" and record.experiment.same_run(experiment)]
        return runs[-1] if runs else None

    def add_run(self, experiment: Experiment, result: Result) -> Record:
        """Keep a run. One that only repeats the run before it takes that one's place."""
        before = self._latest("run")
        if before is not None and before.experiment.same_run(experiment):
            before.experiment, before.result, before.detail = experiment, result, run_detail(result)
            return before
        title = title_of(experiment, before.experiment if before is not None else None)
        return self._add(Record(self._id(), "run", experiment, title, run_detail(result), result))

    def add_grid(self, kind: Kind, title: str, experiment: Experiment, result: Any, seconds: float) -> Record:
        """Keep a sweep or a lens."""
        complete = not isinstance(result, SweepResult) or result.complete
        detail = grid_detail(result, seconds)
        return self._add(
            Record(self._id(), kind, experiment, title, detail, result, complete=complete, seconds=seconds)
        )

    def grow(self, record: Record, result: SweepResult, seconds: float) -> None:
        """A sweep has come further."""
        record.result, record.complete = result, result.complete
        record.detail = grid_detail(result, seconds)

    def remove(self, run: str) -> None:
        del self._records[run]

    def keep(self, run: str, target: Target, value: Captured) -> None:
        """Keep a captured value, dropping others where the budget asks for it; never the latest run's."""
        record = self[run]
        record.captured.pop(target, None)
        record.captured[target] = value
        self.trim(run)

    def trim(self, keep: str | None = None) -> None:
        """Drop captured tensors, the oldest run's first, until the rest is within the budget."""
        total = sum(_bytes(record) for record in self)
        for record in self:
            if total <= self.budget:
                return
            if record.run == keep:
                continue
            total -= _bytes(record)
            record.captured.clear()
            if isinstance(record.result, Result):
                record.result = dataclasses.replace(record.result, activations={}, clean_activations={})

    def _latest(self, kind: Kind) -> Record | None:
        return next((record for record in reversed(self._records.values()) if record.kind == kind), None)

    def _add(self, record: Record) -> Record:
        self._records[record.run] = record
        self.trim(record.run)
        return record

    def _id(self) -> str:
        return f"r{next(self._numbers)}"


def _bytes(record: Record) -> int:
    """Bytes of the tensors that the record can do without."""
    tensors = {}
    for captured in record.captured.values():
        tensors.update({t.data_ptr(): t for t in (captured.clean, captured.edited)})
    if isinstance(record.result, Result):
        kept = (*record.result.activations.values(), *record.result.clean_activations.values())
        tensors.update({t.data_ptr(): t for t in kept})
    return sum(t.element_size() * t.numel() for t in tensors.values())
