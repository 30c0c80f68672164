"""Every edit, in several scopes, against forward hooks of plain torch."""

import pytest
import torch
from safetensors.torch import save_file

from nnsight_lab.demo import BRANDENBURG, COLOSSEUM, EIFFEL
from nnsight_lab.experiments import (
    Add,
    Capture,
    Mean,
    Noise,
    Patch,
    Recipe,
    Replace,
    Scale,
    ScopeError,
    StoredTensor,
    Token,
    Zero,
)

from .reference import attention_replaced, logits_with_hooks, output_of

MLP = "transformer.h.5.mlp"
ACT = "transformer.h.5.mlp.source.self_act_0"
ACT_MODULE = "transformer.h.5.mlp.act"
KERNEL = "transformer.h.3.attn.source.attention_interface_0.source.torch_nn_functional_scaled_dot_product_attention_0"


def ids_of(model, text):
    return model.tokenizer(text, return_tensors="pt")["input_ids"]


def edited(model, *steps, base=EIFFEL, source=None):
    return Recipe(base=base, source=source, steps=steps).run(model, reach=False).edited_logits


def change(index, to):
    """A hook's change: entries at `index` become `to(entries)`."""

    def apply(x):
        x[index] = to(x[index])
        return x

    return apply


def noise(seed, std, shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * std


CASES = {
    "zero everywhere": (Zero(ACT), ACT_MODULE, lambda x: x * 0),
    "zero the last position": (Zero(ACT, positions=[-1]), ACT_MODULE, change((slice(None), -1), torch.zeros_like)),
    "zero two positions": (Zero(MLP, positions=[1, 3]), MLP, change((slice(None), [1, 3]), torch.zeros_like)),
    "zero a slice of positions": (
        Zero(MLP, positions=["2:5"]),
        MLP,
        change((slice(None), slice(2, 5)), torch.zeros_like),
    ),
    "scale neurons": (
        Scale(ACT, factor=3.0, index="0:10,17"),
        ACT_MODULE,
        change((..., [*range(10), 17]), lambda x: x * 3.0),
    ),
    "scale neurons from the end at one position": (
        Scale(ACT, factor=-2.0, index=[-1], positions=[4]),
        ACT_MODULE,
        change((slice(None), 4, -1), lambda x: x * -2.0),
    ),
    "replace by a number": (
        Replace(MLP, value=0.5, positions=[2]),
        MLP,
        change((slice(None), 2), lambda x: x * 0 + 0.5),
    ),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_edit_equals_the_same_change_by_a_hook(atlas, case):
    step, module, apply = CASES[case]
    expected = logits_with_hooks(atlas._model, ids_of(atlas, EIFFEL), {module: apply})
    assert torch.equal(edited(atlas, step), expected)


def test_mean_over_positions_is_taken_over_all_positions(atlas):
    def apply(x):
        x[:, [1, 2]] = x.mean(1, keepdim=True)
        return x

    expected = logits_with_hooks(atlas._model, ids_of(atlas, EIFFEL), {MLP: apply})
    assert torch.equal(edited(atlas, Mean(MLP, positions=[1, 2])), expected)


def test_mean_over_the_batch_mixes_rows_at_each_position(atlas):
    ids = torch.cat([ids_of(atlas, EIFFEL), ids_of(atlas, BRANDENBURG)])

    def apply(x):
        x[:, 2] = x[:, 2].mean(0)
        return x

    expected = logits_with_hooks(atlas._model, ids, {MLP: apply})
    step = Mean(MLP, positions=[2], over="batch")
    result = Recipe(steps=[step]).run(atlas, base=ids, reach=False)
    torch.testing.assert_close(result.edited_logits, expected, rtol=0, atol=1e-5)
    assert not torch.equal(result.edited_logits, result.clean_logits)


def test_noise_is_drawn_for_the_whole_value_with_the_seed(atlas):
    def apply(x):
        x[:, [3]] = (x + noise(7, 2.0, x.shape))[:, [3]]
        return x

    expected = logits_with_hooks(atlas._model, ids_of(atlas, EIFFEL), {MLP: apply})
    assert torch.equal(edited(atlas, Noise(MLP, std=2.0, seed=7, positions=[3])), expected)
    assert not torch.equal(edited(atlas, Noise(MLP, std=2.0, seed=8, positions=[3])), expected)


def test_a_vector_is_added_and_can_be_stored(atlas, tmp_path):
    vector = torch.linspace(-3, 3, 96)
    save_file({"direction": vector}, tmp_path / "v.safetensors")
    expected = logits_with_hooks(
        atlas._model, ids_of(atlas, EIFFEL), {MLP: change((slice(None), -1), lambda x: x + vector)}
    )
    assert torch.equal(edited(atlas, Add(MLP, vector=vector.tolist(), positions=[-1])), expected)
    stored = StoredTensor(str(tmp_path / "v.safetensors"), "direction")
    assert torch.equal(edited(atlas, Add(MLP, vector=stored, positions=[-1])), expected)
    assert torch.equal(edited(atlas, Replace(MLP, value=stored)), edited(atlas, Replace(MLP, value=vector.tolist())))


def test_heads_of_the_attention_kernel_are_its_second_axis(atlas):
    # The prompt has as many tokens as a head has dimensions, so that the shape alone does not tell the axes.
    def apply(x):
        x[:, :3, -1] = x[:, :3, -1] * 2
        return x

    with attention_replaced(3, apply):
        expected = logits_with_hooks(atlas._model, ids_of(atlas, EIFFEL), {})
    assert torch.equal(edited(atlas, Scale(KERNEL, factor=2.0, heads="0:3", positions=[-1])), expected)


def test_heads_are_cut_out_of_the_last_axis(atlas):
    def apply(x):
        x[:, 2, 8:16] = 0  # 96 dimensions in 12 heads: head 1 is 8 to 15
        return x

    expected = logits_with_hooks(atlas._model, ids_of(atlas, EIFFEL), {"transformer.h.3.attn": apply})
    assert torch.equal(edited(atlas, Zero("transformer.h.3.attn", heads=[1], positions=[2])), expected)


def test_neurons_within_a_head(atlas):
    def apply(x):
        x[..., 1 * 8 + 3] = 0
        x[..., 4 * 8 + 3] = 0
        return x

    expected = logits_with_hooks(atlas._model, ids_of(atlas, EIFFEL), {"transformer.h.3.attn": apply})
    assert torch.equal(edited(atlas, Zero("transformer.h.3.attn", heads=[1, 4], index=[3])), expected)


def test_patch_takes_the_same_position_of_the_source_prompt(atlas):
    source = output_of(atlas._model, ids_of(atlas, BRANDENBURG), "transformer.h.4")
    apply = change((slice(None), 2), lambda x: source[:, 2])
    expected = logits_with_hooks(atlas._model, ids_of(atlas, EIFFEL), {"transformer.h.4": apply})
    step = Patch("transformer.h.4", positions=[" Tower"])
    assert torch.equal(edited(atlas, step, source=BRANDENBURG), expected)


def test_patch_of_all_positions(atlas):
    source = output_of(atlas._model, ids_of(atlas, BRANDENBURG), MLP)
    expected = logits_with_hooks(atlas._model, ids_of(atlas, EIFFEL), {MLP: lambda x: source})
    assert torch.equal(edited(atlas, Patch(MLP), source=BRANDENBURG), expected)


def test_patch_between_layers_takes_from_the_clean_run(atlas):
    first = output_of(atlas._model, ids_of(atlas, EIFFEL), "transformer.h.0.mlp")
    expected = logits_with_hooks(atlas._model, ids_of(atlas, EIFFEL), {MLP: lambda x: first})
    step = Patch(MLP, from_prompt="base", from_site="transformer.h.0.mlp")
    assert torch.equal(edited(atlas, step), expected)


def test_patch_from_a_prompt_of_another_length(atlas):
    ids = ids_of(atlas, COLOSSEUM)
    assert ids.shape[1] != ids_of(atlas, EIFFEL).shape[1]
    source = output_of(atlas._model, ids, "transformer.h.4")
    last = change((slice(None), -1), lambda x: source[:, -1])
    expected = logits_with_hooks(atlas._model, ids_of(atlas, EIFFEL), {"transformer.h.4": last})
    assert torch.equal(edited(atlas, Patch("transformer.h.4", positions=[-1]), source=COLOSSEUM), expected)
    told = Patch("transformer.h.4", positions=[" Tower"], from_positions=[1])
    tower = change((slice(None), 2), lambda x: source[:, 1])
    expected = logits_with_hooks(atlas._model, ids_of(atlas, EIFFEL), {"transformer.h.4": tower})
    assert torch.equal(edited(atlas, told, source=COLOSSEUM), expected)


def test_steps_of_one_site_act_in_their_order(atlas):
    def apply(x):
        x[:, 3] = 0.25
        return x * 2

    expected = logits_with_hooks(atlas._model, ids_of(atlas, EIFFEL), {MLP: apply})
    steps = [Replace(MLP, value=0.25, positions=[3]), Scale(MLP, factor=2.0)]
    assert torch.equal(edited(atlas, *steps), expected)
    assert not torch.equal(edited(atlas, *reversed(steps)), expected)


def test_sites_may_be_listed_in_any_order(atlas):
    changes = {"transformer.h.8": lambda x: x * 1.5, MLP: change((slice(None), 1), torch.zeros_like)}
    expected = logits_with_hooks(atlas._model, ids_of(atlas, EIFFEL), changes)
    late_first = [Scale("transformer.h.8", factor=1.5), Zero(MLP, positions=[1])]
    assert torch.equal(edited(atlas, *late_first), expected)


def test_an_edit_of_the_input(atlas):
    def pre(module, args):
        return (args[0] * 0.5, *args[1:])

    handle = atlas._model.get_submodule(MLP).register_forward_pre_hook(pre)
    try:
        expected = logits_with_hooks(atlas._model, ids_of(atlas, EIFFEL), {})
    finally:
        handle.remove()
    assert torch.equal(edited(atlas, Scale(MLP, io="input", factor=0.5)), expected)


def test_a_disabled_step_does_nothing(atlas):
    result = Recipe(base=EIFFEL, steps=[Zero(MLP, enabled=False)]).run(atlas)
    assert torch.equal(result.edited_logits, result.clean_logits)
    assert result.sites[0].outcome == "disabled"


def test_captures_stand_before_or_after_an_edit(atlas):
    before = output_of(atlas._model, ids_of(atlas, EIFFEL), MLP)
    recipe = Recipe(base=EIFFEL, steps=[Capture(MLP), Zero(MLP, positions=[1])])
    assert torch.equal(recipe.run(atlas).activations[MLP], before)
    after = before.clone()
    after[:, 1] = 0
    recipe = recipe.with_steps(Zero(MLP, positions=[1]), Capture(MLP))
    result = recipe.run(atlas)
    assert torch.equal(result.activations[MLP], after)
    assert torch.equal(result.clean_activations[MLP], before)


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (Zero(MLP, positions=[8]), r"steps\[0\].positions\[0\]: there is no position 8 in a prompt of 8 tokens"),
        (Zero(MLP, positions=["5:3"]), "the slice '5:3' is empty"),
        (Zero(MLP, positions=["Tower"]), "' Tower' at 2"),
        (Zero(MLP, positions=[Token(" Tower", occurrence=1)]), "the prompt has it once"),
        (Zero(MLP, index=[96]), "no number 96 among 96"),
        (Zero("lm_head", heads=[0]), "no axis of 12 heads"),
        (Zero(MLP, heads=[12]), "no number 12 among 12 heads"),
        (Add(MLP, vector=[1.0, 2.0]), r"shape \[2\] cannot be broadcast"),
        (Replace(MLP, value=[[1.0], [1.0, 2.0]]), "not numbers in equal rows"),
        (Add(MLP, vector=StoredTensor("nowhere.safetensors", "v")), "there is no file"),
        (Scale("transformer.wte", io="input", factor=2.0), "needs a floating-point one"),
        (Zero(MLP, element=[0]), "nothing to index in a Tensor"),
    ],
)
def test_a_scope_that_does_not_fit_is_refused_with_the_reason(atlas, step, says):
    with pytest.raises(ScopeError, match=says):
        Recipe(base=EIFFEL, steps=[step]).run(atlas)


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (Patch(MLP), "not every position has a counterpart"),
        (Patch(MLP, positions=[" Tower"]), "the counterpart of a token given by its text"),
        (Patch(MLP, positions=["2:"]), "Say in from_positions which belong together"),
        (Patch(MLP, positions=[7]), "no position 7 in a prompt of"),
        (Patch(MLP, positions=[1, 2], from_positions=[0]), "1 positions .0. for the 2 positions"),
    ],
)
def test_positions_without_a_counterpart_are_refused(atlas, step, says):
    with pytest.raises(ScopeError, match=says):
        Recipe(base=EIFFEL, source=COLOSSEUM, steps=[step]).run(atlas)


def test_an_ambiguous_token_is_refused_with_its_positions(atlas):
    recipe = Recipe(base=EIFFEL + EIFFEL.removeprefix("The"), steps=[Zero(MLP, positions=[" Tower"])])
    with pytest.raises(ScopeError, match=r"at several positions: 2, 9"):
        recipe.run(atlas)
    second = recipe.with_steps(Zero(MLP, positions=[Token(" Tower", occurrence=1)]))
    by_number = recipe.with_steps(Zero(MLP, positions=[9]))
    assert torch.equal(second.run(atlas).edited_logits, by_number.run(atlas).edited_logits)
