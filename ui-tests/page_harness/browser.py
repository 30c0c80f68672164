"""Debian's Chromium under Playwright; nothing is downloaded. `CHROMIUM` names another executable."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, expect, sync_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


# A busy machine shall not make a test fail; one that passes does not wait.
expect.set_options(timeout=15_000)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless Chromium.

    Raises:
        RuntimeError: there is none on this machine.
    """
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if executable is None:
        raise RuntimeError("No Chromium is installed. On Debian: apt-get install -y chromium; else set CHROMIUM.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()
