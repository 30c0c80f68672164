"""Requests of pages and their replies: `Accepted` at once, then exactly one other.

What only tells of the state is answered in the thread that the request came in. What computes goes to the worker, in a
lane of the page's own, so that of questions of one kind the latest is answered and views do not take each other's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from . import wire
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


_HANDLERS: Mapping[type, Callable[[Desk, Any], Answered | None]] = {
    wire.Act: Desk._act,
    wire.AskAnswer: Desk._answer,
    wire.AskCode: Desk._code,
}
