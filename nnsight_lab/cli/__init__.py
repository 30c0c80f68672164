"""The command line, `nnsight-lab`."""

from .main import main

__all__ = ["main"]
