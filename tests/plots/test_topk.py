"""Bars of logit differences."""

from __future__ import annotations

import pytest

from nnsight_lab import plots
from nnsight_lab.plots import PlotError
from tests.plots.data import INF, NAN, result, row

ROWS = (row(" Paris", 3.0, 1.0, (0, 2)), row(" <b>", 2.0, 2.5, (1, 0)), row("\t", 1.0, 1.0, (2, 1)))


def test_bars_are_edited_minus_clean_in_the_order_of_clean_ranks():
    figure = plots.topk(result(ROWS))
    bar = figure.data[0]
    assert list(bar.x) == [-2.0, 0.5, 0.0]
    assert [label.split("<span")[0].strip() for label in bar.y] == ["␣Paris", "␣&lt;b&gt;", "\\t"]
    assert figure.layout.yaxis.autorange == "reversed"
    low, high = figure.layout.xaxis.range
    assert low == -high
    assert high > 2


def test_what_rose_and_what_fell_differ_in_colour():
    colors = plots.topk(result(ROWS)).data[0].marker.color
    assert int(colors[0][5:7], 16) > int(colors[0][1:3], 16)  # fell: more blue than red
    assert int(colors[1][1:3], 16) > int(colors[1][5:7], 16)  # rose: more red than blue


def test_differences_and_moves_in_rank_stand_at_the_bars():
    figure = plots.topk(result(ROWS))
    texts = [a.text for a in figure.layout.annotations]
    assert texts[0].startswith("−2.000")
    assert "#0 → #2" in texts[0]
    assert texts[1].startswith("+0.500")
    assert "#1 → #0" in texts[1]
    assert [a.xanchor for a in figure.layout.annotations] == ["right", "left", "left"]


def test_hovering_tells_everything_before_and_after():
    hover = plots.topk(result(ROWS)).data[0].customdata[0]
    for part in ("␣Paris", "id 7", "logit 3 → 1", "difference -2", "probability 0.5 → 0.25", "rank 0 → 2"):
        assert part in hover


def test_differences_that_are_no_numbers_have_a_sign_and_no_bar():
    figure = plots.topk(result((row("a", 1.0, NAN), row("b", 1.0, INF), row("c", 1.0, -INF), row("d", 0.0, 4.0))))
    assert list(figure.data[0].x) == [None, None, None, 4.0]
    assert [a.text.split(" ")[0] for a in figure.layout.annotations] == ["NaN", "+∞", "−∞", "+4.000"]
    assert "3 of 4 differences are no finite numbers" in figure.layout.title.text


def test_the_prompt_is_the_title_and_can_be_replaced():
    assert "Next token after 'The Eiffel\\n&lt;s&gt;&#36;x&#36;'" in plots.topk(result(ROWS)).layout.title.text
    assert plots.topk(result(ROWS), title="Zeroed").layout.title.text.startswith("Zeroed")


def test_the_first_k_rows():
    assert list(plots.topk(result(ROWS), k=1).data[0].x) == [-2.0]
    with pytest.raises(PlotError, match="k: at least 1"):
        plots.topk(result(ROWS), k=0)


def test_a_result_without_a_table_is_refused():
    with pytest.raises(PlotError, match="no top-k table"):
        plots.topk(result())
