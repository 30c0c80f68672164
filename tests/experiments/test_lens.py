"""The logit lens, against norm and unembedding applied by hand."""

import pytest
import torch

from nnsight_lab import NNsight, demo
from nnsight_lab.experiments import ExperimentError, StoredResultError, UnknownSiteError
from nnsight_lab.experiments.errors import ScopeError
from nnsight_lab.experiments.lenses import lens
from nnsight_lab.experiments.lensresult import LensResult

from .sweep_models import BASE, outputs_of, tiny

IDS = torch.tensor([BASE])


@pytest.fixture(scope="module")
def llama():
    return tiny("llama")


@pytest.mark.parametrize("name", ["gpt2", "llama", "gemma2", "gemma3", "qwen2_moe", "mamba", "bloom", "bert"])
def test_the_last_layer_is_the_models_answer_bit_for_bit(name):
    model = tiny(name)
    result = lens(model, BASE, token=7)
    with torch.no_grad():
        logits = model._model(input_ids=IDS).logits[0].double()
    assert torch.equal(result.final_logits, logits)
    assert torch.equal(result.logit[-1], logits[:, 7])
    assert result.kl[-1].abs().max() == 0
    assert result.top[-1].tolist() == logits.argmax(-1).tolist()
    assert result.top.shape == (5, 9)


@pytest.mark.parametrize(("stream", "part"), [("residual", None), ("attention", "self_attn"), ("mlp", "mlp")])
def test_each_layer_is_its_value_through_norm_and_unembedding(llama, stream, part):
    module = llama._model
    result = lens(llama, BASE, stream=stream, token=7)
    with torch.no_grad():
        final = module(IDS).logits[0].double().log_softmax(-1)
        for layer in range(4):
            site = f"model.layers.{layer}" + (f".{part}" if part else "")
            row = result.sites.index(site)
            logits = module.lm_head(module.model.norm(outputs_of(module, site, BASE)))[0].double()
            torch.testing.assert_close(result.logit[row], logits[:, 7], atol=1e-5, rtol=0)
            assert result.top[row].tolist() == logits.argmax(-1).tolist()
            best = logits.softmax(-1).max(-1).values
            torch.testing.assert_close(result.probability[row], best, atol=1e-6, rtol=0)
            kl = torch.nn.functional.kl_div(logits.log_softmax(-1), final, reduction="none", log_target=True).sum(-1)
            torch.testing.assert_close(result.kl[row], kl, atol=1e-6, rtol=0)
            assert result.rank[row].tolist() == (logits > logits[:, 7:8]).sum(-1).tolist()


def test_capped_logits_stay_capped():
    model = tiny("gemma2")
    model._model.config.final_logit_softcapping = 2.0
    assert float(lens(model, BASE, token=7).logit.abs().max()) < 2.0


def test_modules_can_be_named(llama):
    by_name = lens(llama, BASE, norm="model.norm", head="lm_head", token=7)
    torch.testing.assert_close(by_name.logit, lens(llama, BASE, token=7).logit)
    by_address = lens(llama, BASE, norm="model.model.norm", head="model.lm_head", token=7)
    assert torch.equal(by_address.logit, by_name.logit)
    module = llama._model
    bare = lens(llama, BASE, head="lm_head", token=7)
    with torch.no_grad():
        expected = module.lm_head(outputs_of(module, "model.layers.1", BASE))[0, :, 7].double()
    torch.testing.assert_close(bare.logit[2], expected)


def test_what_cannot_be_looked_through_is_refused(llama):
    with pytest.raises(ExperimentError, match="no layers to look through"):
        lens(tiny("albert"), BASE)
    with pytest.raises(UnknownSiteError, match=r"head: .* has no submodule 'lm_haed'. Did you mean 'lm_head'"):
        lens(llama, BASE, head="lm_haed")
    with pytest.raises(UnknownSiteError, match=r"norm: 'model.source.self_norm_0' is an operation"):
        lens(llama, BASE, norm="model.source.self_norm_0", head="lm_head")
    with pytest.raises(ExperimentError, match="give head as well"):
        lens(llama, BASE, norm="model.norm")
    with pytest.raises(ScopeError, match="takes the residual stream's"):
        lens(llama, BASE, sites="model.layers.*.mlp.up_proj")
    with pytest.raises(ExperimentError, match="stream"):
        lens(llama, BASE, stream="soup")
    with pytest.raises(ExperimentError):
        lens(NNsight(torch.nn.Embedding(50, 4)), BASE)


def test_tokens_are_words_and_tables_have_a_row_for_each_cell(tmp_path):
    model = demo.load()
    result = lens(model, "The Eiffel Tower is in the city of", token=" Paris")
    assert result.top_tokens[-1][-1] == " Paris"
    assert result.rank[-1, -1] == 0
    frame = result.to_pandas()
    assert len(frame) == result.top.numel()
    assert frame.iloc[-1].top == " Paris"
    assert "' Paris'" in str(result)
    result.save(tmp_path / "lens")
    loaded = LensResult.load(tmp_path / "lens")
    assert (loaded.sites, loaded.top_tokens, loaded.token) == (result.sites, result.top_tokens, " Paris")
    for name in ("top", "probability", "kl", "logit", "rank", "final_logits"):
        assert torch.equal(getattr(loaded, name), getattr(result, name))
    with pytest.raises(StoredResultError, match="no lens"):
        LensResult.load(tmp_path)
