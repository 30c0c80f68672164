"""The page for nnsight's users: its blocks run and print what they say, and its list of what is missing is right."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import nnsight_lab
from nnsight_lab import NNsight, compat

PAGE = (Path(__file__).parents[1] / "docs" / "migrating-from-nnsight.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
ROWS = PAGE.split("## Not here yet\n", 1)[1].split("\n## ", 1)[0].splitlines()
MISSING = "\n".join(row.split(" | ")[0] for row in ROWS if row.startswith("| "))  # what, without what to do instead


def test_blocks_run_and_print_what_their_comments_say() -> None:
    code = "\n".join(BLOCKS)
    expected = re.findall(r"^print\(.*\)  # (.*)$", code, flags=re.MULTILINE)
    assert len(expected) == code.count("print(") >= 5
    # In a process of its own: standing in for nnsight concerns every object.
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(?:tracer|model)\.(\w+)", MISSING)) - {"result", "cache"}))
def test_what_is_listed_is_not_here(name: str) -> None:
    model = NNsight(nn.Linear(2, 2))
    with model.trace(torch.ones(1, 2)) as tracer:
        model.output
    for place in (model, tracer, nnsight_lab.LanguageModel):
        assert not hasattr(place, name)


@pytest.mark.parametrize(
    "name", ["CONFIG", "VisionLanguageModel", "DiffusionModel", "TransformersModel", "Object", "whoami", "register"]
)
def test_names_of_the_package_that_are_listed_are_not_here(name: str) -> None:
    assert f"`{name}`" in MISSING
    assert not hasattr(nnsight_lab, name)


def test_the_names_that_the_stand_in_has_are_listed() -> None:
    text = PAGE.split("## Running code unmodified\n", 1)[1]
    for module, names in compat._NAMES.items():
        assert f"`{module}`" in text
        for name in names:
            assert name.startswith("_") or f"`{name}`" in text
