"""Attribution patching, against gradients by hand and against exact patching."""

import pytest
import torch

from nnsight_lab.experiments import KL, ExperimentError, LogitDiff, Probability, RecipeError
from nnsight_lab.experiments.attribution import attribute

from .sweep_models import BASE, SOURCE, outputs_of, tiny

METRIC = LogitDiff(7, 9)


@pytest.fixture(scope="module")
def llama():
    return tiny("llama")


@pytest.mark.parametrize("part", ["", ".self_attn", ".mlp"])
@pytest.mark.parametrize("frozen", [False, True])
def test_the_estimate_is_difference_times_gradient(part, frozen):
    model = tiny("llama")
    module = model._model
    if frozen:
        module.requires_grad_(False)
    result = attribute(model, f"model.layers.*{part}", base=BASE, source=SOURCE, metric=METRIC, exact=False)
    assert result.estimates.shape == (4, 9)
    module.requires_grad_(True)
    for layer in range(4):
        site = f"model.layers.{layer}{part}"
        kept = []

        def keep(_module, _args, output, kept=kept):
            tensor = output[0] if isinstance(output, tuple) else output
            tensor.retain_grad()
            kept.append(tensor)

        handle = module.get_submodule(site).register_forward_hook(keep)
        logits = module(torch.tensor([BASE])).logits[0, -1]
        handle.remove()
        (logits[7] - logits[9]).backward()
        by_hand = ((outputs_of(module, site, SOURCE) - kept[0]) * kept[0].grad)[0].sum(-1).double()
        torch.testing.assert_close(result.estimates[layer], by_hand.detach(), atol=1e-4, rtol=1e-3)
        module.zero_grad()


def test_it_is_exact_where_the_rest_is_linear(llama):
    """The unembedding is linear: patching what the final norm puts out is estimated without error."""
    result = attribute(llama, "model.norm", base=BASE, source=SOURCE, metric=METRIC, progress=False)
    assert float(result.exact.differences.abs().max()) > 0.1
    assert result.max_error < 1e-4
    assert result.correlation == pytest.approx(1.0, abs=1e-6)


def test_the_error_against_exact_patching_is_reported(llama):
    result = attribute(
        llama, "model.layers.*.mlp", base=BASE, source=SOURCE, metric=METRIC, positions=(1, 2, 5), progress=False
    )
    exact = result.exact.values - result.exact.baseline
    torch.testing.assert_close(result.errors, result.estimates - exact)
    assert result.max_error == float((result.estimates - exact).abs().max())
    left, right = result.estimates.flatten(), exact.flatten()
    left, right = left - left.mean(), right - right.mean()
    assert result.correlation == pytest.approx(float((left @ right) / (left.norm() * right.norm())))
    assert "correlation" in str(result)
    assert list(result.to_pandas().columns) == ["site", "position", "estimate", "exact", "error"]


def test_operations_heads_and_probabilities(llama):
    site = "model.layers.*.self_attn.source.attention_interface_0"
    whole = attribute(llama, site, base=BASE, source=SOURCE, metric=Probability(7), exact=False)
    heads = attribute(llama, site, base=BASE, source=SOURCE, metric=Probability(7), heads="each", exact=False)
    # Entries add up: the heads' estimates make the whole value's.
    torch.testing.assert_close(heads.estimates.sum(-1), whole.estimates, atol=1e-6, rtol=1e-4)
    assert float(whole.estimates.abs().max()) > 0


def test_without_the_exact_sweep_the_error_is_not_known(llama):
    result = attribute(llama, "model.layers.*", base=BASE, source=SOURCE, metric=(7, 9), exact=False)
    with pytest.raises(ExperimentError, match="exact=True"):
        result.correlation
    assert "not compared" in str(result)
    assert list(result.to_pandas().columns) == ["site", "position", "estimate"]


def test_bad_input_is_named(llama):
    with pytest.raises(RecipeError, match="no useful gradient"):
        attribute(llama, "model.layers.*", base=BASE, source=SOURCE, metric=KL())
    with pytest.raises(RecipeError, match="sites"):
        attribute(llama, (), base=BASE, source=SOURCE, metric=METRIC)


def test_nothing_is_left_behind(llama):
    attribute(llama, "model.layers.*", base=BASE, source=SOURCE, metric=METRIC, exact=False)
    assert all(parameter.grad is None for parameter in llama._model.parameters())
