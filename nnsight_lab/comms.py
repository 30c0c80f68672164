"""The kernel's end of the JupyterLab extension: a comm target that importing the package registers.

Registering imports nothing: what answers is loaded when the extension opens the comm.
"""

from __future__ import annotations

import sys
from typing import Any

TARGET = "nnsight-lab"


def register() -> None:
    """Offer the comm where this process is a Jupyter kernel; elsewhere do nothing."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    manager = getattr(getattr(shell, "kernel", None), "comm_manager", None)
    if manager is not None:
        manager.register_target(TARGET, _opened)


def _opened(comm: Any, message: Any) -> None:
    from .widgets.panel import PanelDesk

    PanelDesk(comm)
