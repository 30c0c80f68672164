"""JupyterLab with the extension of this environment, and a notebook open in a browser's page.

Cells are written before the page opens; what the page shows is found by roles and names.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect

from .server import Server

# A first kernel imports torch, on a machine that may be busy.
SLOW = 90_000
NEWS = "@jupyterlab/apputils-extension/notification.jupyterlab-settings"


@dataclass(frozen=True)
class JupyterLab:
    """A running JupyterLab and the folder whose files it shows."""

    server: Server
    folder: Path

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[JupyterLab]:
        with tempfile.TemporaryDirectory(prefix="nnsight-lab-jupyterlab-") as scratch:
            folder = Path(scratch)
            _write_settings(folder, NEWS, {"fetchNews": "false", "checkForUpdates": False})
            with Server.running("jupyterlab", folder, ["--LabApp.expose_app_in_browser=True"]) as server:
                yield cls(server, folder)

    def set(self, name: str, settings: dict[str, object]) -> None:
        """Write a plugin's settings; a page that is opened afterwards has them."""
        _write_settings(self.folder, name, settings)

    def write(self, name: str, cells: list[str]) -> None:
        """Write a notebook of code cells."""
        made = [
            {
                "cell_type": "code",
                "id": f"cell-{number}",
                "metadata": {},
                "execution_count": None,
                "outputs": [],
                "source": code,
            }
            for number, code in enumerate(cells)
        ]
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        whole = {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
        (self.folder / "root" / name).write_text(json.dumps(whole), encoding="utf-8")

    def open(self, browser: Browser, name: str, *, width: int = 1400, height: int = 900) -> OpenNotebook:
        """The notebook in a page of its own; its kernel may still be starting."""
        context = browser.new_context(viewport={"width": width, "height": height})
        page = context.new_page()
        opened = OpenNotebook(page, name)
        page.on("pageerror", lambda error: opened.errors.append(str(error)))
        page.goto(f"{self.server.url}/lab/workspaces/{Path(name).stem}/tree/{name}?token={self.server.token}&reset")
        expect(opened.panel).to_be_visible(timeout=SLOW)
        return opened


def _write_settings(folder: Path, name: str, settings: dict[str, object]) -> None:
    path = folder / "settings" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings), encoding="utf-8")


@dataclass
class OpenNotebook:
    """One notebook in JupyterLab."""

    page: Page
    name: str
    errors: list[str] = field(default_factory=list)

    @property
    def panel(self) -> Locator:
        return self.page.locator(".jp-NotebookPanel")

    @property
    def cells(self) -> Locator:
        return self.panel.locator(".jp-Cell")

    def idle(self) -> None:
        """Wait until the kernel is connected and does nothing."""
        self.page.wait_for_function(
            """async () => {
              const { sessionContext } = window.jupyterapp?.shell.currentWidget ?? {};
              await sessionContext?.ready;
              const kernel = sessionContext?.session?.kernel;
              return kernel?.connectionStatus === "connected" && kernel.status === "idle";
            }""",
            timeout=SLOW,
        )

    def run_all(self) -> None:
        self.idle()
        self.command("notebook:run-all-cells")
        expect(self.cells.first.locator(".jp-InputPrompt").first).to_have_text(re.compile(r"\d"), timeout=SLOW)
        self.idle()

    def activate(self) -> None:
        """Make the notebook's tab the current one, as a click on it does."""
        self.page.get_by_role("main").get_by_role("tab", name=self.name).click()

    def output(self, cell: int) -> str:
        """What a cell printed."""
        return self.cells.nth(cell).locator(".jp-OutputArea-output").inner_text(timeout=SLOW)

    def command(self, name: str, args: dict[str, object] | None = None) -> None:
        """Run a command of the application."""
        self.page.evaluate("([name, args]) => void window.jupyterapp.commands.execute(name, args)", [name, args or {}])

    def close(self) -> None:
        self.page.context.close()
