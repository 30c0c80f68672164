"""Importing the package is cheap, and its parts depend on each other in one direction."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import nnsight_lab

ROOT = Path(nnsight_lab.__file__).parent

# A part may import those of a lower level, and itself. `None` is the package's own `__init__`.
LEVELS = {
    "plots": 0,
    "engine": 0,
    "models": 1,
    "demo": 2,
    "experiments": 3,
    "remote": 5,
    "widgets": 6,
    None: 7,
    "cli": 8,
}

HEAVY = ("transformers", "accelerate", "IPython", "ipykernel", "jupyterlab", "plotly", "pandas", "ray", "anywidget",
         "ipywidgets", "traitlets", "safetensors.torch", "tokenizers", "matplotlib")  # fmt: skip

# What the engine may use beside the standard library.
ENGINE_MAY_USE = {"torch", "greenlet"}


def modules():
    return sorted(ROOT.rglob("*.py"))


def part_of(path):
    folder = path.relative_to(ROOT).parts[0]
    return None if folder.endswith(".py") else folder


def imports(path):
    """Absolute names that the file imports, wherever the statement stands, but not for type checking alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = ("nnsight_lab", *path.relative_to(ROOT).parts[:-1])
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*above, *([node.module] if node.module else [])))
            yield from (f"{base}.{alias.name}" for alias in node.names)


def test_every_part_has_a_level():
    assert {part_of(path) for path in modules()} <= set(LEVELS)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_part_imports_one_above_it(path):
    part = part_of(path)
    upward = []
    for name in imports(path):
        if not name.startswith("nnsight_lab."):
            continue
        target = name.split(".")[1]
        target = target if target in LEVELS else None
        if target != part and LEVELS[target] >= LEVELS[part]:
            upward.append(name)
    assert upward == []


def test_an_upward_import_would_be_found(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "engine").mkdir()
    path = tmp_path / "engine" / "bad.py"
    path.write_text("def late():\n    from ..models import LanguageModel\n")
    assert list(imports(path)) == ["nnsight_lab.models.LanguageModel"]
    with pytest.raises(AssertionError):
        test_no_part_imports_one_above_it(path)


@pytest.mark.parametrize("path", [path for path in modules() if part_of(path) == "engine"], ids=lambda path: path.name)
def test_the_engine_uses_torch_and_greenlet_only(path):
    foreign = {name.split(".")[0] for name in imports(path)} - set(sys.stdlib_module_names) - {"nnsight_lab"}
    assert foreign <= ENGINE_MAY_USE


def loaded_after(statement):
    script = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT.parent)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy():
    alone = loaded_after("import torch")
    assert {name for name in loaded_after("import nnsight_lab") - alone if name.startswith(HEAVY)} == set()


def test_tracing_a_module_loads_nothing_heavy():
    alone = loaded_after("import torch; from torch import nn; nn.Linear(1, 1)(torch.ones(1))")
    traced = loaded_after(
        "import torch\nfrom torch import nn\nfrom nnsight_lab import NNsight\n"
        "model = NNsight(nn.Sequential(nn.Linear(1, 1)))\n"
        "with model.trace(torch.ones(1)):\n    model[0].output.save()\n"
    )
    assert {name for name in traced - alone if name.startswith(HEAVY)} == set()


def test_language_models_load_at_first_use():
    assert "transformers" not in loaded_after("import nnsight_lab\nnnsight_lab.LanguageModel")
    assert "nnsight_lab.models" in loaded_after("import nnsight_lab\nnnsight_lab.LanguageModel")


@pytest.mark.parametrize("part", ["experiments", "plots", "demo"])
def test_parts_load_at_first_use_without_what_is_heavy(part):
    alone = loaded_after("import torch")
    assert f"nnsight_lab.{part}" not in loaded_after("import nnsight_lab")
    after = loaded_after(f"import nnsight_lab\nnnsight_lab.{part}")
    assert f"nnsight_lab.{part}" in after
    assert {name for name in after - alone if name.startswith(HEAVY)} == set()


def test_every_exported_name_exists():
    for name in nnsight_lab.__all__:
        assert getattr(nnsight_lab, name) is not None
    assert set(nnsight_lab.__all__) <= set(dir(nnsight_lab))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        nnsight_lab.nothing
