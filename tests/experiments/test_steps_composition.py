"""Steps together, on modules that share memory, change it in place, run several times or choose what they call."""

import pytest
import torch
from torch import nn

from nnsight_lab import NNsight
from nnsight_lab.experiments import Capture, MovedOperationError, Patch, Recipe, Replace, Scale, Zero

X = torch.tensor([[1.0, -2.0, 3.0]])


def run(module, *steps, **inputs):
    return Recipe(steps=steps, metric=None).run(NNsight(module), **{"base": X, **inputs})


class Sharing(nn.Module):
    """`keep` gives its argument itself, as dropout does in evaluation."""

    def __init__(self):
        super().__init__()
        self.keep = nn.Identity()

    def forward(self, x):
        y = x * 2
        return self.keep(y) + y * 10


def test_an_edit_changes_the_value_at_its_site_only():
    assert torch.equal(run(Sharing(), Zero("keep")).edited_logits, X * 20)


class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.keep = nn.Identity()

    def forward(self, x):
        y = self.keep(x * 2)
        y += 100
        return y


def test_a_captured_value_is_that_of_the_moment():
    result = run(InPlace(), Scale("keep", factor=3.0), Capture("keep"))
    assert torch.equal(result.clean_activations["keep"], X * 2)
    assert torch.equal(result.activations["keep"], X * 6)
    assert torch.equal(result.edited_logits, X * 6 + 100)


class Pair(nn.Module):
    def forward(self, x):
        return x, x * 0


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.pair = Pair()

    def forward(self, x):
        first, second = self.pair(x)
        return first + second


def test_steps_act_in_order_whichever_way_they_name_the_element():
    steps = [Scale("pair", factor=2.0), Replace("pair", element=[0], value=0.5), Scale("pair", factor=3.0)]
    assert torch.equal(run(Holder(), *steps).edited_logits, torch.full((1, 3), 1.5))


class Looping(nn.Module):
    def __init__(self):
        super().__init__()
        self.keep = nn.Identity()

    def forward(self, x):
        total = 0
        for i in range(3):
            total = total + self.keep(x + i) * 10**i
        return total


def test_a_patch_takes_the_call_of_the_same_number():
    source = X + 5
    result = run(Looping(), Patch("keep"), source=source)
    assert torch.equal(result.edited_logits, Looping()(source))
    one = run(Looping(), Patch("keep", call=1), source=source)
    assert torch.equal(one.edited_logits, X + (source + 1) * 10 + (X + 2) * 100)


def doubled(x):
    return torch.relu(x) * 2


def squashed(x):
    return torch.relu(x.tanh() - 1)


class Choosing(nn.Module):
    """What it calls is known from a run only and may change between runs, as with attention implementations."""

    def __init__(self):
        super().__init__()
        self.functions = {"doubled": doubled, "squashed": squashed}
        self.choice = "doubled"

    def forward(self, x):
        function = self.functions[self.choice]
        return function(x)


def test_a_label_is_not_taken_for_that_of_another_function_called_in_its_place():
    module = Choosing()
    model = NNsight(module)
    recipe = Recipe(steps=[Scale("source.function_0.source.torch_relu_0", factor=3.0)], metric=None)
    result = recipe.run(model, base=X)
    assert torch.equal(result.edited_logits, torch.relu(X) * 6)
    module.choice = "squashed"
    with pytest.raises(MovedOperationError, match="torch_relu_0"):
        result.recipe.run(model, base=X)
