"""Which way a sweep takes, that it says why, and that unsound reuse is noticed."""

import pytest
import torch
from torch import nn

from nnsight_lab import NNsight
from nnsight_lab.experiments import ExperimentError, LogitDiff, Patch, Zero
from nnsight_lab.experiments.sweeping import BATCH, ROLLING, SINGLE, SUFFIX, run_sweep
from nnsight_lab.experiments.sweeps import Sweep, sweep

from .sweep_models import BASE, SOURCE, edited_logits, tiny

METRIC = LogitDiff(7, 9)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 16)

    def forward(self, hidden, board):
        mixed = hidden + torch.tanh(self.linear(hidden)).cumsum(1)
        return mixed + self.read(board, mixed)

    def read(self, board, mixed):
        return 0


class Talking(Layer):
    """Layers that also hand on a tensor beside the residual stream: the third reads what the first wrote."""

    def read(self, board, mixed):
        told = board.get("told")
        board["told"] = mixed
        return 0 if told is None or told.shape != mixed.shape else 0.5 * told.flip(-1)


class Remembering(Layer):
    """Layers that read the prompt's length off the tensor they were given first: a batch of rows breaks them."""

    def read(self, board, mixed):
        if mixed.shape[0] != 1:
            raise ValueError("one row at a time")
        return 0


class Toy(nn.Module):
    def __init__(self, kind: type[Layer]) -> None:
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.blocks = nn.ModuleList([kind() for _ in range(4)])
        self.head = nn.Linear(16, 32)

    def forward(self, input_ids):
        hidden = self.embed(input_ids)
        board: dict = {}
        for block in self.blocks:
            hidden = block(hidden, board)
        return self.head(hidden)


def toy(kind):
    from nnsight_lab import LanguageModel

    torch.manual_seed(0)
    return LanguageModel(Toy(kind))


def expected(module, site, position):
    def zero(value):
        value[:, position] = 0
        return value

    kept = []

    def hook(_module, _args, output):
        return zero(output.clone())

    handle = module.get_submodule(site).register_forward_hook(hook)
    with torch.no_grad():
        kept.append(module(torch.tensor([BASE]))[0, -1].double())
    handle.remove()
    return float(kept[0][7] - kept[0][9])


@pytest.mark.parametrize(("kind", "method"), [(Layer, ROLLING), (Talking, BATCH), (Remembering, SINGLE)])
def test_cross_talk_between_layers_is_noticed(kind, method):
    model = toy(kind)
    result = sweep(model, Zero(site="blocks.*"), base=BASE, metric=METRIC, progress=False)
    assert result.method == method, result.notes
    assert any("cache" in note for note in result.notes)
    if kind is Talking:
        assert any("off by" in note for note in result.notes)
    for layer in range(4):
        for position in range(9):
            want = expected(model._model, f"blocks.{layer}", position)
            assert float(result.values[layer, position]) == pytest.approx(want, abs=1e-4)


def test_layers_that_share_weights_run_whole():
    model = tiny("albert")
    site = "albert.encoder.albert_layer_groups.0.albert_layers.0.attention"
    result = sweep(model, Zero(site=site, call=2), base=BASE, metric=METRIC, progress=False)
    assert result.method == BATCH
    assert any("No prefix is reused" in note for note in result.notes)
    module = model._model
    for position in range(9):
        calls = []

        def zero_third(_module, _args, output, position=position, calls=calls):
            calls.append(None)
            if len(calls) != 3:
                return output
            changed = output[0].clone()
            changed[:, position] = 0
            return (changed, *output[1:])

        handle = module.get_submodule(site).register_forward_hook(zero_third)
        with torch.no_grad():
            logits = module(torch.tensor([BASE])).logits[0, -1].double()
        handle.remove()
        assert float(result.values[0, position]) == pytest.approx(float(logits[7] - logits[9]), abs=1e-4)


def test_sites_outside_the_layers_run_whole():
    model = tiny("llama")
    result = sweep(
        model, Zero(site="x"), sites=["model.embed_tokens", "model.norm"], base=BASE, metric=METRIC, progress=False
    )
    assert result.method == BATCH
    assert any("outside the layers" in note for note in result.notes)
    for i, site in enumerate(("model.embed_tokens", "model.norm")):

        def zero(value):
            value[:, 8] = 0
            return value

        logits = edited_logits(model._model, site, zero, BASE)
        assert float(result.values[i, 8]) == pytest.approx(float(logits[7] - logits[9]), abs=1e-4)


def test_cells_that_change_nothing_are_the_clean_run():
    model = tiny("llama")
    result = sweep(model, Patch(site="model.layers.*"), base=BASE, source=SOURCE, metric=METRIC, progress=False)
    # The prompts share their first token, and after the last layer only the last position is read.
    assert result.values[:, 0].tolist() == [result.baseline] * 4
    assert result.values[-1, :-1].tolist() == [result.baseline] * 8
    assert any(note.startswith("11 cells leave the clean run") for note in result.notes)


def test_nan_is_shown_and_told_from_not_done():
    model = tiny("llama")
    with torch.no_grad():
        model._model.model.layers[2].mlp.down_proj.weight[0, 0] = float("inf")
    plan = Sweep(step=Zero(site="model.layers.*.mlp"), base=BASE, metric=METRIC, positions=(2, 8))
    result = run_sweep(plan, model, progress=False)
    assert result.complete
    assert result.values.isnan().any()
    assert result.best() == [] or all(value == value for _, value in result.best())


def test_a_long_prompt_crosses_the_sliding_window():
    model = tiny("gemma2")
    base = tuple(range(2, 26))
    result = sweep(model, Zero(site="model.layers.*"), base=base, metric=METRIC, positions=(3, 11, 22), progress=False)
    assert result.method == SUFFIX, result.notes
    for layer in range(4):
        for j, position in enumerate((3, 11, 22)):

            def zero(value, position=position):
                value[:, position] = 0
                return value

            logits = edited_logits(model._model, f"model.layers.{layer}", zero, base)
            assert float(result.values[layer, j]) == pytest.approx(float(logits[7] - logits[9]), abs=2e-4)


def test_a_model_without_logits_is_refused():
    class Total(nn.Module):
        def forward(self, ids):
            return ids.sum().float()

    with pytest.raises(ExperimentError, match="returns no logits"):
        sweep(NNsight(Total()), Zero(site=""), base=(1, 2), metric=METRIC, positions=None, progress=False)


def test_any_module_from_token_ids_to_logits_will_do():
    torch.manual_seed(0)
    model = NNsight(Toy(Layer))
    result = sweep(model, Zero(site="blocks.*"), base=BASE, metric=METRIC, positions=(4,), progress=False)
    for layer in range(4):
        assert float(result.values[layer, 0]) == pytest.approx(expected(model._model, f"blocks.{layer}", 4), abs=1e-4)
