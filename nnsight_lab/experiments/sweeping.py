"""Running a sweep: which way, in which forwards, checked, within a budget, with progress and a way to stop.

See `sweep` for the ways. The rows of a forward are limited by the memory that one row was measured to need; when
the device runs out all the same, the limit is halved.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..engine import NNsight
from .answers import answers_of, metric_name, space_notes
from .budget import default_budget, peak_memory
from .cellrows import CellRows, prepare_cells
from .errors import ExperimentError
from .grid import cell_step, cells
from .metrics import AnyMetric, Rank, measure
from .outputs import output_mode
from .plan import Plan
from .rolling import Row, run_rows
from .schedule import MOST_ROWS, groups
from .soundness import UnsoundError, check, known_sound
from .sweepresult import SweepResult
from .sweeps import Grid, Sweep, lay_out
from .tokens import answer_reader

SUFFIX = "cells run together, each from the layer and position of its edit on"
ROLLING = "cells run together, each from the layer of its edit on, at all positions"
BATCH = "cells run together through the whole model"
SINGLE = "cells run one by one through the whole model"


def run_sweep(
    plan: Sweep,
    model: NNsight | None = None,
    *,
    memory: int | None = None,
    progress: bool | Callable[[int, int], Any] = True,
    cancel: Any = None,
    partial: Callable[[SweepResult], Any] | None = None,
    way: str | None = None,
) -> SweepResult:
    """Run a sweep; arguments as in `sweep`.

    Args:
        partial: a function that is given the result so far, before the first forward and after each.
        way: take this way instead of the fastest that is sound.
    """
    model, model_line, grid = lay_out(plan, model)
    begun = time.perf_counter()
    indices = list(cells(grid.axes))
    steps = [cell_step(grid.step, grid.axes, index) for index in indices]
    device = next((p.device for p in model._model.parameters()), torch.device("cpu"))
    budget = default_budget(device) if memory is None else memory
    with peak_memory(device) as peak:
        prepared = prepare_cells(model, steps, grid.paths, grid.base, grid.source, plan.source)
        answer_id = answer_reader(getattr(model, "tokenizer", None), prepared.prefix.logits.shape[-1])
        reader = _Reader(plan.metric, prepared.prefix.logits, answer_id, [answer_id(token) for token in plan.logits])
        work = _Work(model, prepared, reader, len(indices), _most_rows(budget, prepared.row_bytes), _asked(cancel))
        baseline, kept = reader.read(prepared.prefix.logits)
        full = None if prepared.source_logits is None else reader.read(prepared.source_logits)[0]
        name = metric_name(plan.metric, getattr(model, "tokenizer", None), answer_id)
        carried_out = _plan(model, plan, prepared, model_line)

        def so_far() -> SweepResult:
            seconds = time.perf_counter() - begun
            return _result(plan, name, grid, work, carried_out, baseline, kept, full, seconds, peak.bytes, budget)

        with _progress(progress, len(indices)) as advance:
            work.advance = advance
            if partial is not None:
                report = partial
                report(so_far())

                def advance_and_report(done: int) -> None:
                    advance(done)
                    report(so_far())

                work.advance = advance_and_report
            work.run(way)
    answers = (*answers_of(plan.metric), *plan.logits)
    judged = [run for run in (prepared.prefix.logits, prepared.source_logits) if run is not None]
    work.notes += space_notes(answers, getattr(model, "tokenizer", None), answer_id, judged)
    return so_far()


def _plan(model: NNsight, plan: Sweep, prepared: CellRows, model_line: str) -> Plan:
    mode, element = output_mode(prepared.prefix.output, plan.metric)
    return Plan(
        visits=prepared.visits,
        source_visits=prepared.source_visits,
        actions=prepared.actions,
        model_line=model_line,
        tokenizer=getattr(model, "tokenizer", None) is not None,
        output=mode,
        output_element=element,
    )


def _result(
    plan: Sweep,
    name: str,
    grid: Grid,
    work: _Work,
    carried_out: Plan,
    baseline: float,
    kept: Tensor,
    full: float | None,
    seconds: float,
    peak: int | None,
    budget: int,
) -> SweepResult:
    return SweepResult(
        sweep=plan,
        axes=grid.axes,
        tokens=grid.base.tokens,
        source_tokens=grid.source.tokens if grid.source is not None else (),
        values=work.values.reshape(grid.shape).clone(),
        done=work.done.reshape(grid.shape).clone(),
        logits=work.kept.reshape(*grid.shape, -1).clone(),
        baseline=baseline,
        baseline_logits=kept,
        source_value=full,
        metric_name=name,
        plan=carried_out,
        method=work.method,
        notes=tuple(work.notes),
        seconds=seconds,
        peak_bytes=peak,
        budget_bytes=budget,
    )


def _most_rows(budget: int, row_bytes: int) -> int:
    return max(1, min(MOST_ROWS, budget // row_bytes))


@dataclass(frozen=True)
class _Reader:
    """Turns logits `[vocabulary]` into the metric and the logits that are kept."""

    metric: AnyMetric
    clean: Tensor
    answer_id: Callable[[Any], int]
    tokens: list[int]

    def read(self, logits: Tensor) -> tuple[float, Tensor]:
        kept = logits[self.tokens].double().cpu()
        if isinstance(self.metric, Rank):
            # Counting is faster than the sorting of all tokens that a table needs.
            token = self.answer_id(self.metric.token)
            mine = logits[token]
            if not mine.isnan():
                return float((logits > mine).sum() + (logits[:token] == mine).sum()), kept
        value = measure(self.metric, logits, self.clean, self.answer_id)
        assert value is not None  # a sweep's metric is a number
        return value, kept


def _asked(cancel: Any) -> Callable[[], bool]:
    if cancel is None:
        return lambda: False
    if hasattr(cancel, "is_set"):
        return lambda: bool(cancel.is_set())
    if callable(cancel):
        return lambda: bool(cancel())
    raise TypeError(f"cancel: a function or an object with is_set(), not {type(cancel).__name__}.")


@contextmanager
def _progress(progress: bool | Callable[[int, int], Any], total: int) -> Iterator[Callable[[int], None]]:
    """A function that is told how many cells are done."""
    if callable(progress):
        report = progress
        yield lambda done: report(done, total)
    elif progress:
        from tqdm.auto import tqdm

        with tqdm(total=total, unit="cell", desc="sweep") as bar:
            yield lambda done: bar.update(done - bar.n)
    else:
        yield lambda done: None


@dataclass(eq=False)
class _Work:
    """The state of one sweep that is being computed."""

    model: NNsight
    cells: CellRows
    reader: _Reader
    total: int
    most: int
    cancelled: Callable[[], bool]
    advance: Callable[[int], None] = lambda done: None
    notes: list[str] = field(default_factory=list)
    method: str = ""

    def __post_init__(self) -> None:
        self.values = torch.full((self.total,), math.nan, dtype=torch.float64)
        self.done = torch.zeros(self.total, dtype=torch.bool)
        self.kept = torch.full((self.total, len(self.reader.tokens)), math.nan, dtype=torch.float64)

    def run(self, way: str | None) -> None:
        """Compute the cells, as far as it is not cancelled."""
        for number in self.cells.same:
            self._store(number, self.cells.prefix.logits)
        if self.cells.same:
            self.notes.append(f"{len(self.cells.same)} cells leave the clean run as it is and were not computed.")
        ways = [way] if way is not None else self._ways()
        try:
            for position, chosen in enumerate(ways):
                self.method = chosen
                try:
                    self._take(chosen)
                    return
                except ExperimentError:
                    raise
                except Exception as error:
                    if position == len(ways) - 1:
                        raise
                    self.notes.append(f"{chosen}: not possible here, {_reason(error)}.")
        except KeyboardInterrupt:
            self.notes.append("Interrupted: the cells that were done by then are kept.")

    def _ways(self) -> list[str]:
        prefix = self.cells.prefix
        if self.cells.outside or not prefix.path:
            why = f"{len(self.cells.outside)} cells are outside the layers" if prefix.path else prefix.why_not[-1]
            self.notes.append(f"No prefix is reused: {why}.")
            return [BATCH, SINGLE]
        if len(prefix.keys_values) != len(prefix.layers):
            self.notes.append(
                f"All positions are computed: {prefix.why_not[0] if prefix.why_not else 'unusual cache'}."
            )
            return [ROLLING, BATCH, SINGLE]
        return [SUFFIX, ROLLING, BATCH, SINGLE]

    def _take(self, way: str) -> None:
        numbers = [number for number in self.cells.rows if not self.done[number]]
        rows = [self.cells.rows[number] for number in numbers]
        pieces = self._pieces(way, rows)
        reuse = way in (SUFFIX, ROLLING)
        checked = way == SINGLE or not rows or known_sound(self.model, self.cells.prefix, way, rows[0])
        while pieces:
            if self.cancelled():
                self.notes.append("Cancelled: the cells that were done by then are kept.")
                return
            start, chosen = pieces.pop(0)
            part = [rows[i] for i in chosen]
            try:
                logits = run_rows(self.model, self.cells.prefix, part, start, reuse)
            except torch.OutOfMemoryError:
                if len(chosen) == 1:
                    raise
                self.most = len(chosen) // 2
                pieces = [(start, chosen[: self.most]), (start, chosen[self.most :]), *pieces]
                continue
            if not checked:
                checked = check(self.model, self.cells.prefix, way, reuse, part, logits)
            for i, row_logits in zip(chosen, logits, strict=True):
                self._store(numbers[i], row_logits)
            self.advance(int(self.done.sum()))

    def _pieces(self, way: str, rows: Sequence[Row]) -> list[tuple[int, list[int]]]:
        prefix = self.cells.prefix
        if way in (BATCH, SINGLE):
            most = 1 if way == SINGLE else self.most
            return [(0, list(range(at, min(at + most, len(rows))))) for at in range(0, len(rows), most)]
        device = prefix.logits.device.type
        if way == ROLLING:
            order = sorted(range(len(rows)), key=lambda i: rows[i].join)
            return [(0, order[at : at + self.most]) for at in range(0, len(order), self.most)]
        found = groups(rows, prefix.length, len(prefix.layers), self.most, device)
        # A forward that leaves positions out comes first, because the first one is checked.
        return sorted(found, key=lambda piece: piece[0] == 0)

    def _store(self, number: int, logits: Tensor) -> None:
        self.values[number], self.kept[number] = self.reader.read(logits)
        self.done[number] = True


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    name = "" if isinstance(error, UnsoundError) else f"{type(error).__name__}: "
    return (name + (text if len(text) <= 200 else text[:197] + "...")).rstrip(".")
