"""Heatmaps of activations: which numbers, under which labels, in which colours."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nnsight_lab import plots
from nnsight_lab.plots import PlotError
from tests.plots.data import INF, NAN, SHOWN, marks, result

HIDDEN = torch.arange(30, dtype=torch.float32).reshape(1, 5, 6) - 10


def numbers(figure, layer=0):
    return np.array(figure.data[layer].z, dtype=float)


def notes(figure):
    return figure.layout.title.text


def test_one_captured_activation_is_drawn_positions_downwards():
    figure = plots.activation(result(activations={"h.0": HIDDEN}))
    assert numbers(figure).tolist() == [[float(6 * p + d - 10) for d in range(6)] for p in range(5)]
    assert list(figure.data[0].y) == SHOWN
    assert list(figure.data[0].x) == [0, 1, 2, 3, 4, 5]
    assert figure.layout.yaxis.autorange == "reversed"
    assert figure.layout.yaxis.title.text == "position"
    assert figure.layout.xaxis.title.text == "axis 2"
    assert "h.0" in notes(figure)
    assert "shape [1, 5, 6]" in notes(figure)


def test_runs_and_their_difference():
    kept = result(activations={"a": HIDDEN * 2, "b": HIDDEN}, clean_activations={"a": HIDDEN})
    assert numbers(plots.activation(kept, "a"))[0].tolist() == [-20, -18, -16, -14, -12, -10]
    assert numbers(plots.activation(kept, "a", run="clean"))[0].tolist() == [-10, -9, -8, -7, -6, -5]
    difference = plots.activation(kept, "a", run="difference")
    assert numbers(difference)[4].tolist() == [14, 15, 16, 17, 18, 19]
    assert difference.data[0].colorbar.title.text == "difference"


def test_other_axes_are_chosen_by_entry():
    keys = torch.arange(2 * 3 * 5 * 4, dtype=torch.float32).reshape(2, 3, 5, 4)
    kept = result(activations={"k": keys})
    figure = plots.activation(kept, at={0: 1, 1: -1})
    assert numbers(figure)[0].tolist() == [100, 101, 102, 103]
    assert "axis 0 = 1, axis 1 = 2" in notes(figure)
    heads = plots.activation(kept, rows=1, columns=2, at={3: 2})
    assert numbers(heads).tolist() == [[float(20 * h + 4 * p + 2) for p in range(5)] for h in range(3)]
    assert list(heads.data[0].x) == SHOWN
    turned = plots.activation(kept, rows=3, columns=2)
    assert numbers(turned).tolist() == [[float(4 * p + d) for p in range(5)] for d in range(4)]


def test_both_axes_of_attention_weights_are_positions():
    weights = torch.rand(1, 3, 5, 5)
    kept = result(activations={"w": weights})
    with pytest.raises(PlotError, match=r"for attention weights, positions=\(2, 3\)"):
        plots.activation(kept)
    figure = plots.activation(kept, at={1: 2}, positions=(2, 3))
    assert list(figure.data[0].x) == list(figure.data[0].y) == SHOWN
    assert np.array_equal(numbers(figure), weights[0, 2].double().numpy())


def test_an_axis_of_the_prompts_length_by_chance_must_be_told_apart():
    square = result(activations={"s": torch.rand(1, 5, 5)})
    with pytest.raises(PlotError, match=r"axes \[1, 2\].*positions=1"):
        plots.activation(square)
    figure = plots.activation(square, positions=2)
    assert list(figure.data[0].y) == SHOWN
    assert list(figure.data[0].x) == [0, 1, 2, 3, 4]
    assert np.array_equal(numbers(figure), square.activations["s"][0].T.double().numpy())


def test_the_scale_is_centred_on_zero_whatever_the_values():
    for values, end in ((torch.tensor([[1.0, 4.0]]), 4.0), (torch.tensor([[-3.0, -1.0]]), 3.0), (torch.zeros(2, 2), 1)):
        drawn = plots.activation(values).data[0]
        assert (drawn.zmin, drawn.zmid, drawn.zmax) == (-end, 0, end)


@given(st.lists(st.floats(-1e6, 1e6) | st.sampled_from([NAN, INF, -INF]), min_size=1, max_size=40))
def test_scale_and_marked_cells_for_any_numbers(values):
    tensor = torch.tensor([values], dtype=torch.float64)
    figure = plots.activation(tensor, trim=None)
    finite = [abs(v) for v in values if abs(v) < INF]
    end = max(finite, default=0) or 1
    assert (figure.data[0].zmin, figure.data[0].zmax) == (-end, end)
    assert marks(figure) == [["NaN" if v != v else {INF: "+∞", -INF: "−∞"}.get(v, "") for v in values]]


def test_the_middle_colour_is_the_pages_and_the_ends_are_blue_and_orange():
    for theme, page in (("light", "#ffffff"), ("dark", "#14161a")):
        figure = plots.activation(HIDDEN, theme=theme)
        scale = figure.data[0].colorscale
        assert [place for place, _ in scale] == pytest.approx(np.linspace(0, 1, len(scale)))
        assert scale[len(scale) // 2][1] == page == figure.layout.paper_bgcolor
        for (_, color), more in ((scale[1], "blue"), (scale[-2], "red")):
            red, blue = int(color[1:3], 16), int(color[5:7], 16)
            assert (blue > red) == (more == "blue")


def test_bad_cells_are_marked_each_in_its_colour_and_counted():
    values = torch.tensor([[1.0, NAN, INF], [-INF, NAN, -2.0]])
    figure = plots.activation(values)
    assert np.array_equal(numbers(figure), [[1, NAN, NAN], [NAN, NAN, -2]], equal_nan=True)
    assert figure.data[0].zmax == 2
    assert marks(figure) == [["", "NaN", "+∞"], ["−∞", "NaN", ""]]
    colors = {layer.name: {color for _, color in layer.colorscale} for layer in figure.data[1:]}
    assert [len(used) for used in colors.values()] == [1, 1, 1]
    assert len(set.union(*colors.values())) == 3
    assert not set.union(*colors.values()) & {color for _, color in figure.data[0].colorscale}
    for layer in figure.data[1:]:
        assert layer.name in layer.hovertemplate
        assert layer.texttemplate == "%{text}"
        assert np.array_equal(np.array(layer.text) != "", np.array(layer.z) == 1)
        assert set(np.unique(layer.text)) == {"", layer.name}
    assert "2 cells NaN, 1 cell +∞, 1 cell −∞" in notes(figure)


def test_without_bad_cells_there_is_one_layer_and_no_note():
    figure = plots.activation(HIDDEN)
    assert len(figure.data) == 1
    assert "NaN" not in notes(figure)


def test_outliers_are_trimmed_in_colour_only_and_the_bar_says_so():
    values = torch.ones(1000)
    values[:500] = -1
    values[3] = 100.0
    figure = plots.activation(values[None], trim=0.99)
    drawn = figure.data[0]
    assert (drawn.zmin, drawn.zmax) == (-1, 1)
    assert drawn.z[0][3] == 100
    assert list(drawn.colorbar.ticktext) == ["−1", "−0.5", "0", "0.5", "≥ 1"]
    assert "colours end at 1: 1 cell beyond, up to 100" in notes(figure)
    whole = plots.activation(values[None], trim=None)
    assert whole.data[0].zmax == 100
    assert list(whole.data[0].colorbar.ticktext) == ["−100", "−50", "0", "50", "100"]


def test_a_largest_value_near_the_others_is_not_trimmed():
    values = torch.linspace(-1, 1, 1001)[None]
    assert plots.activation(values, trim=0.9).data[0].zmax == 1


def test_a_limit_overrides_the_values():
    drawn = plots.activation(torch.tensor([[-5.0, 1.0]]), limit=2).data[0]
    assert (drawn.zmin, drawn.zmax) == (-2, 2)
    assert drawn.colorbar.ticktext[0] == "≤ −2"
    assert drawn.colorbar.ticktext[-1] == "2"


def test_hovering_tells_nine_digits_and_both_names():
    template = plots.activation(HIDDEN, tokens=["a"] * 5).data[0].hovertemplate
    assert "position %{y}" in template
    assert "axis 2 %{x}" in template
    assert "%{z:.9~g}" in template


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.bool])
def test_values_of_every_dtype_are_exact(dtype):
    values = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype) * (1 if dtype in (torch.bool, torch.int64) else 0.333)
    assert np.array_equal(numbers(plots.activation(values)), values.double().numpy())


def test_what_single_precision_holds_is_sent_in_single_precision():
    assert np.array(plots.activation(HIDDEN).data[0].z).dtype == np.float32
    assert np.array(plots.activation(HIDDEN.double() / 3).data[0].z).dtype == np.float64
    assert (
        np.array(plots.activation(torch.tensor([[1e300, NAN]], dtype=torch.float64)).data[0].z).tolist()[0][0] == 1e300
    )


def test_a_long_title_goes_on_in_further_lines():
    site = "transformer.h.3.attn.source.attention_interface_0.source.torch_nn_functional_scaled_dot_product_attention_0"
    figure = plots.activation(result(activations={site: HIDDEN}))
    lines = figure.layout.title.text.split("<br><span")[0].split("<br>")
    assert "".join(lines) == site
    assert len(lines) == 2
    short = plots.activation(result(activations={"h.3": HIDDEN}))
    assert figure.layout.height - short.layout.height == figure.layout.margin.t - short.layout.margin.t > 0


def test_signs_are_not_written_into_cells_too_small_for_them():
    values = torch.zeros(50, 50)
    values[7, 8] = NAN
    figure = plots.activation(values)
    assert figure.data[1].texttemplate is None
    assert marks(figure)[7][8] == "NaN"


def test_one_axis_one_column_and_arrays():
    assert numbers(plots.activation(torch.tensor([1.0, 2.0]))).tolist() == [[1, 2]]
    assert numbers(plots.activation(np.array([[1.0], [2.0]]))).tolist() == [[1], [2]]
    assert numbers(plots.activation(torch.tensor([[1.0]], requires_grad=True))).tolist() == [[1]]


def test_a_long_axis_has_no_label_at_every_entry():
    figure = plots.activation(torch.zeros(100, 4), tokens=[" a"] * 100)
    assert figure.layout.yaxis.nticks == 40
    assert len(set(figure.data[0].y)) == 100


def test_the_theme_follows_plotlys_default(monkeypatch):
    import plotly.io

    monkeypatch.setattr(plotly.io.templates, "default", "plotly_dark")
    assert plots.activation(HIDDEN).layout.paper_bgcolor == "#14161a"
    monkeypatch.setattr(plotly.io.templates, "default", "plotly")
    assert plots.activation(HIDDEN).layout.paper_bgcolor == "#ffffff"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plots.activation(result()), "holds no activations: add a Capture"),
        (lambda: plots.activation(result(activations={"a": HIDDEN, "b": HIDDEN})), "say which: a, b"),
        (lambda: plots.activation(result(activations={"a": HIDDEN}), "c"), "'c' was not captured; there are: a"),
        (lambda: plots.activation(result(activations={"a": HIDDEN}), run="both"), '"edited", "clean" or "difference"'),
        (lambda: plots.activation(result(activations={"a": HIDDEN}), run="clean"), "clean run has no activation"),
        (lambda: plots.activation(torch.tensor(1.0)), "single number"),
        (lambda: plots.activation(torch.zeros(0, 3)), r"empty: its shape is \[0, 3\]"),
        (lambda: plots.activation(torch.zeros(2, 3), rows=2), "rows: there is no axis 2; the tensor has 2"),
        (lambda: plots.activation(torch.zeros(2, 3), rows=0, columns=-2), "both are axis 0"),
        (lambda: plots.activation(torch.zeros(2, 3), at={0: 1}), "axis 0 is drawn"),
        (lambda: plots.activation(torch.zeros(2, 3, 4), at={0: 2}), "axis 0 has 2 entries, there is no 2"),
        (lambda: plots.activation(torch.zeros(2, 3), tokens=["a"], positions=0), "2 entries, but there are 1 tokens"),
        (lambda: plots.activation(torch.zeros(2, 3), trim=0), "trim: a share"),
        (lambda: plots.activation(torch.zeros(2, 3), limit=-1), "limit: a positive number"),
        (lambda: plots.activation(torch.zeros(2, dtype=torch.complex64)), "Complex numbers"),
        (lambda: plots.activation("text"), "tensor or array of numbers is needed, not str"),
        (lambda: plots.activation(torch.zeros(2, 3), theme="blue"), 'theme: "light" or "dark", not \'blue\''),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, message):
    with pytest.raises(PlotError, match=message):
        call()
