"""`flatten` names every leaf of an output; `bit_identical` finds every difference and no other."""

from dataclasses import dataclass

import pytest
import torch
from transformers import DynamicCache
from transformers.modeling_outputs import BaseModelOutputWithPast

from tests.zoo import bit_identical, flatten

NAN = float("nan")


@dataclass
class _Pair:
    left: object
    right: object


def test_leaves_of_nested_containers_are_named_by_their_path():
    x = torch.zeros(2)
    output = BaseModelOutputWithPast(last_hidden_state=x, hidden_states=(x + 1, {"deep": [x + 2, 3]}))
    paths = [path for path, _ in flatten(output)]
    assert paths == [
        "last_hidden_state",
        "hidden_states[0]",
        "hidden_states[1].deep[0]",
        "hidden_states[1].deep[1]",
    ]


def test_a_cache_is_walked_down_to_its_tensors():
    cache = DynamicCache()
    cache.update(torch.ones(1, 1, 2, 4), torch.zeros(1, 1, 2, 4), 0)
    leaves = dict(flatten({"cache": cache}))
    assert torch.equal(leaves["cache.layers[0].keys"], torch.ones(1, 1, 2, 4))
    assert torch.equal(leaves["cache.layers[0].values"], torch.zeros(1, 1, 2, 4))


def test_an_object_that_holds_itself_ends():
    loop = _Pair(torch.zeros(1), None)
    loop.right = loop
    assert [path for path, _ in flatten(loop)] == ["left"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (torch.tensor([1.0, NAN]), torch.tensor([1.0, NAN])),
        (torch.tensor([1, 2]), torch.tensor([1, 2])),
        (torch.tensor([complex(1, NAN)]), torch.tensor([complex(1, NAN)])),
        (torch.tensor([float("inf")]), torch.tensor([float("inf")])),
        (torch.zeros(0, 3), torch.zeros(0, 3)),
        (NAN, NAN),
        ("a", "a"),
        (None, None),
        (_Pair(1, torch.ones(1)), _Pair(1, torch.ones(1))),
    ],
)
def test_same_values_have_no_difference(first, second):
    assert bit_identical({"x": first}, {"x": second}) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (torch.tensor([1.0]), torch.tensor([1.0 + 2**-23])),
        (torch.tensor([0.0]), torch.tensor([-0.0])),
        (torch.tensor([NAN, 1.0]), torch.tensor([1.0, NAN])),
        (torch.tensor([NAN]), torch.tensor([0.0])),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
        (torch.zeros(2, 1), torch.zeros(1, 2)),
        (torch.tensor([1]), torch.tensor([2])),
        (torch.zeros(1), 0.0),
        (1, True),
        (1.0, 2.0),
        ("a", "b"),
        (None, 0),
    ],
)
def test_a_difference_is_reported_at_its_path(first, second):
    assert bit_identical([0, {"x": first}], [0, {"x": second}]) == ["[1].x"]


def test_a_leaf_that_only_one_side_has_is_a_difference():
    x = torch.zeros(1)
    assert bit_identical({"a": x, "b": x}, {"a": x}) == ["b"]
    assert bit_identical((x,), (x, x)) == ["[1]"]
