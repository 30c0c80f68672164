"""The worker's queue: which job goes when, and that every one is settled once whatever happens."""

import subprocess
import sys
import textwrap
import threading

import pytest
import torch

from nnsight_lab.widgets.turns import Turns
from nnsight_lab.widgets.worker import Job, JobCancelled, JobSuperseded, Worker

LONG = 20


class Owner:
    def __init__(self):
        self.changes = 0

    def queue_changed(self):
        self.changes += 1


class Bench:
    """A worker with turns of its own, and what its jobs did."""

    def __init__(self):
        self.turns = Turns()
        self.worker = Worker(self.turns)
        self.done = []
        self.settled = {}
        self._ends = {}

    def submit(self, name, work=None, *, owner=None, lane=None, long=False, urgent=False):
        ended = self._ends[name] = threading.Event()

        def settle(value, error):
            assert name not in self.settled
            self.settled[name] = error if error is not None else value
            ended.set()

        def compute(job):
            self.done.append(name)
            return name if work is None else work(job)

        job = Job(owner or self.owner, lane or name, compute, settle, long=long, urgent=urgent)
        self.worker.submit(job)
        return job

    def wait(self, *names):
        for name in names or tuple(self._ends):
            assert self._ends[name].wait(LONG), name

    owner = Owner()


@pytest.fixture
def bench():
    bench = Bench()
    yield bench
    bench.wait()


@pytest.fixture
def gate(bench):
    """An event that a first job waits for, so that others queue up behind it."""
    event, started = threading.Event(), threading.Event()

    def hold(job):
        started.set()
        assert event.wait(LONG)

    bench.submit("gate", hold)
    assert started.wait(LONG)
    yield event
    event.set()


def test_a_job_gives_its_value(bench):
    bench.submit("a", lambda job: 7)
    bench.wait()
    assert bench.settled == {"a": 7}


def test_the_latest_of_a_lane_is_done_and_older_ones_are_superseded(bench, gate):
    for name in "abc":
        bench.submit(name, lane="run")
    gate.set()
    bench.wait()
    assert bench.done == ["gate", "c"]
    assert isinstance(bench.settled["a"], JobSuperseded)
    assert isinstance(bench.settled["b"], JobSuperseded)


def test_owners_do_not_supersede_each_other(bench, gate):
    bench.submit("a", lane="run", owner=Owner())
    bench.submit("b", lane="run", owner=Owner())
    gate.set()
    bench.wait()
    assert bench.done == ["gate", "a", "b"]


def test_short_jobs_go_before_long_ones_and_urgent_ones_first(bench, gate):
    bench.submit("long", long=True)
    bench.submit("short")
    bench.submit("urgent", urgent=True)
    gate.set()
    bench.wait()
    assert bench.done == ["gate", "urgent", "short", "long"]


def test_short_jobs_go_between_the_chunks_of_a_long_one(bench):
    order = []

    def sweep(job):
        for chunk in range(3):
            order.append(chunk)
            if chunk == 0:
                bench.submit("picture", lambda job: order.append("picture"))
            job.give_way()

    bench.submit("sweep", sweep, long=True)
    bench.wait("sweep", "picture")
    assert order == [0, "picture", 1, 2]


def test_another_long_job_waits_for_the_first(bench):
    order = []

    def first(job):
        bench.submit("second", lambda job: order.append("second"), long=True)
        job.give_way()
        order.append("first")

    bench.submit("first", first, long=True)
    bench.wait("first")
    bench.wait("second")
    assert order == ["first", "second"]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(), GeneratorExit()])
def test_whatever_a_job_raises_is_its_answer_and_the_next_one_is_done(bench, error):
    def fail(job):
        raise error

    bench.submit("bad", fail)
    bench.submit("good")
    bench.wait()
    assert bench.settled == {"bad": error, "good": "good"}


def test_a_reply_that_cannot_be_sent_is_logged_and_the_next_job_is_done(bench, caplog):
    def refuse(value, error):
        raise OSError("the page is gone")

    bench.worker.submit(Job(bench.owner, "a", lambda job: 1, refuse))
    bench.submit("b")
    bench.wait()
    assert "could not be sent" in caplog.text


def test_a_waiting_job_is_cancelled_at_once(bench, gate):
    bench.submit("a", lane="run")
    assert bench.worker.cancel(bench.owner, frozenset({"run"})) == 1
    assert isinstance(bench.settled["a"], JobCancelled)
    gate.set()
    bench.wait()
    assert bench.done == ["gate"]


def test_a_long_job_sees_between_chunks_that_it_is_cancelled(bench):
    def sweep(job):
        bench.worker.cancel(bench.owner, frozenset({"sweep"}))
        return "partial" if job.cancelled.is_set() else "whole"

    bench.submit("sweep", sweep, long=True)
    bench.wait()
    assert bench.settled == {"sweep": "partial"}


def test_only_the_lanes_named_are_cancelled(bench, gate):
    bench.submit("a", lane="run")
    bench.submit("b", lane="lens")
    bench.worker.cancel(bench.owner, frozenset({"lens"}))
    gate.set()
    bench.wait()
    assert bench.done == ["gate", "a"]


def test_a_later_long_job_of_a_lane_stops_the_one_that_runs(bench):
    started = threading.Event()

    def sweep(job):
        started.set()
        assert job.cancelled.wait(LONG)

    bench.submit("old", sweep, lane="sweep", long=True)
    assert started.wait(LONG)
    bench.submit("new", lane="sweep", long=True)
    bench.wait()
    assert bench.done == ["old", "new"]


def test_lanes_tell_what_runs_and_what_waits(bench, gate):
    bench.submit("b", long=True)
    bench.submit("a")
    assert bench.worker.lanes(bench.owner) == (("gate",), ("a", "b"))
    assert bench.worker.lanes(Owner()) == ((), ())


def test_the_owner_is_told_when_something_of_its_begins_or_ends(bench):
    owner = Owner()
    bench.submit("a", owner=owner)
    bench.wait()
    while not bench.worker.idle():
        pass
    assert owner.changes == 3  # queued, begun, ended


def test_the_thread_ends_when_nothing_comes_and_begins_again(bench, monkeypatch):
    monkeypatch.setattr("nnsight_lab.widgets.worker._IDLE_SECONDS", 0.01)
    bench.submit("a")
    bench.wait()
    thread = bench.worker._thread
    if thread is not None:
        thread.join(LONG)
    assert bench.worker._thread is None
    bench.submit("b")
    bench.wait()
    assert bench.done == ["a", "b"]


def test_jobs_compute_with_as_many_threads_as_the_main_thread(bench):
    bench.turns.main_threads = 3
    bench.submit("a", lambda job: torch.get_num_threads())
    bench.turns.main_threads = 3
    bench.wait()
    assert bench.settled == {"a": 3}


def test_an_interpreter_that_exits_while_the_lab_computes_ends_well():
    program = """
        import torch
        from nnsight_lab.widgets.worker import WORKER, Job

        class Owner:
            def queue_changed(self): pass

        def work(job):
            weight = torch.eye(300, requires_grad=True)
            for _ in range(100):
                (weight @ weight).sum().backward()

        started = []
        WORKER.submit(Job(Owner(), "run", work, lambda value, error: started.append(error)))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
