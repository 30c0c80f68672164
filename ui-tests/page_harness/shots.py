"""Pictures of a state in both themes, under `screenshots/states/`, to be looked at."""

from __future__ import annotations

from pathlib import Path

from .notebook import Notebook

STATES = Path(__file__).resolve().parents[1] / "screenshots" / "states"
# The theme's style sheet has come, and the page has been drawn with it.
DRAWN = """async (name) => {
  const sheet = document.getElementById("theme");
  for (let i = 0; i < 200 && !sheet.sheet?.href?.endsWith(`${name}.css`); i++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
}"""


def shot(notebook: Notebook, name: str) -> None:
    """Take `<name>-light.png` and `<name>-dark.png`; the page keeps its theme."""
    before = notebook.theme
    for theme in ("dark", "light") if before == "light" else ("light", "dark"):
        notebook.set_theme(theme)
        notebook.page.evaluate(DRAWN, theme)
        notebook.page.screenshot(path=STATES / f"{name}-{theme}.png", full_page=True)
