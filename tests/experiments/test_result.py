"""What a result holds, shows and stores."""

import json
import math
import subprocess
import sys

import pytest
import torch
from torch import nn

from nnsight_lab import NNsight
from nnsight_lab.demo import BRANDENBURG, EIFFEL
from nnsight_lab.experiments import (
    KL,
    Capture,
    ExperimentError,
    LogitDiff,
    Patch,
    Probability,
    Rank,
    Recipe,
    Result,
    Scale,
    ScopeError,
    StoredResultError,
    TopK,
    Zero,
    normalised_recovery,
    ranks,
)

SITE = "transformer.h.2.mlp.source.self_act_0"


@pytest.fixture(scope="module")
def result(atlas):
    steps = [Capture(SITE), Patch("transformer.h.3", positions=[2]), Zero("transformer.h.0.attn.source.self_q_attn_0")]
    recipe = Recipe(model="atlas", base=EIFFEL, source=BRANDENBURG, steps=steps, metric=LogitDiff(" Paris", " Berlin"))
    return recipe.run(atlas, full_logits=True)


def plain_logits(atlas, text):
    ids = atlas.tokenizer(text, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        return atlas._model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits


def test_clean_logits_are_the_model_s_own(atlas, result):
    expected = plain_logits(atlas, EIFFEL)
    assert torch.equal(result.full_clean_logits, expected)
    assert torch.equal(result.clean_logits, expected[:, -1])


def test_the_table_is_the_union_of_both_top_k_by_clean_rank(result):
    clean, edited = result.clean_logits[0], result.edited_logits[0]
    expected = set(clean.topk(10).indices.tolist()) | set(edited.topk(10).indices.tolist())
    assert {row.token_id for row in result.rows} == expected
    assert len(result.rows) > 10
    assert [row.clean_rank for row in result.rows] == sorted(row.clean_rank for row in result.rows)
    for row in result.rows:
        assert row.clean_logit == clean[row.token_id].item()
        assert row.edited_probability == pytest.approx(edited.double().softmax(-1)[row.token_id].item())
        assert row.edited_rank == int((edited > edited[row.token_id]).sum())
        assert row.logit_difference == pytest.approx(edited[row.token_id].item() - clean[row.token_id].item())


def test_kl_and_logit_difference_are_those_of_torch(atlas, result):
    p, q = (logits[0].double().log_softmax(-1) for logits in (result.clean_logits, result.edited_logits))
    assert result.kl == pytest.approx(torch.nn.functional.kl_div(q, p, log_target=True, reduction="sum").item())
    paris, berlin = (atlas.tokenizer(text)["input_ids"][0] for text in (" Paris", " Berlin"))
    assert result.metric.clean == pytest.approx((result.clean_logits[0, paris] - result.clean_logits[0, berlin]).item())
    assert result.logit_difference(paris, berlin) == (result.metric.clean, result.metric.edited)
    by_position = result.kl_by_position()
    assert by_position[-1] == pytest.approx(result.kl)
    assert by_position[:2] == [0.0, 0.0]  # before the patched position nothing changes in a causal model


@pytest.mark.parametrize("metric", [Probability(" Paris"), Rank(" Paris"), KL(), TopK(3)])
def test_metrics(atlas, metric):
    found = Recipe(base=EIFFEL, steps=[Scale("transformer.h.2.mlp", factor=-3.0)], metric=metric).run(atlas)
    paris = atlas.tokenizer(" Paris")["input_ids"][0]
    edited = found.edited_logits[0]
    match metric:
        case Probability():
            assert found.metric.edited == pytest.approx(edited.softmax(-1)[paris].item(), rel=1e-5)
        case Rank():
            assert found.metric.edited == (edited > edited[paris]).sum().item()
        case KL():
            assert (found.metric.clean, found.metric.edited) == (0.0, found.kl)
            assert found.kl > 0
        case TopK():
            assert found.metric is None
            assert 3 <= len(found.rows) <= 6


def test_an_answer_is_one_token(atlas):
    with pytest.raises(ScopeError, match="an answer is one token"):
        Recipe(base=EIFFEL, metric=Probability(" Paris Paris")).run(atlas)
    with pytest.raises(ScopeError, match="outside the vocabulary"):
        Recipe(base=EIFFEL, metric=Rank(10**7)).run(atlas)


def test_recovery_is_0_at_the_baseline_and_1_at_the_full_value():
    assert normalised_recovery(2.0, baseline=2.0, full=6.0) == 0.0
    assert normalised_recovery(6.0, baseline=2.0, full=6.0) == 1.0
    assert normalised_recovery(4.0, baseline=2.0, full=6.0) == 0.5
    assert math.isnan(normalised_recovery(4.0, baseline=2.0, full=2.0))


def test_equal_logits_rank_by_token_id():
    assert ranks(torch.zeros(1000)).tolist() == list(range(1000))
    assert ranks(torch.tensor([1.0, 3.0, 2.0, 3.0])).tolist() == [3, 0, 2, 1]


def test_reports_say_what_ran_with_shape_and_type(result):
    captured, patched, missing = result.sites
    assert (captured.outcome, captured.shape, captured.dtype, captured.device) == (
        "captured",
        (1, 8, 384),
        "float32",
        "cpu",
    )
    assert (patched.outcome, patched.calls) == ("changed", 1)
    assert (missing.outcome, missing.shape, missing.calls) == ("never ran", (), 0)


def test_the_text_shows_tokens_in_quotes_and_what_did_not_run(result):
    text = str(result)
    assert "' Paris'" in text
    assert "never ran" in text
    assert f"{SITE}: float32[1, 8, 384]" in text
    assert text == repr(result)


def test_the_html_is_escaped(atlas):
    html = Recipe(base="The <b>Eiffel</b> & more").run(atlas)._repr_html_()
    assert "<b>Eiffel</b>" not in html
    assert "&lt;" in html


def test_frames(result):
    frame = result.to_pandas()
    assert list(frame["token_id"]) == [row.token_id for row in result.rows]
    assert frame["logit_difference"].tolist() == (frame["edited_logit"] - frame["clean_logit"]).tolist()
    assert list(result.sites_to_pandas()["outcome"]) == ["captured", "changed", "never ran"]


def test_frames_without_pandas_say_what_to_install(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ExperimentError, match="pip install"):
        result.to_pandas()


def same_tensors(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


def test_a_result_loads_as_it_was_saved(result, tmp_path):
    result.save(tmp_path / "run")
    loaded = Result.load(tmp_path / "run")
    for name in (
        "recipe",
        "tokens",
        "source_tokens",
        "rows",
        "kl",
        "metric",
        "sites",
        "plan",
        "notes",
        "timing",
        "versions",
    ):
        assert getattr(loaded, name) == getattr(result, name), name
    for name in ("clean_logits", "edited_logits", "full_clean_logits", "full_edited_logits"):
        assert torch.equal(getattr(loaded, name), getattr(result, name)), name
    assert same_tensors(loaded.activations, result.activations)
    assert same_tensors(loaded.clean_activations, result.clean_activations)
    assert str(loaded) == str(result)
    assert loaded.code() == result.code()


def test_nothing_but_json_and_safetensors_is_stored(result, tmp_path):
    result.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["result.json", "tensors.safetensors"]
    json.loads((tmp_path / "result.json").read_text(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_numbers_that_json_does_not_have_survive(atlas, tmp_path):
    found = Recipe(base=EIFFEL, steps=[Scale("lm_head", factor=1e38)]).run(atlas)
    assert any(math.isinf(row.edited_logit) for row in found.rows)
    found.save(tmp_path)
    loaded = Result.load(tmp_path)
    assert repr(loaded.rows) == repr(found.rows)
    assert repr(loaded.kl) == repr(found.kl)


def test_plain_data_for_json(atlas, result):
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert (data["recipe"]["base"], data["metric"]["clean"]) == (EIFFEL, result.metric.clean)
    assert [row["token"] for row in data["rows"]] == [row.token for row in result.rows]
    assert data["activations"] == [SITE]
    infinite = Recipe(base=EIFFEL, steps=[Scale("lm_head", factor=1e38)]).run(atlas).to_dict()
    assert None in [row["edited_logit"] for row in infinite["rows"]]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda path: (path / "result.json").unlink(), "holds no result"),
        (lambda path: (path / "result.json").write_text("{"), "damaged"),
        (lambda path: (path / "result.json").write_text('{"version": 1}'), "damaged"),
        (lambda path: (path / "result.json").write_text('{"version": 99}'), "version 99"),
        (lambda path: (path / "tensors.safetensors").write_bytes(b"12345678"), "damaged"),
    ],
)
def test_a_folder_that_holds_no_result_is_refused(result, tmp_path, spoil, says):
    result.save(tmp_path)
    spoil(tmp_path)
    with pytest.raises(StoredResultError, match=says):
        Result.load(tmp_path)


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(6, 5)
        self.decode = nn.Linear(5, 6)

    def forward(self, pixels):
        return {"image": self.decode(self.encode(pixels).relu()), "code": 3}


def test_a_model_without_logits_is_compared_by_its_output():
    torch.manual_seed(1)
    module = Vision()
    pixels = torch.randn(2, 6)
    recipe = Recipe(steps=[Zero("encode", index="0:2"), Capture("", element=["image"])], metric=None)
    found = recipe.run(NNsight(module), base=pixels)
    code = module.encode(pixels)
    code[:, :2] = 0
    expected = module.decode(code.relu())
    torch.testing.assert_close(found.edited_logits, expected, rtol=0, atol=0)
    assert torch.equal(found.activations[":image"], found.edited_logits)
    assert (found.rows, found.kl, found.metric) == ((), None, None)
    with pytest.raises(ScopeError, match="not tokens"):
        recipe.with_steps(Zero("encode", positions=[0])).run(NNsight(module), base=pixels)


def test_a_classifier_s_table_needs_no_tokenizer():
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 5))
    found = Recipe(steps=[Zero("0", index=[0, 1])], metric=Rank(2)).run(NNsight(module), base=torch.randn(1, 4))
    assert {row.token for row in found.rows} == {"0", "1", "2", "3", "4"}


class Looping(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.Linear(3, 3)

    def forward(self, x):
        for _ in range(3):
            x = self.step(x)
        return x


@pytest.mark.parametrize("site", ["step", "source.self_step_0"])
@pytest.mark.parametrize("call", [None, 0, 2])
def test_one_call_of_several_or_all(site, call):
    torch.manual_seed(2)
    module = Looping()
    x = torch.randn(1, 3)
    recipe = Recipe(steps=[Scale(site, factor=2.0, call=call), Capture(site, call=call)], metric=None)
    found = recipe.run(NNsight(module), base=x)
    expected, kept = x, []
    for i in range(3):
        expected = module.step(expected) * (2.0 if call in (None, i) else 1.0)
        kept.append(expected)
    assert torch.equal(found.edited_logits, expected)
    wanted = {f"{site}[{i}]": kept[i] for i in range(3) if call in (None, i)}
    assert same_tensors(found.activations, wanted)
    assert found.sites[0].calls == 3


def test_the_package_s_experiments_import_neither_transformers_nor_pandas():
    script = "import sys, nnsight_lab.experiments; print([m for m in ('transformers', 'pandas', 'plotly') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
