"""The body is ordinary Python: every form of it that a notebook, a script or a library can have."""

import asyncio
import code
import contextvars
import sys

import pytest
import torch
from torch import nn

from nnsight_lab import NNsight
from tests.engine.trace_toys import recorded, same, sample, toy


@pytest.fixture
def model():
    return NNsight(toy())


@pytest.fixture
def expected(model):
    return recorded(model._model, model._model.h[1], sample())[0]


def test_every_variable_survives_the_block(model, expected):
    with model.trace(sample()):
        value = model.h[1].output
        shape = tuple(value.shape)
        table = {"doubled": value * 2}
    assert same(value, expected)
    assert shape == (2, 3, 8)
    assert same(table["doubled"], expected * 2)


def test_a_body_on_the_line_of_its_with(model, expected):
    with model.trace(sample()): value = model.h[1].output  # noqa: E701  # fmt: skip
    assert same(value, expected)


def test_code_run_by_exec(model, expected):
    names = {"model": model, "x": sample()}
    exec("with model.trace(x):\n    value = model.h[1].output", names)
    assert same(names["value"], expected)


def test_an_interactive_interpreter(model, expected):
    names = {"model": model, "x": sample()}
    interpreter = code.InteractiveInterpreter(names)
    more = interpreter.runsource("with model.trace(x):\n    value = model.h[1].output\n", symbol="single")
    assert more is False
    assert same(names["value"], expected)


def test_a_helper_function_reads_for_the_body(model, expected):
    def read(index):
        return model.h[index].output

    with model.trace(sample()):
        value = read(1)
    assert same(value, expected)


def test_a_comprehension_and_a_lambda_read(model, expected):
    with model.trace(sample()):
        first, second = [block.output for block in model.h[:2]]
        third = (lambda: model.h[2].output)()
    assert same(second, expected)
    assert same(model._model.h[2](second, scale=0.5), third)
    assert same(model._model.h[1](first, scale=0.5), second)


def test_return_out_of_the_block_runs_the_rest_of_the_model(model, expected):
    ran = []
    model._model.head.register_forward_hook(lambda *_: ran.append(1))

    def read():
        with model.trace(sample()):
            return model.h[1].output

    assert same(read(), expected)
    assert ran == [1]


def test_break_and_continue_out_of_the_block(model, expected):
    seen = []
    for turn in range(3):
        with model.trace(sample()):
            if turn == 0:
                continue
            seen.append(model.h[1].output)
            break
    assert len(seen) == 1
    assert same(seen[0], expected)


def test_a_generator_as_body(model):
    def outputs():
        with model.trace(sample()):
            for block in model.h:
                yield block.output

    expected = [recorded(model._model, block, sample())[0] for block in model._model.h]
    assert all(same(one, other) for one, other in zip(outputs(), expected, strict=True))


def test_a_generator_that_is_abandoned_takes_its_model_down(model):
    def outputs():
        with model.trace(sample()):
            for block in model.h:
                yield block.output

    before = model._model(sample())
    running = outputs()
    next(running)
    running.close()
    assert all("_compiled_call_impl" not in module.__dict__ for module in model._model.modules())
    assert same(model._model(sample()), before)


def test_two_generators_in_turn(model):
    def outputs(x):
        with model.trace(x):
            for block in model.h:
                yield block.output

    inputs = [sample(3), sample(4)]
    pairs = list(zip(*(outputs(x) for x in inputs), strict=True))
    for index, x in enumerate(inputs):
        for depth, block in enumerate(model._model.h):
            assert same(pairs[depth][index], recorded(model._model, block, x)[0])


def test_two_async_traces_in_turn(model):
    async def outputs(x):
        seen = []
        with model.trace(x):
            for block in model.h:
                seen.append(block.output)
                await asyncio.sleep(0)
        return seen

    async def both():
        return await asyncio.gather(outputs(sample(3)), outputs(sample(4)))

    for x, seen in zip((sample(3), sample(4)), asyncio.run(both()), strict=True):
        for block, value in zip(model._model.h, seen, strict=True):
            assert same(value, recorded(model._model, block, x)[0])


def test_try_and_except_around_a_read_goes_on_with_the_same_run(model, expected):
    from nnsight_lab import OutOfOrderError

    with model.trace(sample()) as tracer:
        model.h[0].output
        try:
            model.embed.output
        except OutOfOrderError:
            caught = True
    # Looking for a second call of `embed` ran the model to its end: the result is there all the same.
    assert caught
    assert same(tracer.result, model._model(sample()))


def test_context_variables_of_the_caller_are_seen_by_the_model():
    variable = contextvars.ContextVar("variable", default="default")

    class Reads(nn.Module):
        def forward(self, x):
            return x, variable.get()

    model = NNsight(Reads())
    token = variable.set("from the caller")
    try:
        with model.trace(torch.ones(1)) as tracer:
            pass
    finally:
        variable.reset(token)
    assert tracer.result[1] == "from the caller"


def test_context_variables_set_by_the_body_are_the_bodys_after_a_read(model):
    variable = contextvars.ContextVar("variable", default="default")
    with model.trace(sample()):
        variable.set("before the read")
        model.h[1].output
        seen = variable.get()
    assert seen == "before the read"


def test_a_trace_function_of_a_debugger_keeps_running(model):
    lines = []

    def tracer(frame, event, _):
        if frame.f_code is body.__code__ and event == "line":
            lines.append(frame.f_lineno - body.__code__.co_firstlineno)
        return tracer

    def body():
        with model.trace(sample()):
            first = model.h[0].output
            second = model.h[1].output
        return first, second

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        body()
        active = sys.gettrace()
    finally:
        sys.settrace(before)
    assert active is tracer
    assert [line for line in lines if line in (2, 3, 4)] == [2, 3, 4]


def test_a_trace_is_used_once(model):
    from nnsight_lab import TraceStateError

    tracer = model.trace(sample())
    with tracer:
        pass
    with pytest.raises(TraceStateError, match="used already"):
        tracer.__enter__()


def test_a_read_outside_a_trace_says_so(model):
    from nnsight_lab import OutsideTraceError

    with pytest.raises(OutsideTraceError, match=r"model\.h\[1\]\.mlp\.output has a value only while a trace is open"):
        model.h[1].mlp.output
    with pytest.raises(OutsideTraceError):
        model.h[1].mlp.output = 1
    with pytest.raises(OutsideTraceError):
        model.h[1].mlp.skip(1)
    with pytest.raises(OutsideTraceError):
        model.h[1].mlp.source.self_act_0.output
