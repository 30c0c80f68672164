"""Loading a model's weights with progress: what the progress bars of transformers and the hub count, told to the Lab.

Both count with tqdm. While a model is loaded in this thread, updates of its bars are passed on; other threads' bars
are left alone. A bar that is switched off counts nothing, and then only the work's name is shown.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..engine import NNsight

# Called with (done, total, unit).
Report = Callable[[int, int, str], Any]


def needs_loading(model: NNsight) -> bool:
    """Whether the model's weights are not in memory yet."""
    return not getattr(model, "dispatched", True)


def load(model: NNsight, report: Report) -> None:
    """Load the weights. What `report` raises ends the loading, and the model stays as it was."""
    if needs_loading(model):
        with _bars_watched(report):
            model.dispatch()


@contextmanager
def _bars_watched(report: Report) -> Iterator[None]:
    from tqdm.std import tqdm

    plain = tqdm.update
    thread = threading.get_ident()

    def update(bar: Any, n: float | None = 1) -> bool | None:
        shown = plain(bar, n)
        if threading.get_ident() == thread and not bar.disable:
            report(int(bar.n), int(bar.total or 0), bar.unit.strip() if bar.unit != "it" else "")
        return shown

    tqdm.update = update
    try:
        yield
    finally:
        tqdm.update = plain
