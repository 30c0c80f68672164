"""Reading, assigning, editing in place and skipping, each against forward hooks of plain torch."""

from collections import OrderedDict

import pytest
import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

import nnsight_lab
from nnsight_lab import NNsight
from tests.engine.trace_toys import Pair, Returns, hooked, prehooked, recorded, same, sample, toy


@pytest.fixture
def model():
    return NNsight(toy())


def test_a_read_gives_what_a_forward_hook_sees(model):
    x = sample()
    expected = [recorded(model._model, block, x)[0] for block in model._model.h]
    with model.trace(x):
        seen = [block.output for block in model.h]
    assert all(same(one, other) for one, other in zip(seen, expected, strict=True))


def test_a_read_is_the_very_tensor_that_flows_on(model):
    with model.trace(sample()):
        left = model.embed.output
        entered = model.h[0].input
    assert entered is left


def test_inputs_are_the_arguments_and_keywords_of_the_call(model):
    x = sample()
    with model.trace(x) as tracer:
        args, kwargs = model.h[1].inputs
        value = model.h[1].input
        result = tracer.result
    assert kwargs == {"scale": 0.5}
    assert args[0] is value
    assert same(value, recorded(model._model, model._model.h[0], x)[0])
    assert same(result, model._model(x))


def test_the_input_can_still_be_read_at_the_output(model):
    with model.trace(sample()):
        output = model.h[0].mlp.output
        value = model.h[0].mlp.input
        again = model.h[0].mlp.output
    assert output is again
    assert same(model._model.h[0].mlp(value), output)


def test_an_assigned_output_reaches_the_caller(model):
    x = sample()
    with hooked(model._model.h[1].mlp, lambda value: value * 3 + 1):
        expected = model._model(x)
    with model.trace(x) as tracer:
        model.h[1].mlp.output = model.h[1].mlp.output * 3 + 1
        result = tracer.result
    assert same(result, expected)


def test_an_assignment_without_a_read_waits_for_its_site(model):
    x, new = sample(), sample(5)
    with hooked(model._model.h[1].mlp, lambda _: new):
        expected = model._model(x)
    with model.trace(x) as tracer:
        model.h[1].mlp.output = new
    assert same(tracer.result, expected)


def test_the_last_of_several_assignments_wins(model):
    x, new = sample(), sample(5)
    with hooked(model._model.h[1].mlp, lambda _: new):
        expected = model._model(x)
    with model.trace(x) as tracer:
        model.h[1].mlp.output = torch.zeros(2, 3, 8)
        model.h[1].mlp.output = new
    assert same(tracer.result, expected)


def test_an_in_place_edit_reaches_the_model(model):
    x = sample()

    def zero_first(value):
        value = value.clone()
        value[:, 0] = 0
        return value

    with hooked(model._model.h[0].mlp.act, zero_first):
        expected = model._model(x)
    with torch.no_grad(), model.trace(x) as tracer:
        model.h[0].mlp.act.output[:, 0] = 0
    assert same(tracer.result, expected)


def test_an_assigned_input_reaches_the_call(model):
    x = sample()
    with prehooked(model._model.h[1].mlp, lambda value: value * 2):
        expected = model._model(x)
    with model.trace(x) as tracer:
        model.h[1].mlp.input = model.h[1].mlp.input * 2
    assert same(tracer.result, expected)


def test_assigned_inputs_replace_arguments_and_keywords(model):
    x = sample()
    handle = model._model.h[1].register_forward_pre_hook(
        lambda _, args, kwargs: ((args[0] + 1,), {"scale": 2.0}), with_kwargs=True
    )
    expected = model._model(x)
    handle.remove()
    with model.trace(x) as tracer:
        (value,), _ = model.h[1].inputs
        model.h[1].inputs = (value + 1,), {"scale": 2.0}
    assert same(tracer.result, expected)


def test_an_assigned_input_of_a_call_by_keyword_replaces_the_keyword():
    class ByKeyword(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x):
            return self.inner(input=x)

    plain = ByKeyword()
    model = NNsight(plain)
    x = torch.randn(2, 4)
    with model.trace(x) as tracer:
        seen = model.inner.input
        model.inner.input = seen * 2
    assert seen is x
    assert same(tracer.result, plain.inner(x * 2))


@pytest.mark.parametrize("wrong", [5, (1, 2, 3), ([1], [2]), None])
def test_inputs_refuse_what_is_no_pair_of_arguments(model, wrong):
    with pytest.raises(TypeError, match=r"pair \(args, kwargs\)"), model.trace(sample()):
        model.h[0].inputs = wrong


def test_a_skipped_module_does_not_run_and_gives_the_value(model):
    x = sample()
    ran = []
    model._model.h[1].mlp.register_forward_hook(lambda *_: ran.append(1))
    # Skipping an MLP with zero leaves the block's residual stream as it came in.
    stream = model._model.h[0](model._model.embed(x), scale=0.5)
    expected = model._model.head(model._model.h[2](stream, scale=0.5))
    with model.trace(x) as tracer:
        model.h[1].mlp.skip(torch.zeros(2, 3, 8))
        seen = model.h[1].output
    assert same(tracer.result, expected)
    assert same(seen, stream)
    assert ran == []


def test_the_output_of_a_skipped_module_is_the_given_value(model):
    value = torch.zeros(2, 3, 8)
    with model.trace(sample()):
        model.h[1].mlp.skip(value)
        seen = model.h[1].mlp.output
    assert seen is value


def test_a_module_is_skipped_with_what_it_was_about_to_get(model):
    x = sample()
    with model.trace(x) as tracer:
        model.h[1].skip(model.h[1].input)
    stream = model._model.h[0](model._model.embed(x), scale=0.5)
    assert same(tracer.result, model._model.head(model._model.h[2](stream, scale=0.5)))


def test_operations_are_read_assigned_and_skipped_like_modules(model):
    x = sample()
    mlp = model._model.h[1].mlp
    pre = recorded(model._model, mlp.up, x)[0]
    with hooked(mlp.act, lambda value: value * 2):
        doubled = model._model(x)
    with hooked(mlp.up, lambda value: value + 1):
        shifted = model._model(x)
    with model.trace(x) as tracer:
        operation = model.h[1].mlp.source.self_act_0
        seen = operation.input
        operation.output = operation.output * 2
    assert same(seen, pre)
    assert same(tracer.result, doubled)
    with model.trace(x) as tracer:
        model.h[1].mlp.source.self_act_0.input = model.h[1].mlp.source.self_act_0.input + 1
    assert same(tracer.result, shifted)
    zeros = torch.zeros(2, 3, 16)
    with hooked(mlp.act, lambda _: zeros):
        zeroed = model._model(x)
    with model.trace(x) as tracer:
        model.h[1].mlp.source.self_act_0.skip(zeros)
    assert same(tracer.result, zeroed)


def test_an_operation_is_edited_in_place(model):
    x = sample()

    def zero_first(value):
        value = value.clone()
        value[..., 0] = 0
        return value

    with hooked(model._model.h[1].mlp.up, zero_first):
        expected = model._model(x)
    with torch.no_grad(), model.trace(x) as tracer:
        model.h[1].mlp.source.self_up_0.output[..., 0] = 0
    assert same(tracer.result, expected)


VALUES = {
    "tuple": (torch.ones(2), 3),
    "list": [torch.ones(2), 3],
    "dict": {"a": torch.ones(2)},
    "OrderedDict": OrderedDict(a=torch.ones(2)),
    "ModelOutput": BaseModelOutput(last_hidden_state=torch.ones(2)),
    "dataclass": Pair(torch.ones(2), 3),
    "None": None,
    "int": 7,
    "float": 1.5,
    "bool": True,
    "str": "text",
    "bytes": b"bytes",
    "size": torch.Size([2, 3]),
    "dtype": torch.float32,
    "device": torch.device("cpu"),
    "array": torch.ones(2).numpy(),
    "object": object(),
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_of_every_kind_come_as_they_are_and_can_be_saved(kind):
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Returns(VALUES[kind])

        def forward(self, x):
            self.inner(x)
            return x

    model = NNsight(Outer())
    with model.trace(torch.ones(1)):
        seen = model.inner.output
        saved = model.inner.output.save() if kind != "object" else seen
        also = nnsight_lab.save(model.inner.output)
    assert seen is VALUES[kind]
    assert saved is VALUES[kind]
    assert also is VALUES[kind]


def test_parts_of_values_can_be_saved():
    model = NNsight(nn.Sequential(OrderedDict(inner=Returns((torch.ones(2), (4, None))))))
    with model.trace(torch.ones(1)):
        number = model.inner.output[1][0].save()
        nothing = model.inner.output[1][1].save()
        shape = model.inner.output[0].shape.save()
    assert (number, nothing, shape) == (4, None, torch.Size([2]))


def test_the_result_is_what_the_model_returned(model):
    x = sample()
    with model.trace(x) as tracer:
        also = model.output
        inside = tracer.result
    assert tracer.result is inside
    assert also is inside
    assert same(inside, model._model(x))


def test_an_assigned_output_of_the_root_is_the_result(model):
    with model.trace(sample()) as tracer:
        model.output = "replaced"
    assert tracer.result == "replaced"


def test_an_empty_trace_runs_the_model_once(model):
    ran = []
    model._model.register_forward_hook(lambda *_: ran.append(1))
    with model.trace(sample()):
        pass
    assert ran == [1]


def test_an_input_of_a_call_without_arguments_is_an_error_at_that_line():
    class Constant(nn.Module):
        def forward(self):
            return torch.ones(1)

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Constant()

        def forward(self, x):
            return x + self.inner()

    model = NNsight(Outer())
    with pytest.raises(nnsight_lab.InputAccessError, match=r"model\.inner was called without arguments"):
        with model.trace(torch.ones(1)):
            model.inner.input
    with model.trace(torch.ones(1)):
        assert model.inner.inputs == ((), {})
