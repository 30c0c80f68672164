"""Functions whose text cannot be had, and text that is no longer the function's."""

import importlib.util
import linecache
import os

import pytest
import torch
from torch import nn

from nnsight_lab import NNsight, SourceUnavailableError
from tests.engine.source_tools import define

X = torch.tensor([1.0, -2.0])

CELL = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        return torch.relu(x)
"""


def read(module, label="torch_relu_0"):
    model = NNsight(module)
    with model.trace(X):
        value = getattr(model.source, label).output
    return value


def test_code_from_exec_says_how_to_give_it_a_text():
    with pytest.raises(SourceUnavailableError, match=r"Net\.forward cannot be found.*linecache"):
        NNsight(define(CELL, name="Net", registered=False)()).source.torch_relu_0


def test_code_whose_text_is_registered_works():
    assert torch.equal(read(define(CELL, name="Net")()), torch.relu(X))


def test_a_class_that_a_notebook_defines_again_is_listed_anew():
    first = define(CELL, name="Net")()
    second = define(CELL.replace("torch.relu(x)", "torch.neg(torch.abs(x))"), name="Net")()
    model = NNsight(first)
    assert model.source.listing.labels == ("torch_relu_0",)
    first.__class__ = type(second)
    assert model.source.listing.labels == ("torch_abs_0", "torch_neg_0")
    with model.trace(X) as tracer:
        assert torch.equal(model.source.torch_abs_0.output, X.abs())
    assert torch.equal(tracer.result, -X.abs())
    type(second).forward = type(define(CELL, name="Net")()).forward
    with model.trace(X) as tracer:
        assert torch.equal(model.source.torch_relu_0.output, torch.relu(X))


def test_new_code_put_into_the_same_function_is_listed_anew():
    module = define(CELL, name="Net")()
    model = NNsight(module)
    with model.trace(X):
        model.source.torch_relu_0.output
    type(module).forward.__code__ = define(CELL.replace("relu", "neg"), name="Net").forward.__code__
    assert model.source.listing.labels == ("torch_neg_0",)
    with model.trace(X) as tracer:
        assert torch.equal(model.source.torch_neg_0.output, -X)
    assert torch.equal(tracer.result, -X)


def load(path):
    spec = importlib.util.spec_from_file_location("changing_module", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "new",
    [
        CELL.replace("relu", "neg"),
        CELL.replace("(x)\n", "(x) + 1\n"),
        CELL.replace("relu(x)", "relu(x, )") + "\n".join(["", "VALUE = 1"]),
        CELL.replace("import torch\n", "import torch\n\n\n\n", 1),
        CELL.replace("def forward(self, x)", "def forward(self, y)"),
        CELL.replace("        return", "        return ("),
        "",
    ],
    ids=["callee", "constant", "nothing that matters", "moved", "argument", "broken", "emptied"],
)
def test_a_file_that_changed_since_import_is_not_listed(tmp_path, new, request):
    path = tmp_path / "changing_module.py"
    path.write_text(CELL)
    net = load(path).Net()
    path.write_text(new)
    os.utime(path, (1, 1))
    linecache.checkcache(str(path))
    if request.node.callspec.id == "nothing that matters":
        assert torch.equal(read(net), torch.relu(X))
        return
    with pytest.raises(SourceUnavailableError, match=r"changed since it was imported.*Restart|cannot be found"):
        NNsight(net).source.listing
    with NNsight(net).trace(X) as tracer:
        pass
    assert torch.equal(tracer.result, torch.relu(X))


def test_a_change_inside_a_nested_function_is_noticed(tmp_path):
    text = "def outer(x):\n    def inner(y):\n        return abs(y)\n    return inner(x)\n"
    path = tmp_path / "nested_module.py"
    path.write_text(text)
    outer = load(path).outer
    path.write_text(text.replace("abs", "len"))
    os.utime(path, (1, 1))
    net = nn.Module()
    net.forward = outer
    with pytest.raises(SourceUnavailableError, match="changed since it was imported"):
        NNsight(net).source.listing


def test_a_lambda_is_refused():
    net = nn.Module()
    net.forward = lambda x: torch.relu(x)
    with pytest.raises(SourceUnavailableError, match="is a lambda; give it a name with `def`"):
        NNsight(net).source.listing


class Scriptable(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.ReLU()

    def forward(self, x):
        return self.inner(x)


@pytest.mark.parametrize("make", [torch.jit.script, lambda module: torch.jit.trace(module, X)], ids=["script", "trace"])
@pytest.mark.filterwarnings("ignore")
def test_a_scripted_module_runs_but_has_no_source(make):
    net = make(Scriptable())
    model = NNsight(net)
    with pytest.raises(SourceUnavailableError, match="no Python source"):
        model.source.self_inner_0
    with model.trace(X) as tracer:
        pass
    assert torch.equal(tracer.result, torch.relu(X))
