"""Three ways of having no effect, told apart."""

import copy

import pytest
import torch
from torch import nn

from nnsight_lab import LanguageModel, NNsight
from nnsight_lab.demo import BRANDENBURG, EIFFEL
from nnsight_lab.experiments import Patch, Recipe, Replace, Scale, Zero
from nnsight_lab.experiments.reach import reaching


def outcome(model, *steps, base=EIFFEL):
    return [report.outcome for report in Recipe(base=base, steps=steps).run(model).sites]


def test_an_operation_on_a_branch_not_taken_never_ran(atlas):
    site = "transformer.h.0.attn.source.self_q_attn_0"
    (report,) = Recipe(base=EIFFEL, steps=[Zero(site)]).run(atlas).sites
    assert report.outcome == "never ran"
    assert not report.ran
    assert "branch this forward did not take" in report.message


def test_a_call_beyond_the_last_never_ran(atlas):
    (report,) = Recipe(base=EIFFEL, steps=[Zero("transformer.h.0", call=1)]).run(atlas).sites
    assert report.outcome == "never ran"
    assert "Call 1" in report.message


def test_the_last_mlp_at_an_earlier_position_cannot_reach_the_last_logits(atlas):
    assert outcome(atlas, Zero("transformer.h.11.mlp", positions=[2])) == ["no downstream effect"]
    assert outcome(atlas, Zero("transformer.h.11.mlp", positions=[-1])) == ["changed"]


def test_an_earlier_layer_at_an_earlier_position_does_reach_them(atlas):
    assert outcome(atlas, Zero("transformer.h.2.mlp", positions=[2])) == ["changed"]


def test_an_edit_that_leaves_the_value_as_it_was_is_zero_to_rounding(atlas):
    assert outcome(atlas, Scale("transformer.h.2.mlp", factor=1.0)) == ["effect zero to rounding"]


def test_an_edit_that_a_later_one_overwrites_has_no_downstream_effect(atlas):
    site = "transformer.h.5.mlp"
    found = outcome(atlas, Zero(site, positions=[1]), Replace(site, value=0.5, positions=[1, 2]))
    assert found == ["no downstream effect", "changed"]


class Parts(nn.Module):
    """Values that are dropped, rounded away, gated off by numbers, and used through a decision only."""

    def __init__(self):
        super().__init__()
        self.unused = nn.Linear(4, 4)
        self.used = nn.Linear(4, 3)
        self.dead = nn.ReLU()
        self.deciding = nn.Linear(4, 4)

    def forward(self, x):
        self.unused(x)
        off = self.dead(-x.abs() - 1)
        choice = self.deciding(x).argmax(-1, keepdim=True)
        return self.used(x) + off.sum(-1, keepdim=True) + 0.0 * choice + (choice == 0)


@pytest.fixture
def parts():
    torch.manual_seed(0)
    return NNsight(Parts())


def of_parts(parts, *steps):
    return [report.outcome for report in Recipe(steps=steps).run(parts, base=torch.ones(2, 4)).sites]


def test_a_value_that_nobody_reads_has_no_downstream_effect(parts):
    assert of_parts(parts, Zero("unused")) == ["no downstream effect"]


def test_a_value_that_is_zero_anyway_is_not_called_unread(parts):
    """The gradient with respect to the input of a dead ReLU is zero, and yet the output depends on it."""
    assert of_parts(parts, Scale("dead", io="input", factor=0.5)) == ["effect zero to rounding"]


def test_a_value_that_only_decides_is_not_called_unread(parts):
    """No gradient passes an argmax, and yet the output depends on its argument."""
    assert of_parts(parts, Scale("deciding", factor=2.0)) == ["effect zero to rounding"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_does_not_hide_an_effect_nor_the_lack_of_one(atlas, dtype):
    low = LanguageModel(copy.deepcopy(atlas._model).to(dtype), tokenizer=atlas.tokenizer)
    assert outcome(low, Zero("transformer.h.11.mlp", positions=[2])) == ["no downstream effect"]
    (report,) = (
        Recipe(base=EIFFEL, source=BRANDENBURG, steps=[Patch("transformer.h.1", positions=[1, 2])]).run(low).sites
    )
    assert report.outcome == "changed"
    assert outcome(low, Scale("transformer.h.2.mlp", factor=1.0)) == ["effect zero to rounding"]


def test_one_replacement_that_shows_is_enough():
    clean = torch.zeros(3)

    def scrambled(step, seed):
        return clean + (seed == 2) * step

    assert reaching([0, 1], clean, clean, scrambled) == {0: False, 1: True}


def test_the_question_can_be_left_out(atlas):
    recipe = Recipe(base=EIFFEL, steps=[Zero("transformer.h.11.mlp", positions=[2])])
    assert recipe.run(atlas, reach=False).sites[0].outcome == "effect zero to rounding"
