"""Steps of a run: `tracer.iter`, `.all`, `.next` on a toy whose `generate` calls it several times."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import nnsight_lab as nl
from nnsight_lab import NNsight

X = torch.arange(8.0).reshape(2, 4) / 8


class Stepper(nn.Module):
    """Each step doubles; odd steps take a side branch, and `twice` is called two times a step."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.twice = nn.Linear(4, 4)
        self.between = nn.Identity()
        self.side = nn.Linear(4, 4)
        self.head = nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        x = self.twice(self.between(self.twice(x)))
        if self.calls % 2 == 0:
            x = torch.tanh(self.side(x))
        return self.head(x)

    def generate(self, x: Tensor, steps: int = 4) -> Tensor:
        self.calls = 0
        for _ in range(steps):
            x = self(x)
        return x


@pytest.fixture
def model() -> NNsight:
    return NNsight(Stepper())


def hooked(model: NNsight, name: str) -> tuple[Tensor, list[Tensor]]:
    """What plain `generate` returns, and the module's output at every call of it."""
    module: Any = model._model
    values: list[Tensor] = []
    handle = module.get_submodule(name).register_forward_hook(lambda m, a, output: values.append(output))
    try:
        return module.generate(X), values
    finally:
        handle.remove()


def test_any_module_that_generates_has_steps(model):
    with model.generate(X) as tracer:
        heads = [(step, model.head.output) for step in tracer.iter[:]]
    result, values = hooked(model, "head")
    assert [step for step, _ in heads] == [0, 1, 2, 3]
    assert all(torch.equal(mine, plain) for (_, mine), plain in zip(heads, values, strict=True))
    assert torch.equal(tracer.result, result)


def test_a_module_that_does_not_generate_says_so():
    with pytest.raises(nl.UnknownNameError, match="no method 'generate'"):
        NNsight(nn.Linear(2, 2)).generate(X)


def test_a_module_called_twice_in_a_step_gives_both_calls_and_no_third(model):
    with model.generate(X) as tracer:
        pairs = []
        for _ in tracer.iter[:]:
            first = model.twice.output
            model.between.output
            pairs.append((first, model.twice.output))
    _, values = hooked(model, "twice")
    assert all(torch.equal(a, b) for a, b in zip([v for pair in pairs for v in pair], values, strict=True))
    with pytest.raises(nl.OutOfOrderError, match=r"model\.twice.*in step 0"), model.generate(X):
        model.twice.output
        model.between.output
        model.twice.output
        model.head.input
        model.twice.output


def test_a_branch_that_this_step_does_not_take_is_not_that_of_a_later_step(model):
    with pytest.raises(nl.NotReachedError, match=r"model\.side\.output was never reached in step 2"):
        with model.generate(X) as tracer:
            for _ in tracer.iter[[1, 2]]:
                model.side.output
    with pytest.raises(nl.NotReachedError, match="in step 2"), model.generate(X) as tracer:
        for _ in tracer.iter[1:]:
            seen = model.source.torch_tanh_0.output
    assert torch.equal(seen, torch.tanh(hooked(model, "side")[1][0]))


def test_an_operation_asked_for_late_that_its_step_does_not_call(model):
    with pytest.raises(nl.NotReachedError, match=r"torch_tanh_0\.output was never reached in step 2.*on a branch"):
        with model.generate(X) as tracer:
            for _ in tracer.iter[2:]:
                model.source.torch_tanh_0.output


@pytest.mark.parametrize("ending", ["the next step", "leaving the loop", "the result"])
def test_an_assignment_waits_no_longer_than_its_step(model, ending):
    with pytest.raises(nl.NotReachedError, match=r"model\.side\.output was never reached in step 0"):
        with model.generate(X) as tracer:
            for step in tracer.iter[:]:
                if step == 0:
                    model.side.output = torch.zeros(2, 4)
                    if ending == "the result":
                        tracer.result
                    if ending == "leaving the loop":
                        break


def test_a_skip_waits_no_longer_than_its_step(model):
    with pytest.raises(nl.NotReachedError, match=r"model\.side\.skip was never reached in step 0"):
        with model.generate(X):
            model.side.skip(torch.zeros(2, 4))


def test_a_skip_concerns_its_step_alone(model):
    with model.generate(X) as tracer:
        for _ in tracer.iter[1]:
            model.head.skip(torch.ones(2, 4))
    plain = Stepper()
    x = plain.twice(plain.twice(torch.ones(2, 4)))  # step 2, on what step 1 gave
    x = plain.head(x)
    x = plain.head(torch.tanh(plain.side(plain.twice(plain.twice(x)))))
    assert torch.equal(tracer.result, x)


def test_an_assignment_that_the_last_step_did_not_carry_out_is_reported(model):
    with pytest.raises(nl.NotReachedError, match=r"model\.side\.output was never reached in step 2"):
        with model.generate(X, 3) as tracer:
            for _ in tracer.iter[2]:
                model.side.output = X


def test_a_numbered_operation_of_a_step_that_never_came_is_reported_at_the_block(model):
    with pytest.raises(nl.NotReachedError, match=r"call 4 was asked for"):
        with model.generate(X):
            model.source.self_head_0[4].output = X


def test_a_numbered_operation_may_lie_in_a_later_step(model):
    with model.generate(X):
        third = model.source.self_head_0[2].output
        with pytest.raises(nl.OutOfOrderError):
            model.twice.output
    assert torch.equal(third, hooked(model, "head")[1][2])


def test_an_error_in_a_step_that_is_caught_leaves_the_steps_after_it(model):
    values = []
    with model.generate(X) as tracer:
        for step in tracer.iter[:]:
            if step == 0:
                with pytest.raises(nl.NotReachedError):
                    model.side.output
            else:
                values.append(model.head.output)
    plain = hooked(model, "head")[1]
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(values, plain[1:], strict=True))


def test_a_module_goes_on_to_its_own_next_step(model):
    with model.generate(X):
        heads = [model.head.output, model.head.next().output, model.head.next(2).output]
    plain = hooked(model, "head")[1]
    assert all(torch.equal(mine, plain[index]) for mine, index in zip(heads, (0, 1, 3), strict=True))
    with model.generate(X):
        side, head = model.side.next().output, model.head.next().output
    assert torch.equal(side, hooked(model, "side")[1][0])
    assert torch.equal(head, plain[1])
    with model.generate(X) as tracer:
        tracer.next()
        assert torch.equal(model.head.next().output, plain[2])


def test_next_where_there_is_none(model):
    with pytest.raises(nl.OutsideTraceError, match=r"model\.head\.next\(\)"):
        model.head.next()
    with pytest.raises(nl.NotReachedError, match="Step 9 never came: the model made 4 steps"), model.generate(X):
        model.head.next(9)
    with pytest.raises(nl.OutOfOrderError, match="Step 1"), model.generate(X) as tracer:
        model.side.next().output
        model.head.next(3).output
        model.twice.next()
    for count in (0, -1):
        with model.generate(X) as tracer, pytest.raises(ValueError, match="forward"):
            tracer.next(count)


def test_a_trace_of_one_forward_has_one_step(model):
    with model.trace(X) as tracer:
        heads = [(step, model.head.output) for step in tracer.iter[:]]
    assert [step for step, _ in heads] == [0]
    with pytest.raises(nl.NotReachedError, match="Step 1 never came: the model made 1 steps"):
        with model.trace(X) as tracer:
            model.twice.output
            tracer.next()


def test_a_step_is_gone_through_once(model):
    with model.generate(X) as tracer:
        assert list(tracer.iter[2]) == [2]
        with pytest.raises(nl.OutOfOrderError, match="Step 0 was asked for, but it is over: the model is in step 2"):
            list(tracer.iter[0])
        assert list(tracer.iter[2:]) == [2, 3]
        assert list(tracer.iter[:]) == []
        with pytest.raises(nl.OutOfOrderError, match="Step 3 was asked for, but it is over: the model has ended"):
            list(tracer.iter[3])


@pytest.mark.parametrize(
    ("key", "steps"),
    [
        (slice(None), [0, 1, 2, 3]), (slice(2), [0, 1]), (slice(1, None, 2), [1, 3]), (slice(3, 99), [3]), (2, [2]),
        (9, []), ([0, 3], [0, 3]), ([0, 9], [0]), ((1, 2), [1, 2]), (range(2), [0, 1]), ([], []),
        (torch.tensor(1), [1]),
    ],
)  # fmt: skip
def test_which_steps_are_chosen(model, key, steps):
    with model.generate(X) as tracer:
        assert list(tracer.iter[key]) == steps


@pytest.mark.parametrize("key", [-1, [-1], slice(-2, None), slice(None, -1), slice(None, None, -1), slice(0, 4, 0)])
def test_numbers_that_count_from_the_end_are_refused(model, key):
    with model.generate(X) as tracer, pytest.raises(ValueError, match=r"tracer\.iter"):
        tracer.iter[key]


@pytest.mark.parametrize("key", [[1, 0], [1, 1], [0, 2, 1]])
def test_steps_out_of_order_are_refused(model, key):
    with model.generate(X) as tracer, pytest.raises(ValueError, match="ascending order"):
        tracer.iter[key]


@pytest.mark.parametrize("key", ["1", 1.0, None, slice("a"), ["b"]])
def test_what_numbers_no_step_is_refused(model, key):
    with model.generate(X) as tracer, pytest.raises(TypeError, match="a slice, a number or a list"):
        tracer.iter[key]


def test_a_with_block_over_steps_says_to_write_a_loop(model):
    with model.generate(X) as tracer:
        with pytest.raises(nl.TraceStateError, match=r"write `for step in tracer\.iter\[1:3\]:`"):
            with tracer.iter[1:3]:
                pass
        with pytest.raises(nl.TraceStateError, match=r"for step in tracer\.iter\[:\]"):
            with tracer.all():
                pass


def test_steps_outside_the_block_are_refused(model):
    tracer = model.generate(X)
    with pytest.raises(nl.TraceStateError, match="inside its own"):
        tracer.iter[:]
    with tracer:
        loop = tracer.iter[:]
    with pytest.raises(nl.TraceStateError, match="inside its own"):
        list(loop)
    with pytest.raises(nl.TraceStateError):
        tracer.next()


def test_an_error_in_the_body_of_a_step_leaves_the_model_untouched(model):
    expected = model._model.generate(X)
    attributes = set(vars(model._model.head))
    with pytest.raises(ZeroDivisionError):
        with model.generate(X) as tracer:
            for _ in tracer.iter[:]:
                model.head.output
                1 / 0
    assert set(vars(model._model.head)) == attributes
    assert torch.equal(model._model.generate(X), expected)
