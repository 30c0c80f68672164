"""Grids of sweeps and of attribution patching."""

from __future__ import annotations

import numpy as np
import pytest

from nnsight_lab import plots
from nnsight_lab.experiments import ExperimentError
from nnsight_lab.plots import PlotError
from tests.plots.data import INF, NAN, POSITIONS, SITES, attribution_result, axis, marks, sweep_result

VALUES = [[1.0, 3.0], [5.0, 0.0], [1.0, 1.0]]


def test_cells_are_the_difference_from_the_clean_run():
    figure = plots.sweep(sweep_result(VALUES))
    drawn = figure.data[0]
    assert np.array(drawn.z).tolist() == [[0, 2], [4, -1], [0, 0]]
    assert (drawn.zmin, drawn.zmid, drawn.zmax) == (-4, 0, 4)
    assert list(drawn.y) == ["0", "1", "2"]
    assert list(drawn.x) == ["0 The", "1 ␣Eiffel"]
    assert figure.layout.yaxis.title.text == "model.layers.*.mlp"
    assert figure.layout.yaxis.autorange is True
    assert drawn.colorbar.title.text == "logit ␣Paris − ␣Berlin minus clean"
    assert "Patch at model.layers.*.mlp" in figure.layout.title.text
    assert "clean 1, source 5" in figure.layout.title.text


def test_values_and_recovery():
    kept = sweep_result(VALUES)
    assert np.array(plots.sweep(kept, show="value").data[0].z).tolist() == VALUES
    recovery = plots.sweep(kept, show="recovery").data[0]
    assert np.array(recovery.z).tolist() == [[0, 0.5], [1, -0.25], [0, 0]]
    assert recovery.colorbar.title.text == "normalised recovery"
    with pytest.raises(ExperimentError, match="no source prompt"):
        plots.sweep(sweep_result(VALUES, source_value=None), show="recovery")


def test_hovering_tells_the_whole_site():
    drawn = plots.sweep(sweep_result(VALUES)).data[0]
    assert [list(line) for line in drawn.customdata] == [[site, site] for site in SITES.labels]
    assert "%{customdata}" in drawn.hovertemplate


def test_cells_not_computed_differ_from_nan():
    done = [[True, True], [True, False], [False, False]]
    figure = plots.sweep(sweep_result([[1.0, NAN], [INF, NAN], [NAN, NAN]], done))
    assert marks(figure) == [["", "NaN"], ["+∞", "not computed"], ["not computed", "not computed"]]
    assert "1 cell NaN, 1 cell +∞, 3 cells not computed" in figure.layout.title.text
    assert len({layer.colorscale[0][1] for layer in figure.data[1:]}) == 3


def test_a_sweep_of_which_nothing_was_computed():
    figure = plots.sweep(sweep_result([[NAN, NAN]] * 3, [[False, False]] * 3))
    assert "6 cells not computed" in figure.layout.title.text
    assert (figure.data[0].zmin, figure.data[0].zmax) == (-1, 1)


def test_one_axis_is_one_column():
    figure = plots.sweep(sweep_result([1.0, 2.0, 0.0], axes=(SITES,)))
    assert np.array(figure.data[0].z).tolist() == [[0], [1], [-1]]


def test_three_axes_are_cut_by_name():
    values = np.arange(12.0).reshape(3, 2, 2)
    kept = sweep_result(values.tolist(), axes=(SITES, POSITIONS, axis("head", ("0", "1"))), baseline=0.0)
    assert np.array(plots.sweep(kept).data[0].z).tolist() == values[:, :, 0].tolist()
    second = plots.sweep(kept, at={"head": 1})
    assert np.array(second.data[0].z).tolist() == values[:, :, 1].tolist()
    assert "head 1" in second.layout.title.text
    turned = plots.sweep(kept, rows="head", columns="site", at={"position": -1})
    assert np.array(turned.data[0].z).tolist() == values[:, 1, :].T.tolist()
    assert list(turned.data[0].customdata[0]) == list(SITES.labels)


def test_an_axis_of_one_entry_is_not_preferred():
    one = axis("site", ("model.layers.0.mlp",))
    kept = sweep_result([[[1.0, 2.0], [3.0, 4.0]]], axes=(one, POSITIONS, axis("head", ("0", "1"))), baseline=0.0)
    figure = plots.sweep(kept)
    assert np.array(figure.data[0].z).tolist() == [[1, 2], [3, 4]]
    assert figure.data[0].customdata[1][1] == "model.layers.0.mlp"


def test_sites_that_differ_in_more_than_one_part_keep_their_names():
    names = ("h.0.attn", "h.1.mlp", "lm_head")
    figure = plots.sweep(sweep_result(VALUES, axes=(axis("site", names), POSITIONS)))
    assert list(figure.data[0].y) == list(names)
    assert figure.layout.yaxis.title.text == "site"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": "layer"}, "rows: there is no axis 'layer'; there are site, position"),
        ({"rows": "site", "columns": "site"}, "both are 'site'"),
        ({"at": {"site": 0}}, "'site' is drawn"),
        ({"show": "ratio"}, '"difference", "value" or "recovery"'),
    ],
)
def test_what_cannot_be_drawn_is_refused(options, message):
    with pytest.raises(PlotError, match=message):
        plots.sweep(sweep_result(VALUES), **options)


def test_an_entry_that_an_axis_does_not_have_is_refused():
    kept = sweep_result(np.zeros((3, 2, 2)).tolist(), axes=(SITES, POSITIONS, axis("head", ("0", "1"))))
    with pytest.raises(PlotError, match="'head' has 2 entries, there is no 2"):
        plots.sweep(kept, at={"head": 2})


def test_attribution_estimates_exact_changes_and_errors():
    estimates = [[0.5, 2.0], [4.0, -2.0], [0.0, 0.0]]
    kept = attribution_result(estimates, sweep_result(VALUES))
    assert np.array(plots.attribution(kept).data[0].z).tolist() == estimates
    assert np.array(plots.attribution(kept, show="exact").data[0].z).tolist() == [[0, 2], [4, -1], [0, 0]]
    errors = plots.attribution(kept, show="error")
    assert np.array(errors.data[0].z).tolist() == [[0.5, 0], [0, -1], [0, 0]]
    # Worked out with numpy.corrcoef over the six cells.
    expected = np.corrcoef([0.5, 2, 4, -2, 0, 0], [0, 2, 4, -1, 0, 0])[0, 1]
    assert f"correlation {expected:.3f}, largest error 1" in errors.layout.title.text


def test_attribution_without_the_exact_sweep():
    kept = attribution_result([[0.5, 2.0]] * 3, None)
    assert "not compared with exact patching" in plots.attribution(kept).layout.title.text
    with pytest.raises(ExperimentError, match="exact=True"):
        plots.attribution(kept, show="error")
    with pytest.raises(PlotError, match='"estimate", "exact" or "error"'):
        plots.attribution(kept, show="all")
