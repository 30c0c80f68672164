"""Progress, stopping, memory, and what a sweep refuses."""

import threading

import pytest
import torch

from nnsight_lab.experiments import LogitDiff, Patch, RecipeError, ScopeError, TopK, UnknownSiteError, Zero
from nnsight_lab.experiments.budget import live_bytes
from nnsight_lab.experiments.schedule import FIXED_TOKENS, groups
from nnsight_lab.experiments.sweeping import run_sweep
from nnsight_lab.experiments.sweeps import Sweep, sweep

from .sweep_models import BASE, SOURCE, tiny

METRIC = LogitDiff(7, 9)


@pytest.fixture(scope="module")
def llama():
    return tiny("llama")


def run(model, **options):
    return sweep(model, Zero(site="model.layers.*.mlp"), base=BASE, metric=METRIC, **{"progress": False, **options})


def test_progress_reports_cells_done_up_to_all(llama):
    seen = []
    run(llama, progress=lambda done, total: seen.append((done, total)), memory=1)
    counts = [done for done, _ in seen]
    assert counts == sorted(counts)
    assert seen[-1] == (36, 36)
    assert len(seen) == 36  # the smallest budget runs the rows one by one


def test_a_bar_is_drawn(llama, capsys):
    run(llama, progress=True)
    assert "36/36" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["event", "function"])
def test_cancel_keeps_what_is_done(llama, kind):
    event = threading.Event()

    def progress(done, total):
        if done >= 5:
            event.set()

    whole = run(llama)
    cancel = event if kind == "event" else event.is_set
    part = run(llama, progress=progress, cancel=cancel, memory=1)
    assert int(part.done.sum()) == 5
    assert not part.complete
    assert part.values.isnan().tolist() == (~part.done).tolist()
    torch.testing.assert_close(part.values[part.done], whole.values[part.done], atol=1e-4, rtol=0)
    assert any("Cancelled" in note for note in part.notes)
    assert "31 not computed" in str(part)


def test_an_interrupt_keeps_what_is_done(llama):
    def progress(done, total):
        if done == 3:
            raise KeyboardInterrupt

    part = run(llama, progress=progress, memory=1)
    assert int(part.done.sum()) == 3
    assert any("Interrupted" in note for note in part.notes)


def test_the_model_is_left_as_it_was(llama):
    ids = torch.tensor([BASE])
    before = llama._model(ids).logits
    run(llama)
    run(llama, cancel=lambda: True)
    assert torch.equal(llama._model(ids).logits, before)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in llama._model.modules())


@pytest.mark.parametrize("rows", [2, 6, 20])
def test_peak_memory_stays_in_the_budget(llama, rows):
    from nnsight_lab.experiments.cellrows import _row_bytes

    plan = Sweep(step=Zero(site="model.layers.*.mlp"), base=BASE, metric=METRIC)
    run_sweep(plan, llama, progress=False)  # measures what a row needs
    budget = rows * _row_bytes[llama._model][len(BASE)]
    with live_bytes() as small:
        run_sweep(plan, llama, progress=False, memory=budget)
    with live_bytes() as large:
        run_sweep(plan, llama, progress=False)
    kept = 36 * _row_bytes[llama._model][len(BASE)]
    assert small.bytes <= budget + _row_bytes[llama._model][len(BASE)] * 2
    assert large.bytes <= kept
    assert small.bytes < large.bytes or rows == 20


def test_live_bytes_counts_storages_that_live_together():
    with live_bytes() as peak:
        first = torch.zeros(1000)
        second = first + 1
        del first
        third = second.view(10, 100) * 2
        del second, third
        torch.ones(500)
    assert peak.bytes == 8000


def test_the_plan_and_the_peak_are_reported(llama):
    result = run(llama, memory=10**8)
    assert result.budget_bytes == 10**8
    assert result.peak_bytes is None or result.peak_bytes >= 0
    assert result.seconds > 0


class _Row:
    def __init__(self, join, start):
        self.join, self.start = join, start


def test_groups_cover_every_row_once_and_start_early_enough():
    rows = [_Row(join, start) for join in range(5) for start in range(9)]
    found = groups(rows, 9, 5, 7)
    assert sorted(i for _, chosen in found for i in chosen) == list(range(45))
    for start, chosen in found:
        assert len(chosen) <= 7
        assert all(rows[i].start >= start for i in chosen)
        assert [rows[i].join for i in chosen] == sorted(rows[i].join for i in chosen)


def test_groups_are_the_cheapest_of_all_cuts():
    import itertools

    depth, length = 6, 5
    rows = [_Row(join, start) for join in (0, 2, 5) for start in range(5)]

    def cost(cut):
        total = 0
        for first, last in itertools.pairwise((0, *cut, 5)):
            inside = [row for row in rows if first <= row.start < last]
            total += FIXED_TOKENS["cpu"] * depth + sum(depth - row.join for row in inside) * (length - first)
        return total

    cuts = [cut for size in range(5) for cut in itertools.combinations(range(1, 5), size)]
    found = groups(rows, length, depth, 1000)
    assert cost(tuple(start for start, _ in found if start)) == min(cost(cut) for cut in cuts)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"step": Zero(site="model.layers.*.mpl")}, UnknownSiteError, "has no submodule .mpl.. Did you mean .mlp."),
        ({"step": Zero(site="model.layers.0.mpl")}, UnknownSiteError, "no submodule 'mpl'"),
        (
            {"step": Zero(site="model.layers.*.mlp.source.self_zzz_*")},
            UnknownSiteError,
            "no operation is called 'self_zzz_\\*'",
        ),
        ({"positions": (3, 12)}, ScopeError, r"positions\[1\].*no position 12"),
        ({"heads": (9,)}, ScopeError, r"heads\[0\].*9 among 4"),
        ({"neurons": "each"}, ScopeError, "list them"),
        ({"neurons": (400,)}, ScopeError, "400 among 32"),
        ({"metric": TopK(3)}, RecipeError, "metric: a number for each cell"),
        ({"metric": LogitDiff(" Paris", 3)}, ScopeError, "needs a tokenizer"),
        ({"step": Patch(site="model.layers.*")}, RecipeError, "source: the step patches"),
        ({"step": Zero(site="model.layers.*", enabled=False)}, RecipeError, "disabled"),
        ({"base": ()}, ValueError, "no tokens"),
        ({"cancel": 3}, TypeError, "cancel: a function"),
    ],
)
def test_bad_input_is_named(llama, options, error, message):
    given = {
        "step": Zero(site="model.layers.*.mlp"),
        "base": BASE,
        "metric": METRIC,
        "progress": False,
        **options,
    }
    step = given.pop("step")
    with pytest.raises(error, match=message):
        sweep(llama, step, **given)


def test_source_of_another_length_needs_positions_from_the_end(llama):
    with pytest.raises(ScopeError, match="no position 7 in a prompt of 7"):
        sweep(
            llama,
            Patch(site="model.layers.*"),
            base=BASE,
            source=SOURCE[2:],
            metric=METRIC,
            positions="each",
            progress=False,
        )
