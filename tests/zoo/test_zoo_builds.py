"""The zoo is as large as it says, and what it builds is small, complete and the same every time."""

from collections import Counter

import pytest
import torch
import transformers
from packaging.version import Version

from tests.zoo import ARCHITECTURES, EXCLUDED, bit_identical, build
from tests.zoo.architectures import candidates
from tests.zoo.exclusions import STOCHASTIC
from tests.zoo.input_data import IMAGE_TOKENS, INPUTS
from tests.zoo.overrides import ARCHITECTURE_FIELDS

# What transformers 5.24.0 offers; a later version may offer more.
COUNTS = {
    "causal": 182,
    "text": 95,
    "encoder-decoder": 36,
    "vision": 135,
    "audio": 82,
    "multimodal": 106,
    "other": 8,
}

BY_NAME = {architecture.name: architecture for architecture in ARCHITECTURES}

SAMPLE = (
    "GPT2LMHeadModel",
    "LlamaForCausalLM",
    "JambaForCausalLM",
    "DeepseekV3ForCausalLM",
    "BertForMaskedLM",
    "T5ForConditionalGeneration",
    "ViTForImageClassification",
    "WhisperForConditionalGeneration",
    "CLIPModel",
    "DecisionTransformerModel",
)

since_5_24 = pytest.mark.skipif(
    Version(transformers.__version__) < Version("5.24.0"), reason="the tables describe transformers 5.24.0 and later"
)


@since_5_24
@pytest.mark.parametrize(("kind", "count"), COUNTS.items())
def test_at_least_the_advertised_number_of_architectures_is_listed(kind, count):
    assert Counter(architecture.kind for architecture in ARCHITECTURES)[kind] >= count


def test_every_candidate_is_either_listed_once_or_excluded_with_a_reason():
    listed = Counter(architecture.name for architecture in ARCHITECTURES)
    assert set(listed.values()) == {1}
    assert {candidate.name for candidate in candidates()} == set(listed) | (
        set(EXCLUDED) & {c.name for c in candidates()}
    )
    assert not set(listed) & set(EXCLUDED)
    assert all(EXCLUDED.values())


@since_5_24
def test_tables_name_no_class_that_is_not_in_the_zoo():
    assert set(EXCLUDED) <= {candidate.name for candidate in candidates()}
    assert {*INPUTS, *IMAGE_TOKENS, *ARCHITECTURE_FIELDS, *STOCHASTIC} <= set(BY_NAME)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_build_is_small_in_eval_mode_and_runs_to_finite_numbers(name):
    model, inputs = build(BY_NAME[name])
    parameters = list(model.parameters())
    assert type(model).__name__ == name
    assert not any(module.training for module in model.modules())
    assert {p.dtype for p in parameters} == {torch.float32}
    assert sum(p.numel() for p in parameters) < 1_000_000
    with torch.no_grad():
        output = model(**inputs)
    assert torch.isfinite(output[0]).all()


@pytest.mark.parametrize("name", SAMPLE)
def test_two_builds_have_the_same_weights_inputs_and_outputs(name):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        first, first_inputs = build(BY_NAME[name])
        torch.manual_seed(2)
        second, second_inputs = build(BY_NAME[name])
    assert bit_identical(first.state_dict(), second.state_dict()) == []
    assert bit_identical(first_inputs, second_inputs) == []
    with torch.no_grad():
        assert bit_identical(first(**first_inputs), second(**second_inputs)) == []


def test_a_build_leaves_the_random_state_and_the_determinism_mode_alone():
    state, mode = torch.random.get_rng_state(), torch.are_deterministic_algorithms_enabled()
    build(BY_NAME["GPT2LMHeadModel"])
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.are_deterministic_algorithms_enabled() == mode


def test_a_hybrid_model_keeps_one_layer_of_each_kind():
    model, _ = build(BY_NAME["Qwen3NextForCausalLM"])
    assert set(model.config.layer_types) == {"linear_attention", "full_attention"}


def test_an_image_given_with_the_prompt_reaches_the_logits():
    model, inputs = build(BY_NAME["Qwen2VLForConditionalGeneration"])
    with torch.no_grad():
        seen = model(**inputs).logits
        other = model(**{**inputs, "pixel_values": -inputs["pixel_values"]}).logits
    assert not torch.equal(seen[0, -1], other[0, -1])


def test_a_stochastic_architecture_repeats_itself_only_when_seeded():
    architecture = BY_NAME["InformerModel"]
    assert architecture.stochastic
    model, inputs = build(architecture)
    outputs = []
    with torch.random.fork_rng(), torch.no_grad():
        for seed in (0, 0, 1):
            torch.manual_seed(seed)
            outputs.append(model(**inputs))
    assert bit_identical(outputs[0], outputs[1]) == []
    assert bit_identical(outputs[0], outputs[2]) != []
