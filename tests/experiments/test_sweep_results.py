"""A sweep's result: cells as recipes, tables, files, code."""

import pytest
import torch

from nnsight_lab.experiments import (
    KL,
    Add,
    ExperimentError,
    LogitDiff,
    Mean,
    Noise,
    Patch,
    Probability,
    Rank,
    RecipeError,
    Replace,
    Scale,
    StoredResultError,
    Zero,
)
from nnsight_lab.experiments.sweepresult import SweepResult
from nnsight_lab.experiments.sweeps import Sweep, sweep

from .sweep_models import BASE, SOURCE, tiny

METRIC = LogitDiff(7, 9)
ACT = "model.layers.*.mlp.source.self_act_fn_0"


@pytest.fixture(scope="module")
def llama():
    return tiny("llama")


@pytest.fixture(scope="module")
def grid(llama):
    return sweep(
        llama,
        Patch(site="model.layers.*"),
        base=BASE,
        source=SOURCE,
        metric=METRIC,
        logits=(7, 9),
        positions=(1, "2:4", 8),
        progress=False,
    )


def test_axes_are_named_and_labelled(grid):
    assert [axis.name for axis in grid.axes] == ["site", "position"]
    assert grid.axis("site").labels == tuple(f"model.layers.{i}" for i in range(4))
    assert grid.axis("position").labels == ("1 17", "2-3 329", "8 14")
    with pytest.raises(ExperimentError, match="no axis 'head'"):
        grid.axis("head")


def test_a_cell_is_the_recipe_it_stands_for(grid, llama):
    recipe = grid.cell(2, 1)
    (step,) = recipe.steps
    assert (step.site, step.positions) == ("model.layers.2", ("2:4",))
    assert (recipe.base, recipe.source, recipe.metric) == (BASE, SOURCE, METRIC)
    assert recipe.run(llama, reach=False).metric.edited == pytest.approx(float(grid.values[2, 1]), abs=1e-4)
    with pytest.raises(IndexError, match="site 4: there are 4"):
        grid.cell(4, 0)
    with pytest.raises(IndexError, match="2 numbers"):
        grid.cell(1)


def test_logits_of_chosen_tokens_are_kept(grid):
    torch.testing.assert_close(grid.logits[..., 0] - grid.logits[..., 1], grid.values)
    assert float(grid.baseline_logits[0] - grid.baseline_logits[1]) == pytest.approx(grid.baseline)


def test_recovery_is_zero_at_the_clean_and_one_at_the_source_run(grid, llama):
    with torch.no_grad():
        full = llama._model(torch.tensor([SOURCE])).logits[0, -1].double()
    assert grid.source_value == pytest.approx(float(full[7] - full[9]), abs=1e-5)
    by_hand = (grid.values - grid.baseline) / (grid.source_value - grid.baseline)
    torch.testing.assert_close(grid.recovery(), by_hand)
    with pytest.raises(ExperimentError, match="no source prompt"):
        sweep(llama, Zero(site="model.layers.0"), base=BASE, metric=METRIC, progress=False).recovery()


def test_to_pandas_has_a_row_for_each_cell(grid):
    frame = grid.to_pandas()
    assert list(frame.columns) == ["site", "position", "value", "difference", "done", "logit 7", "logit 9"]
    assert len(frame) == 12
    row = frame[(frame.site == "model.layers.1") & (frame.position == "8 14")].iloc[0]
    assert row.value == float(grid.values[1, 2])


def test_saved_and_loaded_it_is_the_same(grid, tmp_path):
    grid.values[0, 0] = float("nan")
    grid.save(tmp_path / "sweep")
    loaded = SweepResult.load(tmp_path / "sweep")
    assert loaded.sweep == grid.sweep
    assert loaded.axes == grid.axes
    assert loaded.plan == grid.plan
    assert (loaded.notes, loaded.method, loaded.tokens) == (grid.notes, grid.method, grid.tokens)
    torch.testing.assert_close(loaded.values, grid.values, equal_nan=True, rtol=0, atol=0)
    assert torch.equal(loaded.done, grid.done)
    assert (loaded.baseline, loaded.source_value, loaded.seconds) == (grid.baseline, grid.source_value, grid.seconds)
    assert loaded.code() == grid.code()
    assert not list((tmp_path / "sweep").glob("*.p*"))


def test_a_damaged_folder_is_refused(grid, tmp_path):
    with pytest.raises(StoredResultError, match="holds no sweep"):
        SweepResult.load(tmp_path)
    grid.save(tmp_path)
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(StoredResultError, match="damaged"):
        SweepResult.load(tmp_path)


def test_a_sweep_goes_through_json():
    plan = Sweep(
        step=Patch(site="model.layers.*"),
        base="a",
        source="b",
        metric=Rank(" Paris"),
        positions=(1, "2:4", " Tower"),
        heads=(0, "1:3", (2, 3)),
        logits=(" Paris", 4),
    )
    assert Sweep.from_json(plan.to_json()) == plan
    for text, message in (
        ("{", "not JSON"),
        ('{"step": {"kind": "zero", "site": "a"}, "base": "b"}', "metric"),
        ('{"step": {"kind": "zap", "site": "a"}, "base": "b", "metric": {"kind": "kl"}}', "step"),
        ('{"step": {"kind": "zero", "site": "a"}, "base": "b", "metric": {"kind": "kl"}, "zoom": 1}', "zoom"),
    ):
        with pytest.raises(RecipeError, match=message):
            Sweep.from_json(text)


@pytest.mark.parametrize(
    ("step", "options"),
    [
        (Zero(site=ACT), {}),
        (Zero(site="model.layers.*.self_attn"), {"metric": Probability(7)}),
        (Mean(site=ACT), {"neurons": (3, "0:20"), "positions": None, "metric": KL()}),
        (Scale(site="model.layers.*.self_attn.o_proj", io="input", factor=2.0), {"heads": (0, 3), "metric": Rank(7)}),
        (Add(site="model.layers.*", vector=tuple(i / 8 for i in range(32))), {}),
        (Noise(site="model.layers.*", std=0.5, seed=3), {}),
        (Replace(site="model.layers.*.mlp", value=0.25), {}),
        (Patch(site="model.layers.*.self_attn.source.attention_interface_0"), {"source": SOURCE}),
        (Patch(site="model.layers.*.self_attn.o_proj", io="input"), {"source": SOURCE, "heads": "each"}),
        (Patch(site="model.layers.*"), {"source": SOURCE[2:], "positions": (-1, -3)}),
    ],
    ids=lambda value: type(value).__name__ + getattr(value, "site", "")[-12:],
)
def test_exported_code_computes_the_same_grid(llama, step, options):
    result = sweep(
        llama, step, **{"base": BASE, "metric": METRIC, "positions": (1, 4, 8), "progress": False, **options}
    )
    # Without a tokenizer a prompt of ids goes in as a batch; the script says which model it needs.
    code = result.code()
    assert code.startswith("model = ...  # the wrapped model that the sweep was run on\n")
    names = {"model": llama}
    exec(compile(code.partition("\n")[2], "sweep.py", "exec"), names)
    assert names["values"].shape == result.values.shape
    torch.testing.assert_close(names["values"], result.values, atol=3e-4, rtol=1e-4)
    assert float(result.differences.abs().max()) > 1e-4
