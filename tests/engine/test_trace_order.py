"""A site that was passed and a site that was never reached are two errors, each at the user's line."""

import contextlib
import traceback

import pytest
import torch
from torch import nn

from nnsight_lab import NNsight, NotReachedError, OutOfOrderError, SkipTooLateError, UnknownNameError
from tests.engine.trace_toys import recorded, same, sample, toy


class Branches(nn.Module):
    """Takes its first branch for a positive sum; calls `twice` two times and `never` not at all."""

    def __init__(self):
        super().__init__()
        self.positive = nn.Linear(4, 4)
        self.negative = nn.Linear(4, 4)
        self.twice = nn.Linear(4, 4)
        self.never = nn.Linear(4, 4)

    def forward(self, x):
        if x.sum() > 0:  # noqa: SIM108
            x = self.positive(x)
        else:
            x = self.negative(x)
        x = self.twice(x)
        x = torch.relu(x)
        x = self.twice(x)
        return self.helper(x)

    def helper(self, x):
        if x is None:
            x = torch.zeros(4)
        return torch.tanh(x)


@pytest.fixture
def model():
    return NNsight(toy())


@pytest.fixture
def branches():
    torch.manual_seed(0)
    return NNsight(Branches())


ONES = torch.ones(2, 4)


def user_line(caught):
    """The text of the line of this file at which the error arose."""
    own = [frame for frame in traceback.extract_tb(caught.value.__traceback__) if frame.filename == __file__]
    return own[-1].line


def test_a_passed_module_is_out_of_order(model):
    with pytest.raises(OutOfOrderError) as caught, model.trace(sample()):
        model.h[2].output
        model.h[1].output
    assert user_line(caught) == "model.h[1].output"
    text = str(caught.value)
    assert "model.h[1].output was asked for after model.h[2].output" in text
    assert "move the line with model.h[1].output above the one with model.h[2].output" in text


def test_the_input_of_a_passed_module_is_out_of_order(model):
    with pytest.raises(OutOfOrderError, match=r"model\.h\[0\]\.input was asked for after model\.h\[2\]\.output"):
        with model.trace(sample()):
            model.h[2].output
            model.h[0].input


def test_a_parents_input_is_out_of_order_once_a_child_was_read(model):
    with pytest.raises(OutOfOrderError, match=r"model\.h\[1\]\.input was asked for after model\.h\[1\]\.mlp\.output"):
        with model.trace(sample()):
            model.h[1].mlp.output
            model.h[1].input


def test_a_parents_output_is_ahead_while_a_child_is_read(model):
    x = sample()
    with model.trace(x):
        model.h[1].mlp.output
        value = model.h[1].output
    assert same(value, recorded(model._model, model._model.h[1], x)[0])


def test_a_passed_operation_is_out_of_order(model):
    with pytest.raises(OutOfOrderError) as caught, model.trace(sample()):
        model.h[1].mlp.source.self_down_0.output
        model.h[1].mlp.source.self_act_0.output
    assert user_line(caught) == "model.h[1].mlp.source.self_act_0.output"
    assert "model.h[1].mlp.source.self_down_0.output" in str(caught.value)


def test_an_operation_of_a_passed_module_is_out_of_order(model):
    with pytest.raises(OutOfOrderError, match=r"already passed|first used"), model.trace(sample()):
        model.h[2].output
        model.h[1].mlp.source.self_act_0.output


def test_an_operation_first_named_inside_its_running_forward_says_to_touch_it_before(model):
    with pytest.raises(OutOfOrderError, match=r"Touch model\.h\[1\]\.mlp\.source before"), model.trace(sample()):
        model.h[1].mlp.up.output
        model.h[1].mlp.source.self_act_0.output


def test_an_operation_touched_before_can_be_read_inside_its_running_forward(model):
    x = sample()
    with model.trace(x):
        operation = model.h[1].mlp.source.self_act_0
        model.h[1].mlp.up.output
        value = operation.output
    assert same(value, recorded(model._model, model._model.h[1].mlp.act, x)[0])


def test_a_branch_not_taken_is_never_a_matter_of_order(branches):
    with pytest.raises(NotReachedError) as caught, branches.trace(ONES):
        branches.source.self_negative_0.output
    assert user_line(caught) == "branches.source.self_negative_0.output"
    assert "line 3 of Branches.forward is on a branch this forward did not take" in str(caught.value)
    # Also when it is asked for long after the place where it would have been.
    with pytest.raises(NotReachedError, match=r"line 3 of Branches.forward is on a branch"), branches.trace(ONES):
        branches.source.torch_relu_0.output
        branches.source.self_negative_0.output


def test_the_other_branch_is_read_when_it_is_taken(branches):
    with branches.trace(-ONES):
        value = branches.source.self_negative_0.output
    assert same(value, branches._model.negative(-ONES))


def test_a_module_on_a_branch_not_taken_was_not_called(branches):
    with pytest.raises(NotReachedError, match=r"model\.negative\.output was never reached: this forward did not call"):
        with branches.trace(ONES):
            branches.negative.output
    with pytest.raises(NotReachedError, match=r"model\.negative\.input was never reached"), branches.trace(ONES):
        branches.positive.output
        branches.negative.input


def test_a_module_that_is_not_called_is_not_reached_after_the_end_either(branches):
    with pytest.raises(NotReachedError, match=r"model\.never\.output was never reached"):
        with branches.trace(ONES) as tracer:
            tracer.result
            branches.never.output


def test_a_module_asked_for_after_the_end_is_out_of_order(branches):
    with pytest.raises(OutOfOrderError) as caught, branches.trace(ONES) as tracer:
        tracer.result
        branches.positive.output
    assert user_line(caught) == "branches.positive.output"
    assert "after the forward had ended" in str(caught.value)


def test_an_operation_asked_for_after_the_end_is_out_of_order(branches):
    with pytest.raises(OutOfOrderError), branches.trace(ONES) as tracer:
        branches.source.self_twice_1.output
        tracer.result
        branches.source.torch_relu_0.output
    with pytest.raises(OutOfOrderError), branches.trace(ONES) as tracer:
        tracer.result
        branches.source.torch_relu_0.output


def test_an_assignment_still_pending_at_the_end_is_reported_at_the_block(branches):
    with pytest.raises(NotReachedError) as caught:
        with branches.trace(ONES):
            branches.negative.output = 0
            branches.positive.output
    assert user_line(caught) == "with branches.trace(ONES):"
    assert "model.negative.output was never reached" in str(caught.value)


@pytest.mark.parametrize("attribute", ["input", "inputs", "output"])
def test_a_pending_assignment_names_its_attribute(branches, attribute):
    with (
        pytest.raises(NotReachedError, match=rf"model\.never\.{attribute.rstrip('s')} was never reached"),
        branches.trace(ONES),
    ):
        setattr(branches.never, attribute, ((ONES,), {}) if attribute == "inputs" else ONES)


def test_a_pending_skip_is_reported(branches):
    with pytest.raises(NotReachedError, match=r"model\.never\.skip was never reached"), branches.trace(ONES):
        branches.never.skip(ONES)


def test_a_pending_assignment_to_an_operation_names_the_branch(branches):
    with pytest.raises(NotReachedError, match=r"line 3 of Branches.forward is on a branch"), branches.trace(ONES):
        branches.source.self_negative_0.output = ONES


def test_an_assignment_to_a_passed_module_raises_at_that_line(model):
    with pytest.raises(OutOfOrderError) as caught, model.trace(sample()):
        model.h[2].output
        model.h[1].output = torch.zeros(2, 3, 8)
    assert user_line(caught) == "model.h[1].output = torch.zeros(2, 3, 8)"


def test_an_assignment_to_a_passed_operation_raises_at_that_line(model):
    with pytest.raises(OutOfOrderError) as caught, model.trace(sample()):
        model.h[1].mlp.source.self_act_0.output
        model.h[1].mlp.source.self_up_0.output = 0
    assert user_line(caught) == "model.h[1].mlp.source.self_up_0.output = 0"


def test_an_assignment_to_an_operation_of_a_passed_module_raises_at_that_line(model):
    with pytest.raises(OutOfOrderError) as caught, model.trace(sample()):
        model.h[2].output
        model.h[1].mlp.source.self_up_0.output = 0
    assert user_line(caught) == "model.h[1].mlp.source.self_up_0.output = 0"


def test_an_assignment_to_a_pass_beyond_the_calls_made(branches):
    with pytest.raises(NotReachedError, match=r"call 1 was asked for .* the forward made only 1 call"):
        with branches.trace(ONES):
            branches.source.torch_relu_0[1].output = ONES


def test_the_input_cannot_be_assigned_once_the_call_returned(model):
    with pytest.raises(OutOfOrderError) as caught, model.trace(sample()):
        model.h[1].output
        model.h[1].input = torch.zeros(2, 3, 8)
    assert user_line(caught) == "model.h[1].input = torch.zeros(2, 3, 8)"


def test_a_skip_after_the_call_has_begun_is_too_late(model):
    with pytest.raises(SkipTooLateError) as caught, model.trace(sample()):
        model.h[1].mlp.output
        model.h[1].skip(0)
    assert user_line(caught) == "model.h[1].skip(0)"
    with pytest.raises((SkipTooLateError, OutOfOrderError)), model.trace(sample()):
        model.h[1].output
        model.h[1].skip(0)


def test_sites_inside_a_skipped_module_are_not_reached(model):
    with pytest.raises(NotReachedError, match=r"the call of model\.h\[1\] was skipped"), model.trace(sample()):
        model.h[1].skip(torch.zeros(2, 3, 8))
        model.h[1].mlp.output
    with pytest.raises(NotReachedError, match=r"the call of model\.h\[1\]\.mlp was skipped"):
        with model.trace(sample()):
            model.h[1].mlp.skip(torch.zeros(2, 3, 8))
            model.h[1].mlp.source.self_act_0.output


def test_an_operation_of_a_module_that_is_not_called(branches):
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.left = branches._model, toy()

        def forward(self, x):
            return self.used(x)

    model = NNsight(Outer())
    with pytest.raises(NotReachedError, match=r"this forward did not call model.left"), model.trace(ONES):
        model.left.source.self_embed_0.output


def test_a_nested_operation_on_a_branch_not_taken(branches):
    with pytest.raises(NotReachedError, match=r"line 1 of Branches.helper is on a branch"), branches.trace(ONES):
        branches.source.self_helper_0.source.torch_zeros_0.output


def test_a_nested_operation_of_a_skipped_call(branches):
    with pytest.raises(NotReachedError, match=r"the call of model\.source\.self_helper_0 was skipped"):
        with branches.trace(ONES):
            branches.source.self_helper_0.skip(ONES)
            branches.source.self_helper_0.source.torch_tanh_0.output


def test_a_nested_operation_is_read(branches):
    with branches.trace(ONES) as tracer:
        value = branches.source.self_helper_0.source.torch_tanh_0.output
        result = tracer.result
    assert value is result


def test_an_index_beyond_the_calls_made():
    class Loop(nn.Module):
        def forward(self, x):
            for _ in range(3):
                x = torch.relu(x) + 1
            return x

    model = NNsight(Loop())
    x = torch.randn(4)
    with model.trace(x):
        operation = model.source.torch_relu_0
        values = [operation[index].output for index in range(3)]
    assert same(values[2], torch.relu(torch.relu(torch.relu(x) + 1) + 1))
    with pytest.raises(NotReachedError, match=r"call 3 was asked for .*the forward made only 3 calls"), model.trace(x):
        model.source.torch_relu_0[3].output
    with pytest.raises(OutOfOrderError, match="pass 1"), model.trace(x):
        model.source.torch_relu_0[2].output
        model.source.torch_relu_0[1].output


def test_a_module_called_twice_gives_its_calls_in_turn(branches):
    expected = recorded(branches._model, branches._model.twice, ONES)
    with branches.trace(ONES):
        # Paused at a call, the same call is read again; the next one is reached from any later site.
        first = branches.twice.output
        again = branches.twice.output
    assert first is again
    assert same(first, expected[0])
    with branches.trace(ONES):
        relu = branches.source.torch_relu_0
        first = branches.twice.output
        relu.output
        second = branches.twice.output
    assert [same(first, expected[0]), same(second, expected[1])] == [True, True]


def test_a_third_call_of_a_module_called_twice_is_out_of_order(branches):
    with pytest.raises(OutOfOrderError), branches.trace(ONES):
        relu = branches.source.torch_relu_0
        helper = branches.source.self_helper_0
        branches.twice.output
        relu.output
        branches.twice.output
        helper.output
        branches.twice.output


def test_an_assignment_between_two_calls_changes_the_second(branches):
    plain = branches._model
    first = torch.relu(plain.twice(plain.positive(ONES)))
    assert first is not None
    with branches.trace(ONES) as tracer:
        relu = branches.source.torch_relu_0
        branches.twice.output
        relu.output
        branches.twice.output = ONES
    assert same(tracer.result, torch.tanh(ONES))


def test_an_expert_without_tokens_is_not_reached_and_one_with_tokens_is():
    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

        def forward(self, x, chosen):
            for index in chosen:
                x = self.experts[index](x)
            return x

    model = NNsight(Experts())
    with model.trace(ONES, [0, 2]) as tracer:
        last = model.experts[2].output
    assert last is tracer.result
    with pytest.raises(NotReachedError, match=r"model\.experts\[1\]\.output was never reached"):
        with model.trace(ONES, [0, 2]):
            model.experts[0].output
            model.experts[1].output


def test_a_site_after_the_model_raised_names_what_was_raised():
    class Fails(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            self.one(x)
            raise ValueError("broken")

    model = NNsight(Fails())
    with pytest.raises(NotReachedError, match="the model had raised ValueError before"), model.trace(ONES):
        with contextlib.suppress(ValueError):
            model.two.output
        model.two.output


def test_an_unknown_operation_names_the_nearest(model):
    with pytest.raises(UnknownNameError, match="self_act_0"), model.trace(sample()):
        model.h[1].mlp.source.self_act_1.output
    with pytest.raises(UnknownNameError, match=r"has no operation 'self_atc_0'.*self_act_0"):
        model.h[1].mlp.source.self_atc_0


def test_an_order_error_leaves_the_model_as_it_was(model):
    x = sample()
    before = model._model(x)
    with pytest.raises(OutOfOrderError), model.trace(x):
        model.h[2].output
        model.h[1].output
    assert same(model._model(x), before)
