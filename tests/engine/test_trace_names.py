"""How modules are addressed: attributes, numbers, paths, names that are the wrapper's own, and names that do not exist."""

import pytest
import torch
from torch import nn

from nnsight_lab import NNsight, UnknownNameError
from tests.engine.trace_toys import recorded, same, sample, toy


@pytest.fixture
def model():
    return NNsight(toy())


class Awkward(nn.Module):
    """Its children bear names that the wrapper has for itself."""

    def __init__(self):
        super().__init__()
        self.output = nn.Linear(4, 4)
        self.input = nn.Linear(4, 4)
        self.source = nn.Linear(4, 4)
        self.trace = nn.Linear(4, 4)
        self.inner = nn.Sequential(nn.Linear(4, 4))
        self.inner.skip = nn.Identity()

    def forward(self, x):
        return self.inner(self.trace(self.source(self.output(self.input(x)))))


def test_an_unknown_module_names_the_nearest(model):
    with pytest.raises(UnknownNameError, match=r"model\.h\[1\] \(Block\).*'mpl'.*'mlp'"):
        model.h[1].mpl
    with pytest.raises(AttributeError):
        model.nothing_like_this
    with pytest.raises(UnknownNameError, match=r"'embed'"):
        model.child("embde")
    with pytest.raises(UnknownNameError, match=r"model\.h\[1\] has no child module 'mpl'.*'mlp'"):
        model.get("h.1.mpl.act")


def test_an_unknown_name_raises_inside_a_trace_too(model):
    with pytest.raises(UnknownNameError, match="'mlp'"), model.trace(sample()):
        model.h[0].output
        model.h[1].mpl.output


def test_hasattr_and_getattr_with_a_default_work(model):
    assert not hasattr(model, "nothing")
    assert getattr(model, "nothing", 3) == 3
    assert hasattr(model, "embed")


@pytest.mark.parametrize("index", [3, -4, "1", 1.0, None])
def test_an_index_beyond_the_list_is_an_index_error(model, index):
    with pytest.raises(IndexError, match=r"model\.h has 3 modules"):
        model.h[index]


def test_indexing_slicing_and_iterating_a_list(model):
    assert model.h[-1] is model.h[2]
    assert model.h[0] is model.h[0]
    assert [block.path for block in model.h] == ["model.h[0]", "model.h[1]", "model.h[2]"]
    assert model.h[::-2] == [model.h[2], model.h[0]]
    assert model.h[1:] == [model.h[1], model.h[2]]
    assert len(model.h) == 3
    assert bool(NNsight(nn.ModuleList()))
    assert next(reversed(list(model.h))) is model.h[2]


def test_a_numpy_or_torch_integer_indexes_a_list(model):
    import numpy

    assert model.h[numpy.int64(1)] is model.h[1]
    assert model.h[torch.tensor(1)] is model.h[1]


def test_what_is_no_list_cannot_be_indexed_or_iterated(model):
    with pytest.raises(TypeError, match="cannot be indexed"):
        model.embed[0]
    with pytest.raises(TypeError, match="cannot be iterated"):
        list(model.embed)


def test_a_module_dict_is_addressed_by_its_keys():
    class Holds(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleDict({"a": nn.Linear(4, 4), "b-c": nn.Linear(4, 4)})

        def forward(self, x):
            return self.parts["b-c"](self.parts["a"](x))

    model = NNsight(Holds())
    x = torch.ones(1, 4)
    with model.trace(x):
        first = model.parts["a"].output
        second = model.parts["b-c"].output
    assert same(first, model._model.parts["a"](x))
    assert same(second, model._model(x))
    assert list(model.parts) == ["a", "b-c"]
    assert "a" in model.parts
    assert model.parts["b-c"].path == "model.parts['b-c']"
    assert model.parts.a is model.parts["a"]
    assert [name for name, _ in model.parts.items()] == ["a", "b-c"]


def test_a_sequential_is_indexed_and_its_named_children_too():
    model = NNsight(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    assert model[1].path == "model[1]"
    with model.trace(torch.ones(1, 4)) as tracer:
        value = model[1].output
    assert value is tracer.result


def test_paths_are_code_that_reaches_the_module(model):
    for path, envoy in model.named_modules():
        assert eval(envoy.path, {"model": model}) is envoy
        assert model.get(path) is envoy


def test_named_modules_skip_aliases_unless_asked():
    plain = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    plain.append(plain[0])
    model = NNsight(plain)
    assert [path for path, _ in model.named_modules()] == ["", "0", "1"]
    assert [path for path, _ in model.named_modules(remove_duplicate=False)] == ["", "0", "1", "2"]
    assert "[2]: Linear(in_features=4, out_features=4, bias=True) = model[0] (the same module)" in str(model)


def test_children_with_names_of_the_wrapper_are_reached_by_child_and_path():
    torch.manual_seed(0)
    model = NNsight(Awkward())
    x = torch.randn(2, 4)
    plain = model._model
    with model.trace(x) as tracer:
        first = model.child("input").output
        second = model.child("output").output
        third = model.get("source").output
        fourth = model.child("trace").output
        whole = model.output
    assert same(first, plain.input(x))
    assert same(second, plain.output(first))
    assert same(third, plain.source(second))
    assert same(fourth, plain.trace(third))
    assert whole is tracer.result


def test_printing_shows_the_spelling_of_such_children():
    model = NNsight(Awkward())
    text = str(model)
    for name in ("output", "input", "source", "trace"):
        assert f'.child("{name}"): Linear' in text
    assert model.child("output").path == 'model.child("output")'
    assert '.child("skip"): Identity' in text
    for _, envoy in model.named_modules():
        assert eval(envoy.path, {"model": model}) is envoy


def test_bert_has_an_output_module_and_an_output_value():
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    plain = BertModel(
        BertConfig(
            vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
            max_position_embeddings=20,
        )
    ).eval()  # fmt: skip
    model = NNsight(plain)
    ids = torch.tensor([[1, 2, 3]])
    with model.trace(ids):
        module = model.encoder.layer[0].child("output").output
        layer = model.encoder.layer[0].output
    with model.trace(ids):
        by_path = model.get("encoder.layer.0.output").output
    assert same(module, recorded(plain, plain.encoder.layer[0].output, ids)[0])
    assert same(module, by_path)
    expected = recorded(plain, plain.encoder.layer[0], ids)[0]
    assert same(layer[0], expected[0]) if isinstance(layer, tuple) else same(layer, expected)
    assert '.child("output"): BertOutput' in str(model)
    assert 'model.encoder.layer[0].child("output")' in [envoy.path for envoy in model.modules()]


def test_the_printed_tree_folds_equal_layers(model):
    norm = model._model.h[0].norm
    assert str(model).splitlines() == [
        "model: Toy",
        "  .embed: Linear(in_features=8, out_features=8, bias=True)",
        "  .h: ModuleList",
        "    [0] ... [2]: 3 x Block",
        f"      .norm: LayerNorm({norm.extra_repr()})",
        "      .mlp: Mlp",
        "        .up: Linear(in_features=8, out_features=16, bias=True)",
        "        .act: GELU(approximate='none')",
        "        .down: Linear(in_features=16, out_features=8, bias=True)",
        "  .unused: Linear(in_features=8, out_features=8, bias=True)",
        "  .head: Linear(in_features=8, out_features=5, bias=True)",
    ]
    assert repr(model.h[1].mlp).startswith("model.h[1].mlp: Mlp")


def test_attributes_of_the_module_are_read_and_set_through_the_wrapper(model):
    assert model.embed.in_features == 8
    assert model.embed.weight is model._model.embed.weight
    model.embed.in_features = 9
    assert model._model.embed.in_features == 9
    new = nn.Linear(8, 8)
    model.embed = new
    assert model._model.embed is new
    assert model.embed._module is new
    model.h[0].mlp = model.h[1].mlp
    assert model._model.h[0].mlp is model._model.h[1].mlp


def test_a_new_attribute_is_refused_with_the_nearest_names(model):
    with pytest.raises(UnknownNameError, match=r"nothing called 'ouptut'.*'output'"):
        model.h[0].ouptut = 3
    with pytest.raises(UnknownNameError, match=r"model\.h\[0\]\._module\.note"):
        model.h[0].note = 3


def test_dir_offers_children_and_sites(model):
    names = dir(model.h[0])
    assert {"norm", "mlp", "output", "input", "inputs", "source", "skip", "training"} <= set(names)


def test_an_attribute_error_inside_the_model_is_not_taken_for_an_unknown_name():
    class Fails(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x):
            return self.inner(x).no_such_method()

    model = NNsight(Fails())
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'no_such_method'"):
        with model.trace(torch.ones(1, 4)):
            model.output


def test_the_name_of_the_root_is_that_of_the_messages():
    model = NNsight(toy(), name="vision.encoder")
    assert model.h[1].path == "vision.encoder.h[1]"
    assert str(model).startswith("vision.encoder: Toy")
