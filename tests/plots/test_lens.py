"""Grids of the logit lens."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nnsight_lab import plots
from nnsight_lab.plots import PlotError
from tests.plots.data import NAN, lens_result, marks


def test_each_cell_says_the_token_on_top_and_its_probability():
    figure = plots.lens(lens_result())
    drawn = figure.data[0]
    assert np.array(drawn.z).tolist() == [[0.25, 0.5], [0.75, 1.0]]
    assert (drawn.zmin, drawn.zmax) == (0, 1)
    assert [list(line) for line in drawn.text] == [["␣Paris", "&lt;b&gt;"], ["␣in", "␣Constan…"]]
    assert drawn.texttemplate == "%{text}"
    assert list(drawn.y) == ["embedding", "model.layers.0"]
    assert list(drawn.x) == ["0 The", "1 ␣Eiffel"]
    assert "model.layers.0<br>token on top: ␣Constantinople" in drawn.customdata[1][1]
    assert figure.layout.yaxis.autorange is True


def test_layers_are_numbered_beside_the_embedding():
    kept = lens_result()
    three = type(kept)(**{**vars(kept), "sites": ("embedding", "model.layers.0", "model.layers.1")} | {
        "top": torch.zeros(3, 2), "top_tokens": (("a", "b"),) * 3, "probability": torch.zeros(3, 2)
    })  # fmt: skip
    figure = plots.lens(three)
    assert list(figure.data[0].y) == ["embedding", "0", "1"]
    assert figure.layout.yaxis.title.text == "model.layers.*"


def test_a_chosen_tokens_logit_is_centred_on_zero_and_its_rank_is_not():
    kept = lens_result(
        token=" Paris", token_id=3, logit=torch.tensor([[-2.0, 1.0], [0.0, 0.5]]), rank=torch.tensor([[9, 3], [1, 0]])
    )
    logit = plots.lens(kept, show="logit").data[0]
    assert (logit.zmin, logit.zmid, logit.zmax) == (-2, 0, 2)
    assert logit.colorbar.title.text == "logit of ␣Paris"
    rank = plots.lens(kept, show="rank").data[0]
    assert np.array(rank.z).tolist() == [[9, 3], [1, 0]]
    assert (rank.zmin, rank.zmax) == (0, 9)


def test_divergence_and_nan():
    figure = plots.lens(lens_result(kl=torch.tensor([[NAN, 2.0], [1.0, 0.0]])), show="kl")
    assert (figure.data[0].zmin, figure.data[0].zmax) == (0, 2)
    assert marks(figure) == [["NaN", ""], ["", ""]]
    assert [list(line) for line in figure.data[0].text] == [["", "&lt;b&gt;"], ["␣in", "␣Constan…"]]
    assert "1 cell NaN" in figure.layout.title.text
    assert "KL from the final answer (nats)" in figure.layout.title.text


def test_a_lens_without_a_chosen_token_has_no_logits():
    with pytest.raises(PlotError, match="'logit' is of a chosen token"):
        plots.lens(lens_result(), show="logit")
    with pytest.raises(PlotError, match="one of probability, kl, logit, rank"):
        plots.lens(lens_result(), show="entropy")
