"""Fixtures of the browser tests: one Jupyter server, one Chromium and one kernel for the session, a page for each test.

The kernel is shared because it takes seconds to import torch; after each test its widgets are closed and its names
cleared. A test that ends a kernel asks for `own_kernel`. A test fails when its page reports an error that the test
has not announced in `expected_errors`.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from page_harness import Notebook, Server, chromium
from page_harness.server import REPOSITORY
from playwright.sync_api import Browser

SCREENSHOTS = Path(__file__).parent / "screenshots"
OPENED = pytest.StashKey[list[Notebook]]()

PRELUDE = """
import torch
from nnsight_lab import Lab, NNsight, demo
from nnsight_lab.demo import BRANDENBURG, COLOSSEUM, EIFFEL
"""
CLEAR = """
from ipywidgets import Widget as _Widget
_Widget.close_all()
get_ipython().run_line_magic("reset", "-f")
import gc as _gc
_gc.collect()
"""


def pytest_configure() -> None:
    static = REPOSITORY / "nnsight_lab" / "widgets" / "static" / "lab.js"
    sources = [path for path in (REPOSITORY / "src").rglob("*") if path.is_file()]
    if not static.exists() or static.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        subprocess.run(["node", "scripts/build-widget.mjs"], cwd=REPOSITORY, check=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call" and report.failed:
        # Before anything is torn down, so that they show what failed.
        name = re.sub(r"[^\w-]+", "-", item.name)
        for number, notebook in enumerate(item.stash.get(OPENED, [])):
            notebook.page.screenshot(path=SCREENSHOTS / "failed" / f"{name}-{number}.png", full_page=True)
    return report


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with Server.started() as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def kernel(server: Server) -> str:
    return server.start_kernel()


@pytest.fixture
def own_kernel(server: Server) -> Iterator[str]:
    """A kernel that the test may end."""
    kernel = server.start_kernel()
    yield kernel
    server.stop_kernel(kernel)


@pytest.fixture
def expected_errors() -> list[str]:
    """Regular expressions of errors that this test's pages may report."""
    return []


@pytest.fixture
def open_notebook(
    request: pytest.FixtureRequest, browser: Browser, server: Server, expected_errors: list[str]
) -> Iterator[Callable[..., Notebook]]:
    """Opens pages: `open_notebook(kernel, width=800, theme="dark")`."""
    opened = request.node.stash.setdefault(OPENED, [])

    def open_one(kernel: str | None, **look: object) -> Notebook:
        notebook = Notebook.opened(browser, server, kernel, **look)
        opened.append(notebook)
        return notebook

    yield open_one
    errors = []
    for notebook in opened:
        errors += [error for error in notebook.errors if not any(re.search(e, error) for e in expected_errors)]
        notebook.close()
    assert not errors, "The page reported errors:\n" + "\n".join(errors)


@pytest.fixture
def notebook(open_notebook: Callable[..., Notebook], kernel: str) -> Iterator[Notebook]:
    """A page on the session's kernel, with torch, Lab and the demo prompts imported."""
    notebook = open_notebook(kernel)
    notebook.run(PRELUDE)
    yield notebook
    notebook.run(CLEAR)
