"""The JupyterLab extension's questions to the kernel, answered over its comm.

Messages reach the kernel's main thread between cells, so answers never meet a cell that computes. Each request is
answered by `Accepted` and then by exactly one other reply.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from . import views, wire
from .alive import alive, model_called
from .failures import failure_of
from .opened import newest_lab
from .snippets import snippet

_log = logging.getLogger("nnsight_lab")
Answered = tuple[wire.Reply, memoryview | None]


class PanelDesk:
    """Answers one page's requests until its comm is closed."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        comm.on_msg(lambda message: self.receive(message["content"]["data"]))

    def receive(self, content: Any) -> None:
        """Take a message of the page. One that is no request of the contract is answered by `Failed`."""
        name = content.get("id") if isinstance(content, dict) else None
        if not isinstance(name, str):
            _log.warning("The models panel sent a message without an id, which cannot be answered.")
            return
        self._send(wire.Accepted(name))
        try:
            request: wire.PanelRequest = msgspec.convert(content, wire.PanelRequest)
            reply, buffer = _HANDLERS[type(request)](request, _namespace())
        except Exception as error:
            self._send(wire.Failed(name, failure_of(error)))
            return
        self._send(reply, buffer)

    def _send(self, reply: wire.Reply, buffer: memoryview | None = None) -> None:
        self._comm.send(msgspec.to_builtins(reply), buffers=None if buffer is None else [buffer])


def _namespace() -> Mapping[str, Any]:
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    return shell.user_ns if shell is not None else {}


def _alive(request: wire.AskAlive, names: Mapping[str, Any]) -> Answered:
    return wire.Alive(request.id, alive(names)), None


def _modules(request: wire.AskModulesOf, names: Mapping[str, Any]) -> Answered:
    parts, kinds, columns = views.module_columns(model_called(names, request.model))
    return wire.Modules(request.id, parts, kinds), memoryview(columns.tobytes())


def _listing(request: wire.AskListing, names: Mapping[str, Any]) -> Answered:
    model = model_called(names, request.model)
    return wire.ListingOf(request.id, views.listing_view(model, request.module, request.opened)), None


def _snippet(request: wire.AskSnippet, names: Mapping[str, Any]) -> Answered:
    model = model_called(names, request.model)
    return wire.Code(request.id, snippet(request.model, model, request.site, request.purpose)), None


def _lab(request: wire.AskLab, names: Mapping[str, Any]) -> Answered:
    lab = newest_lab()
    if request.to == "code":
        return wire.Told(request.id, "The Lab's code.", lab.code()), None
    if request.to == "clear":
        count = len(lab.steps)
        lab._session.act(wire.ClearSteps())
        return wire.Told(
            request.id, "There were no steps." if count == 0 else f"Removed {count} step{'' if count == 1 else 's'}."
        ), None
    lab._session.act(wire.Run())
    return wire.Told(request.id, "The Lab runs its steps again."), None


_HANDLERS: Mapping[type, Callable[[Any, Mapping[str, Any]], Answered]] = {
    wire.AskAlive: _alive,
    wire.AskModulesOf: _modules,
    wire.AskListing: _listing,
    wire.AskSnippet: _snippet,
    wire.AskLab: _lab,
}
