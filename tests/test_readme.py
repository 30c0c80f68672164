"""README's Python blocks run in order, in one interpreter, and its listing is what is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_readme_blocks_run(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) >= 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    listing = re.search(r"```\n( +\* def forward.*?)```", README, flags=re.DOTALL)
    assert listing is not None
    assert listing.group(1).strip() in printed
    assert "\n London\n" in printed
    assert "Berlin" in printed.split("London", 1)[1]
