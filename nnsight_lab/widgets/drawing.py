"""The synced traits as the session stands, and which of them have changed since they were last sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from . import wire
from .fitting import FIT
from .turns import TURNS

if TYPE_CHECKING:
    from .session import Session


class Drawing:
    """The traits of one Lab, as structs.

    Attributes:
        revision: counts the changes of the view.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sent: dict[str, Any] = {}
        self.revision = 0

    def changed(self) -> dict[str, dict[str, Any]]:
        """The traits that are not as they were last, as JSON data, by name; what there is nothing of is empty."""
        found: dict[str, dict[str, Any]] = {}
        for name, draw in _TRAITS.items():
            drawn = draw(self._session)
            if name in self._sent and drawn == self._sent[name]:
                continue
            self._sent[name] = drawn
            if isinstance(drawn, wire.View):
                self.revision += 1
                drawn = msgspec.structs.replace(drawn, revision=self.revision)
            fit = None if drawn is None else FIT.get(name, lambda same: same)(drawn)
            found[name] = {} if fit is None else msgspec.to_builtins(fit)
        return found


def _view(session: Session) -> wire.View:
    state, experiment, sights = session.state, session.state.experiment, session.sights
    return wire.View(
        model=sights.model,
        base=sights.prompt(experiment.base),
        source=sights.prompt(experiment.source),
        alignment=sights.alignment(experiment),
        module=state.module,
        selection=state.selection,
        opened=state.opened,
        steps=sights.steps(experiment, () if session.stale else session.reports),
        active=experiment.active,
        scope=experiment.scope,
        metric=experiment.metric,
        can_undo=bool(state.past),
        can_redo=bool(state.future),
        shown_answer=state.shown_answer,
        shown_sweep=state.shown_sweep,
        shown_lens=state.shown_lens,
    )


def _listing(session: Session) -> wire.ListingView:
    return session.sights.listing(session.state.module, session.state.opened)


def _answer(session: Session) -> wire.Answer | None:
    shown = session.shown
    return None if shown is None else shown.answer


def _history(session: Session) -> wire.History:
    return wire.History(tuple(record.entry for record in session.history))


def _status(session: Session) -> wire.Status:
    running, waiting = session.agenda.lanes()
    work = running[0] if running else None
    done, total, unit = session.progress.get(work, (0, 0, "")) if work is not None else (0, 0, "")
    return wire.Status(
        work=work,
        waiting=(*running[1:], *waiting),
        blocked=TURNS.cell_running and bool(running or waiting) and not session.agenda.working_at_once,
        done=done,
        total=total,
        unit=unit,
        failure=session.failure,
        failed=session.failed,
        stale=session.stale,
    )


def _code(session: Session) -> wire.CodeView:
    return session.code


def _snapshot(session: Session) -> wire.Snapshot | None:
    return session.snapshot


_TRAITS: Mapping[str, Callable[[Session], Any]] = {
    "_view": _view,
    "_listing": _listing,
    "_answer": _answer,
    "_history": _history,
    "_status": _status,
    "_code": _code,
    "_snapshot": _snapshot,
}
