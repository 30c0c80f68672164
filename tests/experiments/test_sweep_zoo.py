"""Sweeps of tiny random models of architectures with caches, layers and forwards of many kinds."""

import pytest
import torch

from nnsight_lab import LanguageModel
from nnsight_lab.experiments import LogitDiff, Zero, sweep
from nnsight_lab.experiments.prefix import record
from nnsight_lab.experiments.sweeping import ROLLING, SUFFIX

from ..zoo.architectures import candidates
from ..zoo.building import build
from .sweep_models import edited_logits

PROMPT = (3, 7, 11, 4, 9, 13, 5)
ARCHITECTURES = {
    "MistralForCausalLM": SUFFIX,
    "GPTNeoXForCausalLM": SUFFIX,
    "OPTForCausalLM": SUFFIX,
    "FalconForCausalLM": SUFFIX,
    "Cohere2ForCausalLM": SUFFIX,
    "GraniteMoeForCausalLM": SUFFIX,
    "DeepseekV3ForCausalLM": SUFFIX,
    "BambaForCausalLM": ROLLING,
    "RwkvForCausalLM": ROLLING,
    "xLSTMForCausalLM": ROLLING,
    "Qwen3NextForCausalLM": ROLLING,
    "RecurrentGemmaForCausalLM": ROLLING,
}


@pytest.mark.parametrize(("name", "method"), ARCHITECTURES.items())
def test_zeroing_the_residual_stream_equals_one_run_a_cell(name, method):
    (architecture,) = [candidate for candidate in candidates() if candidate.name == name]
    module, _ = build(architecture)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    ids = torch.tensor([PROMPT])
    layers = record(module, {"input_ids": ids}, len(PROMPT), cache=False).path
    result = sweep(
        LanguageModel(module),
        Zero(site=f"{layers}.*"),
        base=PROMPT,
        metric=LogitDiff(3, 5),
        logits=(3, 5),
        positions=(0, 3, 6),
        progress=False,
    )
    assert result.method == method, result.notes
    for i, site in enumerate(result.axis("site").entries):
        for j, position in enumerate((0, 3, 6)):

            def zero(value, position=position):
                value[:, position] = 0
                return value

            expected = edited_logits(module, site, zero, PROMPT)[[3, 5]]
            bound = 1e-4 * max(1.0, float(expected.abs().max()))
            torch.testing.assert_close(result.logits[i, j], expected, atol=bound, rtol=0)
