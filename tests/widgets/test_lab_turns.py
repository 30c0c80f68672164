"""The user's code and the worker never compute at the same time."""

import threading

import pytest
from IPython.core.interactiveshell import InteractiveShell

from nnsight_lab.widgets.turns import Turns
from nnsight_lab.widgets.worker import Job, Worker

LONG = 20


class Owner:
    def __init__(self):
        self.changes = 0

    def queue_changed(self):
        self.changes += 1


@pytest.fixture
def turns():
    return Turns()


@pytest.fixture
def shell(turns, monkeypatch):
    """An IPython shell whose cells the turns follow."""
    shell = InteractiveShell()
    monkeypatch.setattr("nnsight_lab.widgets.turns._shell", lambda: shell)
    turns.follow_cells()
    return shell


def submit(worker, work, owner=None, long=False):
    ended, settled = threading.Event(), []

    def settle(value, error):
        settled.append((value, error))
        ended.set()

    worker.submit(Job(owner or Owner(), "job", work, settle, long=long))
    return ended, settled


def test_the_worker_waits_for_the_user(turns):
    worker = Worker(turns)
    with turns.user():
        ended, _ = submit(worker, lambda job: None)
        assert not ended.wait(0.05)
    assert ended.wait(LONG)


def test_the_user_waits_for_the_chunk_and_is_let_in_before_the_next(turns):
    worker = Worker(turns)
    order, in_chunk, user_comes = [], threading.Event(), threading.Event()

    def sweep(job):
        order.append("first chunk")
        in_chunk.set()
        assert user_comes.wait(LONG)
        while turns._users == 0:
            pass
        job.give_way()
        order.append("second chunk")

    ended, _ = submit(worker, sweep, long=True)
    assert in_chunk.wait(LONG)
    user_comes.set()
    with turns.user():
        order.append("user")
    assert ended.wait(LONG)
    assert order == ["first chunk", "user", "second chunk"]


def test_the_users_turn_nests_and_is_shared_by_the_users_threads(turns):
    def inner():
        with turns.user():
            entered.append(True)

    entered = []
    with turns.user():
        with turns.user():
            thread = threading.Thread(target=inner)
            thread.start()
            thread.join(LONG)
    assert entered == [True]


def test_a_users_function_that_the_worker_calls_is_in_its_turn(turns):
    def observer(job):
        with turns.user():
            return "no deadlock"

    ended, settled = submit(Worker(turns), observer)
    assert ended.wait(LONG)
    assert settled == [("no deadlock", None)]


def test_an_interrupted_wait_leaves_no_user_behind(turns, monkeypatch):
    def interrupted(predicate, timeout=None):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(turns._condition, "wait_for", interrupted)
        with pytest.raises(KeyboardInterrupt), turns.user():
            pass
    ended, _ = submit(Worker(turns), lambda job: None)
    assert ended.wait(LONG)


def test_work_begins_after_the_cell_that_asked_for_it(turns, shell):
    worker, owner, order = Worker(turns), Owner(), []

    def ask():
        ended.append(submit(worker, lambda job: order.append("job"), owner)[0])
        assert turns.cell_running
        assert not ended[0].wait(0.05)
        order.append("cell")

    ended = []
    shell.user_ns["ask"] = ask
    shell.run_cell("ask()").raise_error()
    assert ended[0].wait(LONG)
    assert order == ["cell", "job"]
    assert not turns.cell_running


def test_a_cell_that_fails_ends_as_well(turns, shell):
    assert not shell.run_cell("1 / 0").success
    assert not turns.cell_running
    ended, _ = submit(Worker(turns), lambda job: None)
    assert ended.wait(LONG)


def test_the_owner_of_waiting_work_hears_of_cells(turns, shell):
    worker, owner = Worker(turns), Owner()
    with turns.user():
        ended, _ = submit(worker, lambda job: None, owner)
        before = owner.changes
        shell.run_cell("pass")
        assert owner.changes == before + 2
    assert ended.wait(LONG)


def test_the_cell_in_which_it_is_first_called_counts(turns, monkeypatch):
    shell = InteractiveShell()
    monkeypatch.setattr("nnsight_lab.widgets.turns._shell", lambda: shell)
    seen = []

    def follow():
        turns.follow_cells()
        seen.append(turns.cell_running)

    shell.user_ns["follow"] = follow
    shell.run_cell("follow()").raise_error()
    assert seen == [True]
    assert not turns.cell_running
    turns.follow_cells()
    shell.run_cell("pass")
    assert not turns.cell_running


def test_a_cell_inside_a_cell(turns, shell):
    shell.user_ns.update(shell=shell, turns=turns, seen=[])
    shell.run_cell("shell.run_cell('pass'); seen.append(turns.cell_running)").raise_error()
    assert shell.user_ns["seen"] == [True]
    assert not turns.cell_running


def test_without_a_shell_there_are_no_cells(turns, monkeypatch):
    monkeypatch.setattr("nnsight_lab.widgets.turns._shell", lambda: None)
    turns.follow_cells()
    assert not turns.cell_running


def test_the_number_of_threads_is_the_main_threads(turns):
    before = turns.main_threads
    thread = threading.Thread(target=lambda: (setattr(turns, "main_threads", 99), turns.note_main_thread()))
    thread.start()
    thread.join(LONG)
    assert turns.main_threads == 99
    turns.note_main_thread()
    assert turns.main_threads == before
