"""Requests of pages and their replies: `Accepted` at once, then exactly one other.

What only tells of the state is answered in the thread that the request came in. What computes goes to the worker, in a
lane of the page's own, so that of questions of one kind the latest is answered and views do not take each other's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from torch import Tensor

from . import views, wire
from .errors import LabError
from .failures import failure_of
from .session import Session
from .wire import Reply, Request
from .worker import JobSuperseded

_log = logging.getLogger("nnsight_lab")
# Sends a reply and its array.
Send = Callable[[Reply, Any], None]
Answered = tuple[Reply, Any]


class Desk:
    """Answers the requests of one Lab's pages."""

    def __init__(self, session: Session, send: Send) -> None:
        self._session = session
        self._send = send

    def receive(self, content: Any) -> None:
        """Take a message of a page. One that is no request of the contract is answered by `Failed`."""
        name = content.get("id") if isinstance(content, dict) else None
        if not isinstance(name, str):
            _log.warning("The Lab got a message without an id, which cannot be answered.")
            return
        self._send(wire.Accepted(name), None)
        try:
            request: Request = msgspec.convert(content, Request)
            answer = _HANDLERS[type(request)](self, request)
        except Exception as error:
            self._fail(name, error)
            return
        if answer is not None:
            self._send(*answer)

    def _fail(self, name: str, error: BaseException) -> None:
        self._send(wire.Failed(name, failure_of(error)), None)

    def _later(self, request: Any, lane: str, work: Callable[[], Answered]) -> None:
        """Answer from the worker."""
        page = request.id.rpartition(":")[0]

        def settled(answer: Answered | None, error: BaseException | None) -> None:
            if error is None and answer is not None:
                self._send(*answer)
            elif isinstance(error, JobSuperseded):
                self._send(wire.Superseded(request.id), None)
            elif error is not None:
                self._fail(request.id, error)

        self._session.agenda.ask(f"{lane} {page}", work, settled)

    # One for each kind of request: the answer, or None where the worker will give it

    def _act(self, request: wire.Act) -> Answered:
        return wire.Done(request.id, self._session.act(request.action)), None

    def _answer(self, request: wire.AskAnswer) -> Answered:
        with self._session.lock:
            return wire.AnswerOf(request.id, self._session.answer_of(request.run)), None

    def _code(self, request: wire.AskCode) -> Answered:
        with self._session.lock:
            return wire.Code(request.id, self._session.code_of(request.run)), None

    def _modules(self, request: wire.AskModules) -> Answered:
        names, kinds, columns = self._session.sights.modules()
        return wire.Modules(request.id, names, kinds), _bytes(columns)

    def _grid(self, request: wire.AskGrid) -> Answered:
        with self._session.lock:
            record = self._session.history[request.run]
        if record.kind == "run":
            raise LabError(f"{request.run} is a run, which has no grid.")
        grid: Any
        if record.kind == "sweep":
            grid, cells = views.sweep_grid(request.id, record.run, record.title, record.result)
        else:
            grid, cells = views.lens_grid(request.id, record.run, record.title, record.result, record.seconds)
        return grid, _bytes(cells)

    def _tensor(self, request: wire.AskTensor) -> None:
        def work() -> Answered:
            tensor, axes = self._value(request)
            shown, cells = views.picture(request, tensor, views.label_of(request.target), *axes)
            return shown, _bytes(cells)

        self._later(request, "tensor", work)

    def _table(self, request: wire.AskTable) -> None:
        def work() -> Answered:
            tensor, (tokens, heads, _) = self._value(request)
            return views.table_csv(request, tensor, views.label_of(request.target), tokens, heads), None

        self._later(request, "table", work)

    def _peek(self, request: wire.AskPeek) -> None:
        session = self._session

        def work() -> Answered:
            seen, calls, reason = session.sights.seen(request.target, session.state)
            tokens = session.sights.tokens(session.state.experiment)
            label = views.label_of(request.target)
            shown, cells = views.peek(request, label, seen, calls, reason, tokens, session.sights.heads)
            return shown, None if cells is None else _bytes(cells)

        self._later(request, "peek", work)

    def _value(self, request: wire.AskTensor | wire.AskTable) -> tuple[Tensor, tuple[Any, ...]]:
        """The tensor that is asked for, and what its axes are recognised by. Raises LabError where there is none."""
        session = self._session
        value = session.agenda.captured(request.run, request.target)
        if value is None:
            raise LabError(f"{views.label_of(request.target)} holds no tensor in this run: it has no picture.")
        experiment = session.history[request.run].experiment
        axes = (session.sights.tokens(experiment), session.sights.heads, session.sights.vocabulary)
        if request.which == "clean":
            return value.clean, axes
        if request.which == "edited":
            return value.edited, axes
        if value.clean.shape != value.edited.shape:
            shapes = f"{list(value.clean.shape)} before and {list(value.edited.shape)} after"
            raise LabError(f"There is no difference of values of different shape, {shapes} the edits.")
        if value.clean.is_complex():
            return value.edited - value.clean, axes
        return value.edited.double() - value.clean.double(), axes


def _bytes(cells: Any) -> memoryview:
    return memoryview(cells.tobytes())


_HANDLERS: Mapping[type, Callable[[Desk, Any], Answered | None]] = {
    wire.Act: Desk._act,
    wire.AskModules: Desk._modules,
    wire.AskTensor: Desk._tensor,
    wire.AskTable: Desk._table,
    wire.AskPeek: Desk._peek,
    wire.AskGrid: Desk._grid,
    wire.AskAnswer: Desk._answer,
    wire.AskCode: Desk._code,
}
