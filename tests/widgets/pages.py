"""A session with a page that has no browser: what it was sent, and the traits as they were last drawn."""

from __future__ import annotations

import itertools
import threading
import time

import msgspec
import numpy as np

from nnsight_lab.widgets import wire
from nnsight_lab.widgets.drawing import Drawing
from nnsight_lab.widgets.requests import Desk
from nnsight_lab.widgets.session import Session
from nnsight_lab.widgets.worker import WORKER

LONG = 60


class Page:
    def __init__(self, model, base=None, source=None, *, steps=(), module=None, selection=None):
        self.replies: list[tuple[dict, bytes | None]] = []
        self.traits: dict = {}
        self._arrived = threading.Condition()
        self._numbers = itertools.count()
        self.session = Session(model, self)
        self.drawing = Drawing(self.session)
        self.session.start(base, source, steps, module, selection)
        self.desk = Desk(self.session, self._send)
        self.session.open()

    def redraw(self):
        self.traits.update(self.drawing.changed())
        return self.drawing.revision

    def announce(self):
        pass

    def _send(self, reply, buffer):
        data = msgspec.to_builtins(reply)
        assert msgspec.convert(data, wire.Reply) == reply
        with self._arrived:
            self.replies.append((data, None if buffer is None else bytes(buffer)))
            self._arrived.notify_all()

    def of(self, name):
        """The replies under an id."""
        return [(reply, buffer) for reply, buffer in self.replies if reply["id"] == name]

    def post(self, page="page", **content):
        """Send a request; its id."""
        name = f"{page}:{next(self._numbers)}"
        self.desk.receive({**content, "id": name})
        return name

    def answer(self, name):
        """The reply to a request other than `accepted`, and its buffer as float32."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.of(name)) > 1, LONG), "no answer"
        (accepted, _), (reply, buffer) = self.of(name)
        assert accepted["kind"] == "accepted"
        return reply, None if buffer is None else np.frombuffer(buffer, dtype="<f4")

    def ask(self, **content):
        return self.answer(self.post(**content))

    def act(self, do, **fields):
        return self.ask(kind="act", action={"do": do, **fields})[0]

    def settle(self):
        """Wait until nothing is being done or waiting."""
        end = time.monotonic() + LONG
        while not WORKER.idle():
            assert time.monotonic() < end, "the worker does not come to rest"
            time.sleep(0.002)

    def close(self):
        self.session.close()
        self.settle()
