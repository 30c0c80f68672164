"""One version, and a lock file that any registry can serve."""

import json
import tomllib
from pathlib import Path

import nnsight_lab

ROOT = Path(__file__).parents[1]


def test_package_and_page_have_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))
    lock = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))
    assert {project["version"], page["version"], lock["version"]} == {nnsight_lab.__version__}


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))
    assert len(lock["packages"]) > 10
    assert [path for path, package in lock["packages"].items() if "resolved" in package] == []
