"""A Jupyter server on a free port that serves the test page and starts kernels, for as long as a `with` block lasts.

The page is built into a temporary folder at the start (under a second), together with JupyterLab's themes and
anywidget's front end as they are installed in this environment. The server reads no configuration of the user's.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import nnsight_lab

REPOSITORY = Path(__file__).resolve().parents[2]
SHARE = Path(sysconfig.get_path("data")) / "share" / "jupyter"
START_SECONDS = 30


@dataclass(frozen=True)
class Server:
    """A running server: its address, its token, and its log."""

    url: str
    token: str
    log: Path

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[Server]:
        """Build the page, start the server, and stop both it and its kernels at the end."""
        with tempfile.TemporaryDirectory(prefix="nnsight-lab-page-") as scratch:
            folder = Path(scratch)
            _build_page(folder / "page")
            options = [
                f"--ServerApp.extra_static_paths=['{folder / 'page'}']",
                "--ServerApp.jpserver_extensions={}",
                "--ServerApp.terminals_enabled=False",
            ]
            with cls.running("jupyter_server", folder, options) as server:
                yield server

    @classmethod
    @contextmanager
    def running(cls, module: str, folder: Path, options: list[str]) -> Iterator[Server]:
        """`python -m module` as a server that keeps its files in `folder` and serves `folder/root`."""
        port, token = _free_port(), secrets.token_hex(16)
        server = cls(f"http://127.0.0.1:{port}", token, folder / "server.log")
        (folder / "root").mkdir(exist_ok=True)
        with server.log.open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *_options(folder, port, token), *options],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=os.environ | _own_folders(folder),
            )
        try:
            server._wait(process)
            yield server
        finally:
            # Asked to end, the server shuts its kernels down first.
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start_kernel(self) -> str:
        """Start a kernel; returns its id."""
        return str(self.request("POST", "/api/kernels", {"name": "python3"})["id"])

    def stop_kernel(self, kernel: str) -> None:
        self.request("DELETE", f"/api/kernels/{kernel}")

    def page_address(self, kernel: str | None, theme: str) -> str:
        """Address of the test page, attached to a kernel unless that is None."""
        query = {"theme": theme} if kernel is None else {"theme": theme, "token": self.token, "kernel": kernel}
        return f"{self.url}/static/index.html?{urlencode(query)}"

    def request(self, method: str, path: str, body: object = None) -> Any:
        """A request of the server's REST API; returns the decoded answer, None where it is empty."""
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            try:
                self.request("GET", "/api/status")
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
            else:
                return
        raise RuntimeError(f"The Jupyter server did not start:\n{self.log.read_text()}")


def _build_page(folder: Path) -> None:
    subprocess.run(["node", "ui-tests/harness/build.mjs", str(folder)], cwd=REPOSITORY, check=True)
    shutil.copytree(SHARE / "nbextensions" / "anywidget", folder / "nbextensions" / "anywidget")
    themes = SHARE / "lab" / "themes" / "@jupyterlab"
    (folder / "themes").mkdir()
    for name in ("light", "dark"):
        shutil.copy(themes / f"theme-{name}-extension" / "index.css", folder / "themes" / f"{name}.css")


def _options(folder: Path, port: int, token: str) -> list[str]:
    return [
        "--no-browser",
        "--allow-root",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={token}",
        f"--ServerApp.root_dir={folder / 'root'}",
    ]


def _own_folders(folder: Path) -> dict[str, str]:
    # Kernels import the package that these tests import (of this repository, or installed), and the tests' odd models.
    path = [str(Path(nnsight_lab.__file__).parents[1]), str(REPOSITORY / "ui-tests"), os.environ.get("PYTHONPATH", "")]
    return {
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_NO_CONFIG": "1",
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "IPYTHONDIR": str(folder / "ipython"),
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
    }


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
