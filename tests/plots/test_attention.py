"""Attention patterns: a square for each head, on one scale."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nnsight_lab import plots
from nnsight_lab.plots import PlotError
from tests.plots.data import NAN, SHOWN, TOKENS, result

WEIGHTS = torch.arange(3 * 5 * 5, dtype=torch.float32).reshape(3, 5, 5) / 75


def test_every_head_is_a_square_of_its_weights():
    figure = plots.attention(WEIGHTS, TOKENS)
    assert len(figure.data) == 3
    for head, trace in enumerate(figure.data):
        assert np.array_equal(np.array(trace.z), WEIGHTS[head].double().numpy())
        assert list(trace.x) == list(trace.y) == SHOWN
        assert (trace.zmin, trace.zmax) == (0, 1)
        assert f"head {head}" in trace.hovertemplate
    assert [a.text for a in figure.layout.annotations] == ["head 0", "head 1", "head 2"]
    assert [trace.showscale for trace in figure.data] == [True, False, False]
    assert figure.layout.yaxis.autorange == "reversed"
    assert figure.layout.xaxis.title.text == "key"
    assert figure.layout.yaxis.title.text == "query"


def test_heads_are_chosen_and_ordered():
    figure = plots.attention(torch.stack([WEIGHTS, WEIGHTS / 2]), TOKENS, heads=[2, 0], batch=1)
    assert [trace.z[0][0] for trace in figure.data] == pytest.approx([25 / 75, 0])
    assert [a.text for a in figure.layout.annotations] == ["head 2", "head 0"]


def test_a_captured_pattern_of_a_result():
    figure = plots.attention(result(activations={"h.0.attn": WEIGHTS[None]}))
    assert "h.0.attn" in figure.layout.title.text
    assert list(figure.data[1].x) == SHOWN


def test_differences_of_patterns_are_centred_on_zero():
    drawn = plots.attention(torch.tensor([[0.25, -0.5], [0.0, 0.125]])).data[0]
    assert (drawn.zmin, drawn.zmid, drawn.zmax) == (-0.5, 0, 0.5)


def test_unnormalised_scores_are_scaled_to_the_largest_over_all_heads():
    figure = plots.attention(torch.tensor([[[1.0, 2.0]], [[8.0, 4.0]]]))
    assert {(trace.zmin, trace.zmax) for trace in figure.data} == {(0, 8)}


def test_nan_is_marked_and_counted_over_heads():
    weights = WEIGHTS.clone()
    weights[0, 1, 2] = weights[2, 0, 0] = NAN
    figure = plots.attention(weights)
    marked = [trace for trace in figure.data if trace.name == "NaN"]
    assert [np.argwhere(np.array(trace.z) == 1).tolist() for trace in marked] == [[[1, 2]], [[0, 0]]]
    assert "2 cells NaN" in figure.layout.title.text


def test_keys_may_be_other_tokens():
    figure = plots.attention(torch.rand(2, 3), ["a", "b"], key_tokens=["x", "y", " z"])
    assert list(figure.data[0].y) == ["0 a", "1 b"]
    assert list(figure.data[0].x) == ["0 x", "1 y", "2 ␣z"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plots.attention(torch.rand(4)), r"\[query, key\].*not \[4\]"),
        (lambda: plots.attention(torch.rand(2, 3, 4, 4), batch=2), "batch: there is no row 2 among 2"),
        (lambda: plots.attention(WEIGHTS, heads=[3]), "heads: there is no head 3 among 3"),
        (lambda: plots.attention(WEIGHTS, heads=[]), "heads: an empty list"),
        (lambda: plots.attention(WEIGHTS, ["a", "b"]), "2 labels for 5 entries"),
        (lambda: plots.attention(torch.zeros(3, 0, 0)), "nothing to draw"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, message):
    with pytest.raises(PlotError, match=message):
        call()
