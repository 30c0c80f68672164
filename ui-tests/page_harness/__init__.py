"""What the browser tests stand on: a Jupyter server with the test page, kernels on it, and a browser that drives it."""

from .browser import chromium
from .notebook import CellFailed, Notebook
from .server import Server
from .shots import shot

__all__ = ["CellFailed", "Notebook", "Server", "chromium", "shot"]
