"""However a trace ends, the model is afterwards what it was before, and nothing is kept alive."""

import gc
import os
import subprocess
import sys
import textwrap
import traceback

import pytest
import torch
from torch import nn

from nnsight_lab import NNsight, NotReachedError, OutOfOrderError
from tests.engine.trace_toys import installed, same, sample, toy


class Broken(RuntimeError):
    pass


class Raises(nn.Module):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def forward(self, x):
        raise self.error


def failing(error):
    model = toy()
    model.h[1].mlp.act = Raises(error)
    return model


@pytest.fixture
def model():
    return NNsight(toy())


@pytest.fixture
def untouched(model):
    """Checks at the end that the model is as it was."""
    x = sample()
    before, traces = model._model(x), installed(model._model)
    state = (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"))
    yield model
    assert installed(model._model) == traces
    assert same(model._model(x), before)
    assert state == (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"))


def test_an_exception_in_the_body(untouched):
    with pytest.raises(Broken, match="in the body"):
        with untouched.trace(sample()):
            untouched.h[0].mlp.source.self_act_0.output
            raise Broken("in the body")


def test_a_keyboard_interrupt_in_the_body(untouched):
    with pytest.raises(KeyboardInterrupt):
        with untouched.trace(sample()):
            untouched.h[0].output
            raise KeyboardInterrupt


def test_an_exception_before_anything_was_read(untouched):
    ran = []
    untouched._model.embed.register_forward_hook(lambda *_: ran.append(1)).remove()
    with pytest.raises(Broken):
        with untouched.trace(sample()):
            raise Broken
    assert ran == []


@pytest.mark.parametrize("error", [Broken("in the model"), KeyboardInterrupt("in the model"), SystemExit("out")])
def test_an_exception_in_the_model_surfaces_at_the_read_with_both_stacks(error):
    plain = failing(error)
    model = NNsight(plain)
    traces = installed(plain)
    with pytest.raises(type(error)) as caught:
        with model.trace(sample()):
            model.h[0].output
            model.h[2].output
    assert caught.value is error
    text = "".join(traceback.format_exception(error))
    assert "model.h[2].output" in text  # the user's line
    assert "x = block(x, scale=0.5)" in text  # the model's frames
    assert "hidden = self.act(hidden)" in text
    assert "raise self.error" in text
    assert installed(plain) == traces


def test_an_exception_in_the_model_after_the_last_read_surfaces_at_the_block():
    error = Broken("in the model")
    model = NNsight(failing(error))
    with pytest.raises(Broken) as caught:
        with model.trace(sample()):
            model.h[0].output
    lines = [frame.line for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "with model.trace(sample()):" in lines
    assert "raise self.error" in lines


def test_an_exception_in_a_rewritten_forward_shows_the_original_line():
    model = NNsight(failing(Broken("in the model")))
    with pytest.raises(Broken) as caught:
        with model.trace(sample()):
            model.h[1].mlp.source.self_down_0.output
    assert "hidden = self.act(hidden)" in [f.line for f in traceback.extract_tb(caught.value.__traceback__)]


def test_the_body_can_catch_the_models_exception():
    model = NNsight(failing(Broken("in the model")))
    with model.trace(sample()):
        kept = model.h[0].output
        with pytest.raises(Broken):
            model.h[2].output
    assert kept.shape == (2, 3, 8)


def test_stop_ends_body_and_model_there(untouched):
    ran, after = [], []
    handle = untouched._model.h[2].register_forward_hook(lambda *_: ran.append(1))
    with untouched.trace(sample()) as tracer:
        value = untouched.h[0].output
        tracer.stop()
        after.append(1)
    handle.remove()
    assert value.shape == (2, 3, 8)
    assert (ran, after) == ([], [])


def test_stop_from_a_helper_and_before_anything_was_read(untouched):
    ran = []
    handle = untouched._model.embed.register_forward_hook(lambda *_: ran.append(1))

    def helper(tracer):
        tracer.stop()

    with untouched.trace(sample()) as tracer:
        helper(tracer)
    handle.remove()
    assert ran == []


def test_stop_of_the_outer_trace_inside_the_inner_one(untouched):
    other = NNsight(toy(7))
    seen = []
    with untouched.trace(sample()) as outer:
        untouched.h[0].output
        with other.trace(sample()):
            seen.append(other.h[0].output)
            outer.stop()
        seen.append("never")
    assert len(seen) == 1
    assert installed(other._model) == installed(toy(7))


def test_stop_outside_its_block_is_an_error(model):
    from nnsight_lab import TraceStateError

    tracer = model.trace(sample())
    with pytest.raises(TraceStateError, match="inside its own `with` block"):
        tracer.stop()
    with tracer:
        pass
    with pytest.raises(TraceStateError):
        tracer.stop()
    with model.trace(sample()) as tracer:
        tracer.stop()
    with pytest.raises(TraceStateError, match="no result"):
        tracer.result


class Catches(nn.Module):
    """A model that tries to survive everything."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.events = []

    def forward(self, x):
        for turn in range(3):
            try:
                x = self.inner(x)
            except Exception:
                self.events.append("exception")
            except:  # noqa: E722
                self.events.append("bare")
                if turn == 2:
                    raise
            finally:
                self.events.append("finally")
        return self.inner(x)


@pytest.mark.parametrize("how", ["stop", "raise"])
def test_a_model_that_catches_everything_is_taken_down_all_the_same(how):
    plain = Catches()
    model = NNsight(plain)
    x = torch.ones(1, 4)
    before, traces = plain(x), installed(plain)
    plain.events.clear()
    if how == "stop":
        with model.trace(x) as tracer:
            model.inner.output
            tracer.stop()
    else:
        with pytest.raises(Broken), model.trace(x):
            model.inner.output
            raise Broken
    assert "exception" not in plain.events
    assert "finally" in plain.events
    assert installed(plain) == traces
    assert same(plain(x), before)


def test_a_model_that_raises_another_error_while_it_is_taken_down_says_so():
    class Cleans(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x):
            try:
                return self.inner(x)
            finally:
                raise Broken("while cleaning up")

    plain = Cleans()
    model = NNsight(plain)
    with pytest.raises(Broken, match="while cleaning up"):
        with model.trace(torch.ones(1, 4)) as tracer:
            model.inner.output
            tracer.stop()
    assert installed(plain) == {"": (set(), 0), "inner": (set(), 0)}


def test_an_error_in_the_body_wins_over_one_in_the_models_cleaning_up_and_names_it():
    class Cleans(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x):
            try:
                return self.inner(x)
            finally:
                raise RuntimeError("while cleaning up")

    model = NNsight(Cleans())
    with pytest.raises((Broken, RuntimeError)) as caught:
        with model.trace(torch.ones(1, 4)):
            model.inner.output
            raise Broken("first")
    # Python's own rule for an error in a clean-up: the later one carries the earlier as its context.
    text = "".join(traceback.format_exception(caught.value))
    assert "first" in text
    assert "while cleaning up" in text


def run_every_way(model, x):
    """One trace of each kind of ending."""
    with model.trace(x):
        pass
    with model.trace(x) as tracer:
        model.h[0].output
        model.h[1].mlp.output = model.h[1].mlp.output * 2
        tracer.result
    with model.trace(x):
        model.h[0].mlp.source.self_act_0.output
        model.h[0].mlp.source.self_act_0.output = model.h[0].mlp.source.self_act_0.output * 2
    with model.trace(x) as tracer:
        model.h[0].output
        tracer.stop()
    try:
        with model.trace(x):
            model.h[1].output
            model.h[0].output
    except OutOfOrderError:
        pass
    try:
        with model.trace(x):
            model.unused.output
    except NotReachedError:
        pass
    try:
        with model.trace(x):
            model.h[1].mlp.source.self_act_0.output
            raise Broken
    except Broken:
        pass


def census():
    tensors = engine = 0
    for thing in gc.get_objects():
        kind = type(thing)
        if issubclass(kind, torch.Tensor):
            tensors += 1
        elif str(kind.__module__).startswith("nnsight_lab.engine") or kind.__name__ in ("greenlet", "frame"):
            engine += 1
    return tensors, engine


def test_two_hundred_traces_without_the_garbage_collector_leave_nothing(model):
    x = sample()
    for _ in range(3):
        run_every_way(model, x)
    gc.collect()
    gc.disable()
    try:
        before = census()
        for _ in range(30):  # seven traces each
            run_every_way(model, x)
        after = census()
    finally:
        gc.enable()
    assert after == before


def test_two_hundred_traces_that_fail_in_the_model_leave_nothing():
    model = NNsight(failing(Broken("in the model")))
    x = sample()

    def fail():
        model._model.h[1].mlp.act.error = Broken("anew")
        try:
            with model.trace(x):
                model.h[0].output
                model.h[2].mlp.source.self_act_0.output
        except Broken:
            pass
        model._model.h[1].mlp.act.error = None

    for _ in range(3):
        fail()
    gc.collect()
    gc.disable()
    try:
        before = census()
        for _ in range(200):
            fail()
        after = census()
    finally:
        gc.enable()
    assert after == before


def test_an_error_deep_in_a_kernel_under_torchs_stack_capture_is_an_ordinary_exception(tmp_path):
    script = textwrap.dedent("""
        import torch, traceback
        from torch import nn
        from nnsight_lab import NNsight

        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.two = nn.Linear(4, 4), nn.Linear(5, 5)
            def forward(self, x):
                return self.two(self.one(x))

        model = NNsight(Outer())
        for read in ("one", "two"):
            try:
                with model.trace(torch.ones(1, 4)):
                    getattr(model, read).output
            except RuntimeError:
                text = traceback.format_exc()
                assert "self.two(self.one(x))" in text, text
                assert "cannot be multiplied" in text, text
        print("survived")
    """)
    path = tmp_path / "deep.py"
    path.write_text(script)
    done = subprocess.run(
        [sys.executable, path],
        capture_output=True,
        text=True,
        env={**os.environ, "TORCH_SHOW_CPP_STACKTRACES": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "survived"
