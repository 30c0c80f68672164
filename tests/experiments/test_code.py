"""The exported script of every step kind, executed, gives the result's logits bit for bit."""

import subprocess
import sys

import pytest
import tokenizers
import torch
from safetensors.torch import save_file
from torch import nn
from transformers import AutoConfig, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from nnsight_lab import LanguageModel, NNsight
from nnsight_lab.demo import BRANDENBURG, COLOSSEUM, EIFFEL
from nnsight_lab.experiments import (
    KL,
    Add,
    Capture,
    ExperimentError,
    LogitDiff,
    Mean,
    Noise,
    Patch,
    Probability,
    Rank,
    Recipe,
    Replace,
    Scale,
    StoredTensor,
    Zero,
)

MLP = "transformer.h.5.mlp"
ACT = "transformer.h.5.mlp.source.self_act_0"
ATTENTION = "transformer.h.3.attn"
KERNEL = f"{ATTENTION}.source.attention_interface_0.source.torch_nn_functional_scaled_dot_product_attention_0"
SPLIT = f"{ATTENTION}.source.split_1"

EDITS = {
    "zero": lambda **scope: Zero(**scope),
    "mean": lambda **scope: Mean(**scope),
    "scale": lambda **scope: Scale(factor=1.7, **scope),
    "noise": lambda **scope: Noise(std=0.3, seed=5, **scope),
    "replace": lambda **scope: Replace(value=0.1, **scope),
    "patch": lambda **scope: Patch(**scope),
}
SCOPES = {
    "whole": {"site": MLP},
    "positions": {"site": MLP, "positions": [" Tower", -1]},
    "operation": {"site": ACT, "positions": ["1:6"]},
    "neurons": {"site": ACT, "index": "0:40,100,-1", "positions": [2, 4, 7]},
    "heads": {"site": KERNEL, "heads": "1:4", "positions": [-1]},
    "heads without positions": {"site": KERNEL, "heads": [0, 11]},
    "heads of the last axis": {"site": ATTENTION, "heads": [2, 5], "index": "0:4", "positions": [1, 7]},
    "element": {"site": SPLIT, "element": [1], "positions": [3]},
    "first element of a tuple": {"site": SPLIT, "heads": [1]},
    "input": {"site": MLP, "io": "input", "positions": [6]},
    "bound name": {"site": f"{ATTENTION}.source.var_value_states_4", "positions": [0, 1]},
    "output of the model": {"site": "", "positions": [-1], "index": "3:9"},
}


def executed(code, **names):
    for name in names:  # what the script leaves to the reader
        code = code.replace(f"{name} = ...  # the", "# the")
    exec(compile(code, "exported", "exec"), names)
    return names


def check(result, **names):
    left = executed(result.code(), **names)
    assert torch.equal(left["clean_logits"], result.clean_logits)
    assert torch.equal(left["edited_logits"], result.edited_logits)
    if result.plan.actions:
        assert left["activations"].keys() == result.activations.keys()
        for key, value in result.activations.items():
            assert torch.equal(left["activations"][key], value)


@pytest.mark.parametrize("kind", EDITS)
@pytest.mark.parametrize("scope", SCOPES)
def test_every_edit_in_every_scope(atlas, kind, scope, capsys):
    step = EDITS[kind](**SCOPES[scope])
    recipe = Recipe(base=EIFFEL, source=BRANDENBURG, steps=[step, Capture(step.site, io=step.io, element=step.element)])
    result = recipe.run(atlas, reach=False)
    assert not torch.equal(result.clean_logits, result.edited_logits)
    check(result, model=atlas)
    assert "edited" in capsys.readouterr().out


def test_vectors_and_tensors(atlas, tmp_path):
    torch.manual_seed(0)
    save_file({"v": torch.randn(96)}, tmp_path / "v.safetensors")
    stored = StoredTensor(str(tmp_path / "v.safetensors"), "v")
    vector = torch.randn(96).tolist()
    table = torch.randn(8, 96).tolist()
    for step in (
        Add(MLP, vector=vector),
        Add(MLP, vector=stored, positions=[1]),
        Add(ATTENTION, vector=vector, heads=[3]),
        Replace(MLP, value=table, positions=[2, 5]),
        Replace(MLP, value=stored),
    ):
        check(Recipe(base=EIFFEL, steps=[step]).run(atlas, reach=False), model=atlas)


def test_patches_from_other_sites_positions_and_prompts(atlas):
    for source, step in (
        (COLOSSEUM, Patch(MLP, positions=[" Tower"], from_positions=[1])),
        (COLOSSEUM, Patch(KERNEL, positions=[-1], heads=[1, 2])),
        (None, Patch(MLP, from_prompt="base", from_site="transformer.h.0.mlp")),
        (None, Patch("transformer.h.2", from_prompt="base", from_site="transformer.h.8", positions=[-1])),
        (None, Patch(MLP, from_prompt="base", positions=[1], from_positions=[4])),
    ):
        check(Recipe(base=EIFFEL, source=source, steps=[step]).run(atlas, reach=False), model=atlas)


def test_many_steps_listed_out_of_order(atlas):
    steps = [
        Capture("transformer.h.9"),
        Zero("transformer.h.7.mlp", positions=[3]),
        Patch("transformer.h.1", positions=[2]),
        Scale(KERNEL, factor=0.5),
        Capture(KERNEL),
        Scale(KERNEL, factor=2.0, heads=[0]),
        Zero(f"{ATTENTION}.source.self_q_attn_0"),
        Noise("transformer.h.1", std=0.1, positions=[2, 3]),
        Zero("transformer.h.0.mlp", enabled=False),
        Scale(SPLIT, element=[2], factor=1.1),
        Scale(SPLIT, element=[0], factor=0.9),
    ]
    result = Recipe(base=EIFFEL, source=BRANDENBURG, steps=steps).run(atlas)
    check(result, model=atlas)
    assert "# steps[6] (zero) is left out" in result.code()


@pytest.mark.parametrize("metric", [LogitDiff(" Paris", 5), Probability(" Paris"), Rank(" Paris"), KL(), None])
def test_the_metric_is_printed(atlas, metric, capsys):
    result = Recipe(base=EIFFEL, steps=[Zero(MLP)], metric=metric).run(atlas)
    check(result, model=atlas)
    if result.metric is not None:
        printed = float(capsys.readouterr().out.split()[-1])
        assert printed == pytest.approx(result.metric.edited, rel=1e-4)


def test_a_recipe_that_only_captures(atlas):
    check(Recipe(base=EIFFEL, steps=[Capture(ACT), Capture("", element=["logits"])]).run(atlas), model=atlas)


def test_token_ids_as_prompt(atlas):
    ids = atlas.tokenizer(EIFFEL)["input_ids"]
    by_ids = Recipe(base=ids, steps=[Zero(MLP)]).run(atlas)
    assert torch.equal(by_ids.edited_logits, Recipe(base=EIFFEL, steps=[Zero(MLP)]).run(atlas).edited_logits)
    check(by_ids, model=atlas)


def test_the_script_stands_alone(tmp_path):
    recipe = Recipe(model="atlas", base=EIFFEL, source=BRANDENBURG, steps=[Patch("transformer.h.3", positions=[2])])
    script = tmp_path / "script.py"
    script.write_text(recipe.code())
    out = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    assert len(out.splitlines()) == 20


class Records(nn.Module):
    """Containers of every kind, and a loop."""

    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        for _ in range(2):
            found = self.pieces(x)
            x = found["pair"][0] + found["list"][1] * found["scale"]
        return x + self.inner(x).b

    def pieces(self, x):
        return {"pair": (x * 2, x), "list": [x, x + 1], "scale": float(x.shape[-1])}


class Inner(nn.Module):
    def forward(self, x):
        from collections import namedtuple

        return namedtuple("Found", "a b")(x, x * 3)


def test_containers_loops_and_plain_numbers():
    torch.manual_seed(0)
    x = torch.randn(2, 3)
    pieces, number = "source.self_pieces_0", "source.self_pieces_0.source.float_0"
    for steps in (
        [Scale(pieces, element=["pair", 0], factor=2.0)],
        [Scale(pieces, element=["list", 1], factor=2.0, call=1), Capture(pieces, element=["list", 1], call=1)],
        [Scale(pieces, element=["pair", 0], factor=2.0), Zero(pieces, element=["list", 1], index=[0])],
        [Scale("inner", element=[1], factor=2.0)],
        [Replace(number, value=2.0)],
    ):
        model = NNsight(Records())
        result = Recipe(steps=steps, metric=None).run(model, base=x)
        assert result.max_difference > 0
        check(result, model=model, prompt=x)


def test_a_later_call_of_a_module_is_refused_with_the_way_out():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = nn.Linear(3, 3)

        def forward(self, x):
            return self.step(self.step(x))

    result = Recipe(steps=[Zero("step", call=1, index=[0])], metric=None).run(NNsight(Twice()), base=torch.ones(1, 3))
    with pytest.raises(ExperimentError, match="of operations, not of modules"):
        result.code()


@pytest.mark.parametrize("name", ["atlas", None])
def test_a_demo_model_s_script_loads_it(atlas, tmp_path, name):
    recipe = Recipe(model=name, base=EIFFEL, source=BRANDENBURG, steps=[Patch("transformer.h.3", positions=[2])])
    result = recipe.run(atlas)
    left = executed(result.code())
    assert torch.equal(left["edited_logits"], result.edited_logits)
    assert "\nmodel = nnsight_lab.demo.load('atlas')\n" in result.code()


def test_a_model_loaded_by_name_is_loaded_alike(tmp_path):
    folder = save_tiny_gpt2(tmp_path)
    model = LanguageModel(folder, dtype=torch.float64, token="a secret")
    result = Recipe(base=[1, 2, 3], steps=[Zero("transformer.h.0.mlp", positions=-1)]).run(model)
    assert result.clean_logits.dtype == torch.float64
    left = executed(result.code())
    assert torch.equal(left["edited_logits"], result.edited_logits)
    assert "a secret" not in result.code()
    # What cannot be written down is left to the reader.
    other = LanguageModel(folder, config=AutoConfig.from_pretrained(folder))
    assert Recipe(base=[1, 2, 3], steps=[Zero("lm_head")]).run(other).code().startswith("model = ...  # the wrapped")


def test_what_only_the_reader_knows_stands_first():
    module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    result = Recipe(steps=[Zero("0")], metric=None).run(NNsight(module), base=torch.ones(1, 3))
    lines = result.code().splitlines()
    assert lines[:2] == [
        "model = ...  # the wrapped model that the recipe was run on",
        "prompt = ...  # the input that the recipe was run on",
    ]
    check(result, model=NNsight(module), prompt=torch.ones(1, 3))


def save_tiny_gpt2(folder):
    """A folder with a model of one layer and a tokenizer of six words, as `from_pretrained` reads it."""
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=6, n_positions=8, n_embd=8, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
    GPT2LMHeadModel(config).save_pretrained(folder)
    words = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: i for i, word in enumerate("abcdef")}, unk_token="a")
    )
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="a", eos_token="a").save_pretrained(folder)
    return folder
