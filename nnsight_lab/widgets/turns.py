"""The user's code and the Lab's worker take turns: they never compute at the same time.

The user's side is a cell that runs, or a method such as `lab.run()` that computes in the calling thread; it nests, and
several threads of the user's may be in it. The worker's side is one chunk of a job: it begins when no user is in, and
a user who comes in the meantime is let in at the end of the chunk, before the worker's next one.

Where there is an IPython shell, its cells are the user's turns. Elsewhere only the Lab's own methods are.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch


class Turns:
    """Whose turn it is. `changed` is called, outside any lock, when a cell begins or ends."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._users = 0
        self._worker: int | None = None
        self._cells = 0
        self._shells: weakref.WeakSet[Any] = weakref.WeakSet()
        self.changed: Callable[[], None] = lambda: None
        self.main_threads = torch.get_num_threads()

    @property
    def cell_running(self) -> bool:
        """Whether a cell of the user's is being executed."""
        return self._cells > 0

    @contextmanager
    def user(self) -> Iterator[None]:
        """The user's turn, in the calling thread. A user's function that the worker calls is in the worker's turn."""
        if self._worker == threading.get_ident():
            yield
            return
        self._enter_user()
        try:
            yield
        finally:
            self._leave_user()

    @contextmanager
    def worker(self) -> Iterator[None]:
        """The worker's turn: waits until no user is in."""
        with self._condition:
            self._condition.wait_for(lambda: self._users == 0 and self._worker is None)
            self._worker = threading.get_ident()
        try:
            yield
        finally:
            with self._condition:
                self._worker = None
                self._condition.notify_all()

    def give_way(self) -> None:
        """In the worker's turn: let users in who are waiting, and go on when they are done."""
        with self._condition:
            if self._users == 0:
                return
            self._worker = None
            self._condition.notify_all()
            self._condition.wait_for(lambda: self._users == 0 and self._worker is None)
            self._worker = threading.get_ident()

    def _enter_user(self) -> None:
        with self._condition:
            self._users += 1
            try:
                self._condition.wait_for(lambda: self._worker is None)
            except BaseException:
                self._users -= 1
                self._condition.notify_all()
                raise

    def _leave_user(self) -> None:
        with self._condition:
            self._users -= 1
            self._condition.notify_all()

    # IPython

    def follow_cells(self) -> None:
        """Take the cells of the running IPython shell for user's turns, from the one being executed on."""
        shell = _shell()
        if shell is None or shell in self._shells:
            return
        self._shells.add(shell)
        for _ in range(_cells_on_the_stack(shell)):
            self._cell_begins()
        shell.events.register("pre_run_cell", self._cell_begins)
        shell.events.register("post_run_cell", self._cell_ends)

    def _cell_begins(self, *_: Any) -> None:
        self.note_main_thread()
        self._cells += 1
        self.changed()
        try:
            self._enter_user()
        except BaseException:
            self._cells -= 1  # the cell runs all the same, but its end is not waited for
            raise

    def _cell_ends(self, *_: Any) -> None:
        self.note_main_thread()
        if self._cells == 0:
            return
        self._cells -= 1
        self._leave_user()
        self.changed()

    # Torch's number of threads is a setting of each thread, and sums of floats depend on it.

    def note_main_thread(self) -> None:
        """Remember the main thread's number of threads for computing, when called in it."""
        if threading.current_thread() is threading.main_thread():
            self.main_threads = torch.get_num_threads()

    def compute_as_main(self) -> None:
        """Compute in this thread with as many threads as the main one."""
        if torch.get_num_threads() != self.main_threads:
            torch.set_num_threads(self.main_threads)


def _shell() -> Any:
    """The running IPython shell, or None. IPython is not imported for it."""
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()


def _cells_on_the_stack(shell: Any) -> int:
    """How many cells, one inside the other, the calling code is executed by."""
    code = type(shell).run_cell_async.__code__
    count, frame = 0, sys._getframe()
    current: FrameType | None = frame
    while current is not None:
        count += current.f_code is code
        current = current.f_back
    return count


TURNS = Turns()
