"""What a page may ask: every request is answered under its id, errors are answers, and nothing is taken as code."""

from __future__ import annotations

import csv
import io
import threading

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nnsight_lab import demo
from nnsight_lab.experiments import Zero
from nnsight_lab.widgets import requests
from nnsight_lab.widgets.worker import WORKER, Job

from .pages import LONG, Page

MLP = "transformer.h.5.mlp"
ACT = "transformer.h.5.mlp.source.self_act_0"
TARGET = {"site": ACT, "io": "output", "argument": None, "call": None, "element": None}


@pytest.fixture(scope="module")
def model():
    return demo.load()


@pytest.fixture
def page(model):
    page = Page(model, demo.EIFFEL, module=MLP, selection=ACT)
    page.settle()
    yield page
    page.close()


@pytest.fixture(scope="module")
def act(model):
    """The activation by a plain forward hook on the activation's module, `[1, positions, neurons]`."""
    found = []
    hook = model._model.transformer.h[5].mlp.act.register_forward_hook(lambda m, i, output: found.append(output))
    try:
        with torch.no_grad():
            model._model(**model.tokenizer(demo.EIFFEL, return_tensors="pt"))
    finally:
        hook.remove()
    return found[0]


@pytest.fixture
def gate():
    """Holds the worker until it is set, so that work queues up behind."""
    event, started = threading.Event(), threading.Event()

    def hold(job):
        started.set()
        assert event.wait(LONG)

    class Owner:
        def queue_changed(self):
            pass

    WORKER.submit(Job(Owner(), "gate", hold, lambda value, error: None, urgent=True))
    assert started.wait(LONG)
    yield event
    event.set()


def run_of(page):
    return page.traits["_answer"]["run"]


# Every kind


def test_every_kind_of_request_has_a_handler():
    from typing import get_args

    assert set(requests._HANDLERS) == set(get_args(requests.Request))


def test_an_action_is_answered_with_the_revision_of_the_view_that_it_made(page):
    reply = page.act("show_module", module="transformer.h.0.mlp")
    assert reply["kind"] == "done"
    assert page.traits["_view"]["module"] == "transformer.h.0.mlp"
    assert reply["revision"] == page.traits["_view"]["revision"]


def test_a_picture_of_as_many_pixels_as_entries_is_the_value_itself(page, act):
    reply, cells = page.ask(kind="tensor", run=run_of(page), target=TARGET, height=10**4, width=10**4)
    assert reply["kind"] == "picture"
    assert (reply["rows"], reply["columns"]) == act.shape[1:]
    np.testing.assert_array_equal(cells.reshape(act.shape[1:]), act[0].numpy())


def test_the_difference_of_a_value_that_was_set_to_zero_is_what_it_was_with_a_minus(page, act):
    page.act("add_step", step={"kind": "zero", "site": ACT})
    page.settle()
    for which, expected in (("clean", act[0]), ("edited", 0 * act[0]), ("difference", -act[0])):
        _, cells = page.ask(kind="tensor", run=run_of(page), target=TARGET, which=which, height=10**4, width=10**4)
        np.testing.assert_allclose(cells.reshape(act.shape[1:]), expected.numpy(), atol=1e-6)


def test_a_table_is_the_value_in_full(page, act):
    reply, buffer = page.ask(kind="table", run=run_of(page), target=TARGET)
    assert buffer is None
    assert reply["name"].endswith(".csv")
    _, *rows = csv.reader(io.StringIO(reply["csv"]))
    np.testing.assert_array_equal(np.array([row[1:] for row in rows], dtype=np.float32), act[0].numpy())


def test_a_peek_tells_shape_and_statistics(page, act):
    reply, cells = page.ask(kind="peek", target=TARGET)
    assert reply["tensors"][0]["shape"] == tuple(act.shape)
    assert reply["statistics"]["mean"] == pytest.approx(float(act.double().mean()))
    assert reply["statistics"]["largest"] == float(act.max())
    assert len(cells) == reply["rows"] * reply["columns"]


def test_the_tree_lists_every_module(page, model):
    name = page.post(kind="modules")
    reply, _ = page.answer(name)
    columns = np.frombuffer(page.of(name)[1][1]).reshape(5, -1)
    assert len(reply["names"]) == columns.shape[1] == sum(1 for _ in model._model.modules())
    assert columns[2, 0] == sum(p.numel() for p in model._model.parameters())


def test_answer_and_code_are_those_of_the_run(page):
    reply, _ = page.ask(kind="answer", run=run_of(page))
    assert reply["kind"] == "answer_of"
    assert reply["answer"]["rows"][0]["token"] == " Paris"
    reply, _ = page.ask(kind="code", run=run_of(page))
    compile(reply["code"], "code", "exec")


def test_a_sweep_is_asked_for_by_its_run(page):
    page.act("start_sweep", step={"kind": "zero", "site": MLP, "positions": [-1]}, positions="own")
    page.settle()
    assert page.traits["_status"]["failure"] is None
    run = page.traits["_view"]["shown_sweep"]
    reply, cells = page.ask(kind="grid", run=run)
    assert reply["kind"] == "sweep_grid"
    assert reply["done"] == reply["total"] == len(cells)
    assert np.isfinite(cells).all()


def test_a_lens_is_asked_for_by_its_run(page, model):
    page.act("start_lens")
    page.settle()
    reply, cells = page.ask(kind="grid", run=page.traits["_view"]["shown_lens"])
    tokens = model.tokenizer(demo.EIFFEL)["input_ids"]
    assert reply["kind"] == "lens_grid"
    assert len(reply["tokens"]) == len(tokens)
    assert cells.shape == (len(reply["sites"]) * len(tokens),)


# Errors are answers


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"kind": "answer", "run": "r99"}, "r99"),
        ({"kind": "code", "run": "r99"}, "r99"),
        ({"kind": "grid", "run": "r99"}, "r99"),
        ({"kind": "tensor", "run": "r99", "target": TARGET}, "r99"),
        ({"kind": "table", "run": "r99", "target": TARGET}, "r99"),
        ({"kind": "peek", "target": {**TARGET, "site": "transformer.h.99"}}, "transformer.h"),
        ({"kind": "act", "action": {"do": "take_cell", "run": "r99", "cell": [0]}}, "r99"),
        ({"kind": "act", "action": {"do": "restore", "run": "r99"}}, "r99"),
        ({"kind": "act", "action": {"do": "launch"}}, "launch"),
        ({"kind": "act", "action": {"do": "remove_step", "number": "0"}}, "number"),
        ({"kind": "act", "action": {"do": "remove_step", "number": 0, "and": 1}}, "and"),
        ({"kind": "eval", "code": "1"}, "eval"),
        ({"action": {"do": "undo"}}, "kind"),
        ({"kind": "peek"}, "target"),
    ],
)
def test_what_cannot_be_done_is_answered_by_its_reason(page, request_, message):
    before = page.session.state
    reply, buffer = page.ask(**request_)
    assert reply["kind"] == "failed"
    assert message in reply["failure"]["message"]
    assert buffer is None
    assert page.session.state == before


def test_a_run_has_no_grid(page):
    assert "which has no grid" in page.ask(kind="grid", run=run_of(page))[0]["failure"]["message"]


@pytest.mark.parametrize(
    "fields",
    [
        {"window": {"row": 5, "row_end": 2, "column": 0, "column_end": 1}},
        {"window": {"row": -1, "row_end": 2, "column": 0, "column_end": 1}},
        {"window": {"row": 0, "row_end": 10**9, "column": 0, "column_end": 1}},
        {"slice": {"row_axis": 1, "column_axis": 1}},
        {"slice": {"row_axis": 7}},
        {"slice": {"index": [4]}},
    ],
)
def test_a_part_that_the_value_does_not_have_is_refused(page, fields):
    assert page.ask(kind="tensor", run=run_of(page), target=TARGET, **fields)[0]["kind"] == "failed"


@pytest.mark.parametrize(("height", "width"), [(0, 0), (-3, 5), (1, 1)])
def test_a_screen_without_pixels_gets_one_entry(page, act, height, width):
    reply, cells = page.ask(kind="tensor", run=run_of(page), target=TARGET, height=height, width=width)
    assert reply["rows"] == 1
    assert len(cells) == reply["columns"]


@pytest.mark.parametrize("content", [None, 3, "undo", [], {}, {"id": 3, "kind": "modules"}, {"id": None}])
def test_what_has_no_id_is_logged_and_not_answered(page, caplog, content):
    before = len(page.replies)
    page.desk.receive(content)
    assert len(page.replies) == before
    assert "without an id" in caplog.text


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KINDS = st.sampled_from(["act", "modules", "tensor", "table", "peek", "grid", "answer", "code", "import", ""])
FIELDS = st.sampled_from(["action", "run", "target", "slice", "window", "height", "which", "pooling", "trim", "site"])


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(KINDS, st.dictionaries(FIELDS, JUNK, max_size=4))
def test_any_content_gets_one_answer_and_changes_nothing_by_accident(page, kind, fields):
    before = page.session.state
    reply, _ = page.ask(**{"kind": kind, **fields})
    assert reply["kind"] in ("failed", "modules")
    assert page.session.state == before


CODE = ["__import__('os').system('x')", "transformer.h.__class__", "h[0].mlp; 1", "transformer.h[len([])]", "_model"]


@pytest.mark.parametrize("text", CODE)
@pytest.mark.parametrize(
    "action",
    [
        lambda text: {"do": "show_module", "module": text},
        lambda text: {"do": "step_into", "site": text},
        lambda text: {"do": "select", "target": {**TARGET, "site": text}},
        lambda text: {"do": "add_step", "step": {"kind": "zero", "site": text}},
        lambda text: {"do": "add_step", "step": {"kind": "zero", "site": ACT, "heads": text}},
        lambda text: {"do": "start_sweep", "step": {"kind": "zero", "site": ACT}, "sites": text},
    ],
)
def test_no_field_is_taken_as_code(page, monkeypatch, text, action):
    monkeypatch.setattr("os.system", lambda command: pytest.fail("a page's text was carried out"))
    before = page.session.state.experiment
    reply = page.act(**action(text))
    if reply["kind"] == "done":
        page.settle()
        assert page.traits["_status"]["failure"] is not None
    else:
        assert page.session.state.experiment == before


# Order


def test_of_questions_of_a_page_the_latest_is_answered_and_of_another_page_as_well(page, gate):
    asked = {"kind": "tensor", "run": run_of(page), "target": TARGET}
    first, second = page.post("one", **asked), page.post("one", **asked)
    other = page.post("two", **asked)
    gate.set()
    assert page.answer(first)[0]["kind"] == "superseded"
    assert page.answer(second)[0]["kind"] == "picture"
    assert page.answer(other)[0]["kind"] == "picture"


def test_every_request_is_accepted_at_once_and_answered_once(page, gate):
    names = [page.post(kind="peek", target=TARGET), page.post(kind="modules")]
    assert [reply["kind"] for reply, _ in page.of(names[0])] == ["accepted"]
    assert [reply["kind"] for reply, _ in page.of(names[1])] == ["accepted", "modules"]
    gate.set()
    page.answer(names[0])
    page.settle()
    assert all(len(page.of(name)) == 2 for name in names)


# Work


def test_of_runs_that_clicks_ask_for_the_latest_is_shown(page, gate):
    for site in (MLP, "transformer.h.6.mlp", "transformer.h.7.mlp"):
        page.act("add_step", step={"kind": "zero", "site": site})
    assert page.traits["_status"]["stale"]
    gate.set()
    page.settle()
    assert not page.traits["_status"]["stale"]
    shown = page.session.shown.experiment.steps
    assert shown == tuple(Zero(site) for site in (MLP, "transformer.h.6.mlp", "transformer.h.7.mlp"))
    assert [record.experiment.steps for record in page.session.history] == [(), shown]


def test_a_run_that_waits_is_cancelled_and_the_state_stays(page, gate):
    page.act("add_step", step={"kind": "zero", "site": MLP})
    assert page.traits["_status"]["waiting"] == ("run",)
    page.act("cancel", work="run")
    gate.set()
    page.settle()
    status = page.traits["_status"]
    assert (status["work"], status["waiting"], status["failure"], status["stale"]) == (None, (), None, True)
    page.act("run")
    page.settle()
    assert not page.traits["_status"]["stale"]


def test_undo_shows_the_earlier_run_again_without_computing_it(page):
    before = run_of(page)
    page.act("add_step", step={"kind": "zero", "site": MLP})
    page.settle()
    after = run_of(page)
    assert after != before
    page.act("undo")
    assert run_of(page) == before
    page.act("redo")
    assert run_of(page) == after
    page.settle()
    assert len(page.session.history) == 2


def test_work_that_fails_is_told_and_done_again_by_retry(page, monkeypatch):
    from nnsight_lab.widgets import agenda

    real, calls = agenda.run_experiment, []

    def once(*args):
        calls.append(args)
        if len(calls) == 1:
            raise RuntimeError("out of memory")
        return real(*args)

    monkeypatch.setattr(agenda, "run_experiment", once)
    page.act("add_step", step={"kind": "zero", "site": MLP})
    page.settle()
    status = page.traits["_status"]
    assert (status["failed"], status["failure"]["message"]) == ("run", "out of memory")
    assert "once" in status["failure"]["traceback"]
    assert status["stale"]
    page.act("retry")
    page.settle()
    status = page.traits["_status"]
    assert (status["failed"], status["failure"], status["stale"]) == (None, None, False)


def test_a_failure_is_dismissed(page, monkeypatch):
    def fail(*args):
        raise RuntimeError("no")

    monkeypatch.setattr("nnsight_lab.widgets.agenda.run_experiment", fail)
    page.act("run")
    page.settle()
    assert page.traits["_status"]["failure"]["message"] == "no"
    page.act("dismiss")
    assert page.traits["_status"]["failure"] is None


def test_without_a_prompt_the_model_can_be_read_and_not_run(model):
    page = Page(model, module=MLP)
    try:
        assert page.traits["_answer"] == {}
        assert page.traits["_listing"]["blocks"][0]["operations"]
        assert "prompt" in page.act("run")["failure"]["message"]
        assert "prompt" in page.act("start_lens")["failure"]["message"]
    finally:
        page.close()


def test_after_the_end_nothing_is_drawn(page, gate):
    page.act("add_step", step={"kind": "zero", "site": MLP})
    page.session.close()
    drawn = dict(page.traits)
    gate.set()
    page.settle()
    assert page.traits == drawn


def test_only_traits_that_changed_are_drawn(page):
    assert page.drawing.changed() == {}
    page.act("show_module", module="transformer.h.0.mlp")
    page.settle()
    revision = page.drawing.revision
    assert page.drawing.changed() == {}
    assert page.drawing.revision == revision


def test_drawn_prompts_are_kept_as_far_as_there_is_room(page):
    sights = page.session.sights
    drawn = sights.prompt("prompt 0")
    assert sights.prompt("prompt 0") is drawn
    for number in range(100):
        sights.prompt(f"prompt {number}")
    assert len(sights._prompts) == 32
    assert sights.prompt("prompt 0") is not drawn
    assert sights.prompt("prompt 0") == drawn
