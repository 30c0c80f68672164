"""`model.session()`: traces in place and in order, with one end."""

import pytest
import torch

import nnsight_lab as nl
from nnsight_lab import NNsight, demo

from .trace_toys import hooked, installed, recorded, same, sample, toy


@pytest.fixture
def model():
    return NNsight(toy())


def test_traces_run_in_order_and_hand_values_on(model):
    one, two, order = sample(1), sample(2), []
    handle = model._model.embed.register_forward_hook(lambda _, args, __: order.append(args[0]))
    with model.session() as session:
        with model.trace(one):
            first = model.h[1].output
        assert order[0] is one
        with session.trace(two) as tracer:
            model.h[1].output = first
    handle.remove()
    assert order[1] is two
    plain = model._model
    assert same(first, recorded(plain, plain.h[1], one)[0])
    with hooked(plain.h[1], lambda _: first):
        assert same(tracer.result, plain(two))


def test_ordinary_code_stands_between_the_traces(model):
    outputs = []
    with model.session():
        for seed in range(3):
            with model.trace(sample(seed)):
                outputs.append(model.head.output.save())
    assert all(same(output, model._model(sample(seed))) for seed, output in enumerate(outputs))


def test_stop_ends_the_session_and_the_trace_open_in_it(model):
    ran, before = [], installed(model._model)
    handle = model._model.h[2].register_forward_hook(lambda *_: ran.append(2))
    with model.session() as session:
        with model.trace(sample()):
            seen = model.h[0].output
            session.stop()
            ran.append("the rest of the trace")
        ran.append("the rest of the session")
    handle.remove()
    assert ran == []
    assert same(seen, recorded(model._model, model._model.h[0], sample())[0])
    assert installed(model._model) == before


def test_stopping_a_trace_leaves_the_session_going(model):
    with model.session():
        with model.trace(sample()) as tracer:
            model.h[0].output
            tracer.stop()
        with model.trace(sample()) as later:
            logits = model.head.output
    assert same(logits, later.result)


def test_errors_leave_a_session_as_they_are(model):
    with pytest.raises(ZeroDivisionError), model.session(), model.trace(sample()):
        model.h[0].output
        1 / 0


def test_a_session_is_used_once_and_stopped_inside_only(model):
    session = model.session()
    with pytest.raises(nl.TraceStateError, match="inside its own"):
        session.stop()
    with session:
        pass
    with pytest.raises(nl.TraceStateError, match=r"Call \.session\(\) again"), session:
        pass


def test_a_remote_session_is_refused(model):
    with pytest.raises(NotImplementedError, match=r"session\(remote=\.\.\.\)"):
        model.session(remote=True)


def test_a_language_models_session_runs_here():
    model = demo.load()
    with torch.no_grad(), model.session(remote=False):
        with model.trace("First prompt"):
            h1 = model.transformer.h[5].output[0].save()

        with model.trace("Second prompt"):
            h2 = model.transformer.h[5].output[0].save()
    for prompt, hidden in (("First prompt", h1), ("Second prompt", h2)):
        with torch.no_grad(), model.trace(prompt):
            alone = model.transformer.h[5].output[0]
        assert same(hidden, alone)
