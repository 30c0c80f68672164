"""What a sweep's axes are called on the page, and what their entries are labelled with."""

from __future__ import annotations

import pytest

from nnsight_lab import demo
from nnsight_lab.experiments import LogitDiff, Zero, sweep
from nnsight_lab.widgets.views.grids import sweep_grid


@pytest.fixture(scope="module")
def model():
    return demo.load()


def _axes(model, positions):
    step, metric = Zero(site="transformer.h.*.mlp"), LogitDiff(" Paris", " London")
    result = sweep(model, step, base=demo.EIFFEL, metric=metric, positions=positions, progress=False)
    grid, _ = sweep_grid("1", "s1", "a sweep", result)
    return {axis.name: axis.labels for axis in grid.axes}


def test_each_position_is_labelled_with_its_token(model):
    tokens = [model.tokenizer.decode(i) for i in model.tokenizer(demo.EIFFEL)["input_ids"]]
    axes = _axes(model, "each")
    assert list(axes["position"]) == tokens
    assert axes["site"][:2] == ("h.0", "h.1")


def test_chosen_positions_say_which_they_are(model):
    assert _axes(model, [-1, 2])["positions"] == ("7 ␣of", "2 ␣Tower")
