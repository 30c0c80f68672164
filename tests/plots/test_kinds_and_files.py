"""`plot` finds the picture that belongs to a result; `save` writes it to a file."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import numpy as np
import pytest
import torch

from nnsight_lab import demo, plots
from nnsight_lab.experiments import Capture, Recipe, Zero, attribute, lens, sweep
from nnsight_lab.plots import PlotError
from tests.plots.data import attribution_result, lens_result, result, row, sweep_result

HIDDEN = torch.ones(1, 5, 3)


@pytest.mark.parametrize(
    ("kept", "options", "title"),
    [
        (result([row("a", 0.0, 1.0)]), {}, "Next token after"),
        (result(activations={"h.3": HIDDEN}), {"kind": "activation"}, "h.3"),
        (result(activations={"w": torch.ones(1, 2, 5, 5)}), {"kind": "attention"}, "w"),
        (HIDDEN, {}, "activation"),
        (np.ones((2, 2)), {"kind": "attention"}, "attention"),
        (sweep_result([[0.0, 0.0]] * 3), {}, "Patch at"),
        (attribution_result([[0.0, 0.0]] * 3, None), {}, "Attribution patching at"),
        (lens_result(), {}, "Logit lens"),
    ],
)
def test_plot_draws_what_it_is_given(kept, options, title):
    assert plots.plot(kept, **options).layout.title.text.startswith(title)


def test_options_reach_the_picture():
    assert plots.plot(sweep_result([[2.0, 0.0]] * 3), show="value", theme="dark").layout.paper_bgcolor == "#14161a"
    assert list(plots.plot(result([row("a", 0.0, 1.0), row("b", 0.0, 2.0)]), k=1).data[0].x) == [1.0]


def test_what_has_no_picture_is_refused():
    with pytest.raises(PlotError, match="no picture of a str"):
        plots.plot("text")
    with pytest.raises(PlotError, match="a SweepResult can be drawn as sweep, not as 'lens'"):
        plots.plot(sweep_result([[0.0, 0.0]] * 3), kind="lens")


def test_pictures_of_a_real_model_hold_its_numbers():
    model = demo.load()
    base, source = demo.EIFFEL, demo.BRANDENBURG
    site = "transformer.h.11.mlp.source.self_act_0"
    kept = Recipe(base=base, steps=(Capture("transformer.h.5"), Zero(site))).run(model)
    streams = []
    hook = model._model.transformer.h[5].register_forward_hook(lambda *args: streams.append(args[2]))
    with torch.no_grad():
        clean = model._model(**model.tokenizer(base, return_tensors="pt")).logits[0, -1]
    hook.remove()
    drawn = np.array(plots.plot(kept, kind="activation").data[0].z)
    assert np.allclose(drawn, streams[0][0].double().numpy(), atol=1e-5)
    assert [r.clean_logit for r in kept.rows] == pytest.approx(
        clean[[r.token_id for r in kept.rows]].tolist(), abs=1e-3
    )
    options = {"base": base, "source": source, "metric": (" Berlin", " Paris")}
    from nnsight_lab.experiments import Patch

    grid = sweep(model, Patch("transformer.h.*"), progress=False, **options)
    assert np.array(plots.plot(grid).data[0].z).shape == (12, 8)
    estimate = attribute(model, "transformer.h.*.mlp", exact=False, **options)
    assert np.array(plots.plot(estimate).data[0].z).shape == (12, 8)
    assert list(plots.plot(lens(model, base)).data[0].y) == ["embedding", *map(str, range(12))]


def test_html_holds_everything(tmp_path):
    path = plots.save(plots.activation(HIDDEN), tmp_path / "figure.html")
    page = path.read_text(encoding="utf-8")
    assert page.count("<html") >= 1
    assert "Plotly.newPlot" in page
    assert "https://cdn." not in page.split("Plotly.newPlot")[-1]
    assert '<script src="http' not in page


def test_an_unknown_ending_is_refused(tmp_path):
    with pytest.raises(PlotError, match=r"figure\.bmp: the ending says the format; it is one of \.html, \.png"):
        plots.save(plots.activation(HIDDEN), tmp_path / "figure.bmp")


def test_without_kaleido_the_message_says_what_to_install(tmp_path, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "kaleido" else real(name, *rest)
    )
    with pytest.raises(
        PlotError, match=r"PNG needs kaleido: pip install 'nnsight-lab\[plots\]'\. Or save figure\.html"
    ):
        plots.save(plots.activation(HIDDEN), tmp_path / "figure.png")
    assert not (tmp_path / "figure.png").exists()


def test_without_a_browser_the_message_says_what_to_install(tmp_path):
    class Figure:
        def to_image(self, **options):
            class ChromeNotFoundError(Exception):
                pass

            raise RuntimeError("cannot draw") from ChromeNotFoundError()

    if importlib.util.find_spec("kaleido") is None:
        pytest.skip("kaleido is not installed")
    with pytest.raises(PlotError, match=r"SVG needs Chrome or Chromium.*plotly_get_chrome"):
        plots.save(Figure(), tmp_path / "figure.svg")


def test_other_errors_of_drawing_are_passed_on(tmp_path):
    class Figure:
        def to_image(self, **options):
            raise RuntimeError("out of paper")

    if importlib.util.find_spec("kaleido") is None:
        pytest.skip("kaleido is not installed")
    with pytest.raises(RuntimeError, match="out of paper"):
        plots.save(Figure(), tmp_path / "figure.svg")


def test_a_picture_is_drawn_where_kaleido_and_a_browser_are(tmp_path):
    try:
        path = plots.save(plots.activation(HIDDEN, tokens=["a", "b", "c", "d", "e"]), tmp_path / "figure.svg")
    except PlotError as error:
        pytest.skip(str(error))
    assert "3 d" in path.read_text(encoding="utf-8")


def test_plotly_is_loaded_when_the_first_figure_is_made():
    script = (
        "import sys, torch\nfrom nnsight_lab import plots\nassert 'plotly' not in sys.modules\n"
        "plots.activation(torch.ones(2, 2))\nassert 'plotly' in sys.modules\nprint('fine')"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "fine\n"
