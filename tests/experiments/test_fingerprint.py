"""A recipe made on one version of a function, run on another."""

import importlib.util
import itertools

import pytest
import torch

from nnsight_lab import NNsight
from nnsight_lab.experiments import Capture, MovedOperationError, Recipe, Zero

HEAD = """
import torch
from torch import nn

def attend(query, key):
    weights = torch.softmax(query @ key.transpose(0, 1), dim=-1)
    return torch.relu(weights) @ key

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.lift = nn.Linear(4, 4)
        self.fold = nn.Linear(4, 4)

"""

OLD = """
    def forward(self, hidden_states, past_key_values=None):
        # the first version
        if past_key_values is not None:
            updated = past_key_values.is_updated.get(0)
        key_states = self.lift(hidden_states).view(-1, 4)
        value_states = self.fold(key_states.tanh()).view(-1, 4)
        attention = attend
        attn_output = attention(key_states, value_states)
        return torch.relu(attn_output).clamp(max=2.0)
"""

_counter = itertools.count()


@pytest.fixture
def block(tmp_path):
    """Makes a wrapped `Block` whose forward is the given text."""

    def make(forward, head=HEAD):
        name = f"block_{next(_counter)}"
        path = tmp_path / f"{name}.py"
        path.write_text(head + forward)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return NNsight(module.Block())

    return make


X = torch.arange(12.0).view(3, 4) / 10


def made_on(model, *sites):
    """A recipe that captures at `sites`, with the fingerprints of `model`."""
    return Recipe(steps=[Capture(site) for site in sites], metric=None).run(model, base=X).recipe


def found_in(recipe, model):
    """The sites that the recipe has on another model, and the notes."""
    result = recipe.run(model, base=X)
    return [step.site for step in result.recipe.steps], result.notes


def test_renamed_variables_move_labels_and_the_recipe_follows(block):
    named = ("source.past_key_values_is_updated_get_0", "source.attention_0", "source.key_states_tanh_0")
    recipe = made_on(block(OLD), *named)
    new = OLD.replace("past_key_values", "cache").replace("attention", "interface").replace("key_states", "keys")
    sites, notes = found_in(recipe, block(new))
    assert sites == ["source.cache_is_updated_get_0", "source.interface_0", "source.keys_tanh_0"]
    assert any("past_key_values_is_updated_get_0" in note and "cache_is_updated_get_0" in note for note in notes)


def test_comments_lines_annotations_and_docstrings_do_not_matter(block):
    recipe = made_on(block(OLD), "source.view_1", "source.torch_relu_0")
    new = OLD.replace("past_key_values=None", "past_key_values: dict | None = None").replace(
        "        # the first version\n", '        """The second version."""\n\n'
    )
    sites, notes = found_in(recipe, block(new))
    assert sites == ["source.view_1", "source.torch_relu_0"]
    assert notes == ()


def test_an_added_call_of_the_same_name_does_not_take_the_label(block):
    """`view_0` of the new version is another operation than `view_0` of the old one."""
    recipe = made_on(block(OLD), "source.view_0", "source.torch_relu_0")
    new = OLD.replace(
        "        key_states =",
        "        hidden_states = torch.relu(self.lift.weight[0]).view(1, -1) + hidden_states\n        key_states =",
    )
    model = block(new)
    sites, _ = found_in(recipe, model)
    assert sites == ["source.view_1", "source.torch_relu_1"]
    with torch.no_grad():
        shifted = torch.relu(model._model.lift.weight[0]) + X
        expected = model._model.lift(shifted).view(-1, 4)
    kept = recipe.run(model, base=X).activations
    assert torch.equal(kept["source.view_1"], expected)


def test_a_call_that_is_gone_stops_with_candidates(block):
    recipe = made_on(block(OLD), "source.self_fold_0")
    new = OLD.replace("self.fold(key_states.tanh())", "self.refold(key_states.tanh())")
    with pytest.raises(MovedOperationError, match=r"steps\[0\].site .*self_fold_0 .*none of its operations") as caught:
        found_in(recipe, block(new, HEAD.replace("self.fold", "self.refold")))
    assert caught.value.candidates[0] == "self_refold_0"
    assert caught.value.site.endswith("source.self_fold_0")


def test_a_call_that_has_become_two_stops_with_both(block):
    recipe = made_on(block(OLD), "source.key_states_tanh_0")
    new = OLD.replace("key_states.tanh()", "key_states.tanh() + key_states.tanh()")
    with pytest.raises(MovedOperationError, match="several operations of it are alike") as caught:
        found_in(recipe, block(new))
    assert set(caught.value.candidates[:2]) == {"key_states_tanh_0", "key_states_tanh_1"}


def test_one_left_of_two_stops(block):
    """Which of the two it was cannot be told from the one that is left."""
    old = """
    def forward(self, x):
        a = torch.relu(x).tanh()
        b = torch.relu(x).tanh()
        return self.lift(a) + self.fold(b)
"""
    new = """
    def forward(self, x):
        a = torch.relu(x).tanh()
        return self.lift(a) + self.fold(a + 1)
"""
    with pytest.raises(MovedOperationError):
        found_in(made_on(block(old), "source.torch_relu_1"), block(new))


TWINS = """
    def forward(self, x):
        first = self.lift(x)
        second = self.fold(x)
        first = first.tanh()
        second = second.tanh()
        return first + second
"""


def test_operations_that_have_changed_places_are_not_mixed_up(block):
    """Apart from the names of variables, the two lines are the same: what stands first now stood second then."""
    recipe = made_on(block(TWINS), "source.first_tanh_0")
    new = """
    def forward(self, x):
        first = self.lift(x)
        second = self.fold(x)
        second = second.tanh()
        first = first.tanh()
        return first * second
"""
    with pytest.raises(MovedOperationError) as caught:
        found_in(recipe, block(new))
    assert {"first_tanh_0", "second_tanh_0"} <= set(caught.value.candidates)


def test_inside_a_called_function(block):
    model = block(OLD)
    recipe = made_on(model, "source.attention_0.source.torch_softmax_0")
    new = HEAD.replace("    weights =", "    query = torch.softmax(query, dim=-1) * 0 + query\n    weights =")
    sites, _ = found_in(recipe, block(OLD.replace("attention", "interface"), new))
    assert sites == ["source.interface_0.source.torch_softmax_1"]


def test_bound_names_and_the_only_return(block):
    recipe = made_on(block(OLD), "source.var_attn_output_0", "source.return_0")
    new = OLD.replace("attn_output", "mixed").replace(".clamp(max=2.0)", ".clamp(max=2.0) + 0.0")
    sites, _ = found_in(recipe, block(new))
    assert sites == ["source.var_mixed_0", "source.return_0"]


def test_a_lone_operation_of_the_same_kind_elsewhere_is_not_taken_for_it(block):
    """One `tanh` then, one now, but of another value in another place; and one `+` then and now likewise."""
    old = """
    def forward(self, x):
        a = self.lift(x)
        b = a.tanh()
        c = self.fold(b)
        return c + x
"""
    new = """
    def forward(self, x):
        a = self.lift(x)
        c = self.fold(a + 1)
        d = torch.relu(c)
        return torch.relu(d.tanh())
"""
    for site in ("source.a_tanh_0", "source.op_add_0"):
        recipe = made_on(block(old), site)
        with pytest.raises(MovedOperationError):
            found_in(recipe, block(new))


def test_fingerprints_survive_json_and_edit_the_same_operation(block):
    old = block(OLD)
    recipe = Recipe(steps=[Zero("source.view_1", index=[0])], metric=None).run(old, base=X).recipe
    loaded = Recipe.from_json(recipe.to_json())
    assert loaded == recipe
    more = "        unused = hidden_states.view(-1)\n        attention ="
    renamed = block(OLD.replace("value_states", "values").replace("        attention =", more))
    before = recipe.run(old, base=X)
    after = loaded.run(renamed, base=X)
    assert torch.equal(before.edited_logits, after.edited_logits)
    assert after.max_difference > 0


def test_a_recipe_without_fingerprints_takes_labels_as_they_are(block):
    sites, _ = found_in(Recipe(steps=[Capture("source.view_0")], metric=None), block(OLD))
    assert sites == ["source.view_0"]


def test_binding_takes_fingerprints(atlas):
    site = "transformer.h.0.attn.source.attention_interface_0.source.torch_nn_functional_scaled_dot_product_attention_0"
    bound = Recipe(base="The Eiffel Tower", steps=[Zero(site)]).bind(atlas)
    assert set(bound.fingerprints) == {site, site.rpartition(".source.")[0]}
    assert bound.bind(atlas) == bound
    by_layer = Recipe(
        steps=[Zero("transformer.h.0.mlp.source.self_act_0"), Zero("transformer.h.5.mlp.source.self_act_0")]
    )
    first, second = by_layer.bind(atlas).fingerprints.values()
    assert first == second
