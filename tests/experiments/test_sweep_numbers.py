"""The cells of a sweep are the numbers of one edited run each, whatever way they were computed."""

import pytest
import torch

from nnsight_lab.experiments import KL, Add, LogitDiff, Mean, Patch, Probability, Rank, Scale, Zero
from nnsight_lab.experiments.sweeping import BATCH, ROLLING, SINGLE, SUFFIX, run_sweep
from nnsight_lab.experiments.sweeps import Sweep, sweep

from .sweep_models import BASE, SOURCE, edited_logits, outputs_of, tiny

LAYERS = {
    "gpt2": "transformer.h",
    "bloom": "transformer.h",
    "mamba": "backbone.layers",
    "bert": "bert.encoder.layer",
}
METRIC = LogitDiff(7, 9)


def difference(logits):
    return float(logits[7] - logits[9])


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("gpt2", SUFFIX),
        ("llama", SUFFIX),
        ("gemma2", SUFFIX),
        ("gemma3", SUFFIX),
        ("qwen2_moe", SUFFIX),
        ("mamba", ROLLING),
        ("bert", ROLLING),
    ],
)
def test_residual_patch_equals_one_run_a_cell(name, method):
    model = tiny(name)
    layers = LAYERS.get(name, "model.layers")
    result = sweep(
        model, Patch(site=f"{layers}.*"), base=BASE, source=SOURCE, metric=METRIC, logits=(7,), progress=False
    )
    assert result.method == method, result.notes
    assert result.complete
    assert result.shape == (4, 9)
    for layer in range(4):
        site = f"{layers}.{layer}"
        taken = outputs_of(model._model, site, SOURCE)
        for position in range(9):

            def patch(value, position=position, taken=taken):
                value[:, position] = taken[:, position]
                return value

            expected = edited_logits(model._model, site, patch, BASE)
            assert float(result.values[layer, position]) == pytest.approx(difference(expected), abs=2e-4)
            assert float(result.logits[layer, position, 0]) == pytest.approx(float(expected[7]), abs=2e-4)
    assert float(result.differences.abs().max()) > 0.05  # the patches matter, so that equality means something


@pytest.mark.parametrize(
    ("name", "site", "method"),
    [
        ("gpt2", "transformer.h.*.attn.source.attention_interface_0", SUFFIX),
        ("gpt2", "transformer.h.*.mlp.source.self_act_0", SUFFIX),
        ("llama", "model.layers.*.self_attn.source.attention_interface_0", SUFFIX),
        ("llama", "model.layers.*.self_attn.source.apply_rotary_pos_emb_0", SUFFIX),
        ("gemma2", "model.layers.*.self_attn.source.attention_interface_0", SUFFIX),
        ("gemma3", "model.layers.*.self_attn.source.attention_interface_0", SUFFIX),
        ("qwen2_moe", "model.layers.*.mlp.source.hidden_states_view_0", SUFFIX),
        ("qwen2_moe", "model.layers.*.self_attn.source.attention_interface_0", SUFFIX),
        ("mamba", "backbone.layers.*.mixer.source.self_in_proj_0", ROLLING),
    ],
)
@pytest.mark.parametrize("step", [Zero(site="x"), Scale(site="x", factor=-3.0)], ids=["zero", "scale"])
def test_operation_sites_equal_one_trace_a_cell(name, site, method, step):
    model = tiny(name)
    result = sweep(
        model,
        type(step)(**{**_fields(step), "site": site}),
        base=BASE,
        metric=METRIC,
        positions=(0, 3, 8),
        progress=False,
    )
    assert result.method == method, result.notes
    for i, place in enumerate(result.axis("site").entries):
        owner, label = place.split(".source.")
        for j, position in enumerate((0, 3, 8)):
            with torch.no_grad(), model.trace(list(BASE)) as tracer:
                operation = model.get(owner).source[label]
                value = operation.output
                edited = (value[0] if isinstance(value, tuple) else value).clone()
                axis = edited.shape.index(9)
                part = edited.select(axis, position)
                part.copy_(torch.zeros_like(part) if isinstance(step, Zero) else part * -3.0)
                operation.output = (edited, *value[1:]) if isinstance(value, tuple) else edited
                expected = tracer.result.logits[0, -1].double()
            assert float(result.values[i, j]) == pytest.approx(difference(expected), abs=2e-4)
    assert float(result.differences.abs().max()) > 1e-3


def _fields(step):
    return {name: getattr(step, name) for name in step.__struct_fields__}


@pytest.mark.parametrize(
    "step",
    [
        Zero(site="model.layers.*.mlp"),
        Mean(site="model.layers.*.mlp"),
        Scale(site="model.layers.*.mlp", factor=2.5),
        Add(site="model.layers.*.mlp", vector=tuple(float(i % 3) for i in range(32))),
        Patch(site="model.layers.*.mlp"),
        Zero(site="model.layers.*", io="input"),
        Scale(site="model.layers.*.self_attn", factor=0.0),
    ],
    ids=lambda step: f"{type(step).__name__}-{step.site}-{step.io}",
)
@pytest.mark.parametrize("metric", [METRIC, Probability(7), KL(), Rank(7)], ids=lambda m: type(m).__name__)
def test_every_way_gives_the_recipes_numbers(step, metric):
    model = tiny("llama")
    source = SOURCE if isinstance(step, Patch) else None
    plan = Sweep(step=step, base=BASE, source=source, metric=metric, positions=(1, 4, "6:9"))
    expected = None
    for way in (SUFFIX, ROLLING, BATCH, SINGLE):
        result = run_sweep(plan, model, way=way, progress=False)
        assert result.method == way
        if expected is None:
            runs = [[result.cell(i, j).run(model, reach=False) for j in range(3)] for i in range(4)]
            expected = torch.tensor([[run.metric.edited for run in row] for row in runs], dtype=torch.float64)
        torch.testing.assert_close(result.values, expected, atol=2e-4, rtol=1e-4)


def test_heads_and_neurons_are_axes():
    model = tiny("llama")
    site = "model.layers.*.self_attn.o_proj"
    by_head = sweep(
        model, Zero(site=site, io="input"), base=BASE, metric=METRIC, positions=(2, 8), heads="each", progress=False
    )
    assert by_head.shape == (4, 2, 4)
    by_neuron = sweep(
        model,
        Zero(site=site, io="input"),
        base=BASE,
        metric=METRIC,
        positions=(2, 8),
        neurons=(0, "8:16"),
        progress=False,
    )
    # Head 1 is entries 8 to 15 of what goes into o_proj.
    torch.testing.assert_close(by_head.values[:, :, 1], by_neuron.values[:, :, 1], atol=1e-5, rtol=0)
    module = model._model

    for head in range(4):

        def zero(_module, args, head=head):
            value = args[0].clone()
            value[:, 2, head * 8 : head * 8 + 8] = 0
            return (value,)

        handle = module.model.layers[1].self_attn.o_proj.register_forward_pre_hook(zero)
        with torch.no_grad():
            expected = module(torch.tensor([BASE])).logits[0, -1].double()
        handle.remove()
        assert float(by_head.values[1, 0, head]) == pytest.approx(difference(expected), abs=1e-4)


def test_a_random_subset_on_gpt2_with_words_of_the_prompt():
    from nnsight_lab import demo

    model = demo.load()
    base, source = "The Eiffel Tower is in the city of", "The Brandenburg Gate is in the city of"
    result = sweep(
        model,
        Patch(site="transformer.h.*"),
        base=base,
        source=source,
        metric=LogitDiff(" Paris", " Berlin"),
        progress=False,
    )
    generator = torch.Generator().manual_seed(3)
    paris, berlin = (model.tokenizer(text)["input_ids"][0] for text in (" Paris", " Berlin"))
    for _ in range(12):
        layer = int(torch.randint(12, (1,), generator=generator))
        position = int(torch.randint(len(result.tokens), (1,), generator=generator))
        with torch.no_grad(), model.trace(source):
            taken = model.transformer.h[layer].output[:, position].clone()
        with torch.no_grad(), model.trace(base) as tracer:
            hidden = model.transformer.h[layer].output.clone()
            hidden[:, position] = taken
            model.transformer.h[layer].output = hidden
            logits = tracer.result.logits[0, -1].double()
        assert float(result.values[layer, position]) == pytest.approx(float(logits[paris] - logits[berlin]), abs=1e-3)
    assert result.baseline > 0 > result.source_value
    # The source's residual stream at the last position of the last layer is the source's answer.
    assert float(result.recovery()[-1, -1]) == pytest.approx(1.0, abs=1e-4)
