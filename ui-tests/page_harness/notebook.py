"""A test's notebook: the test page in a browser tab, attached to a kernel.

`run` executes a cell and waits for it; `start` does not wait, as when a cell computes on while the user clicks.
Whatever the page reports as an error (an uncaught exception, a `console.error`) is kept in `errors`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Error, Page

from .server import Server


class CellFailed(AssertionError):
    """The cell raised: name, message, and the kernel's traceback."""


@dataclass(frozen=True)
class Outcome:
    """What a cell put out: printed text, repr of its last expression, ids of the widgets displayed."""

    text: str
    result: str | None
    shown: list[str]


@dataclass
class Notebook:
    page: Page
    server: Server
    kernel: str | None
    theme: str = "light"
    errors: list[str] = field(default_factory=list)

    @classmethod
    def opened(
        cls,
        browser: Browser,
        server: Server,
        kernel: str | None,
        *,
        width: int = 1240,
        height: int = 900,
        theme: str = "light",
    ) -> Notebook:
        """A new browser window on the test page; `kernel` None has none, to show saved widgets."""
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if theme == "dark" else "light",
            permissions=["clipboard-read", "clipboard-write"],
            reduced_motion="reduce",
        )
        context.set_default_timeout(10_000)
        notebook = cls(context.new_page(), server, kernel, theme)
        notebook._listen()
        notebook.page.goto(server.page_address(kernel, theme))
        notebook.ready()
        return notebook

    def _listen(self) -> None:
        def console(message: ConsoleMessage) -> None:
            if message.type == "error":
                self.errors.append(f"console: {message.text}")

        def uncaught(error: Error) -> None:
            self.errors.append(f"uncaught: {error.stack or error.message}")

        self.page.on("console", console)
        self.page.on("pageerror", uncaught)

    def ready(self) -> None:
        self.page.evaluate("harness.ready()")

    def run(self, code: str) -> Outcome:
        """Execute a cell. Raises CellFailed."""
        outcome = self.page.evaluate("code => harness.execute(code)", code)
        return _checked(outcome)

    def value(self, expression: str) -> Any:
        """An expression's value in the kernel, by way of JSON."""
        text = self.run(f"import json as _json\nprint(_json.dumps({expression}))").text
        return json.loads(text)

    def start(self, code: str) -> None:
        """Begin a cell without waiting; `finish` waits for it, and tells where the kernel died under it."""
        self.page.evaluate("code => { window.running = harness.execute(code); window.running.catch(() => {}); }", code)

    def finish(self) -> Outcome:
        """Wait for the cell begun by `start`. Raises CellFailed."""
        return _checked(self.page.evaluate("window.running"))

    def show_again(self, widget: str) -> None:
        """A further view of a widget."""
        self.page.evaluate("id => harness.show(id)", widget)

    def reload(self) -> None:
        self.page.reload()
        self.ready()

    def set_theme(self, theme: str) -> None:
        self.page.evaluate("name => harness.setTheme(name)", theme)
        self.theme = theme

    def saved(self) -> Any:
        """What a saved notebook keeps of its widgets, for `open_saved`."""
        return self.page.evaluate("harness.save()")

    def open_saved(self, saved: Any) -> None:
        self.page.evaluate("saved => harness.open(saved)", saved)

    def close(self) -> None:
        self.page.context.close()


def _checked(outcome: Any) -> Outcome:
    if outcome["error"] is not None:
        error = outcome["error"]
        raise CellFailed(f"{error['name']}: {error['value']}\n{error['traceback']}")
    return Outcome(outcome["text"], outcome["result"], outcome["shown"])
