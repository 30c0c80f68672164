"""`model.scan` and `trace(scan=True)`: shapes as the real forward has them, nothing computed, nothing left behind."""

import copy
import gc

import pytest
import torch
from torch import nn

import nnsight_lab as nl
from nnsight_lab import LanguageModel, NNsight, demo

from .trace_toys import installed, same, sample, toy


@pytest.fixture
def model():
    return NNsight(toy())


@pytest.fixture(scope="module")
def gpt2():
    return demo.load()


def shapes_by_hooks(module, *args, **kwargs):
    """Shape and dtype of every module's tensor output in one real forward."""
    seen = {}

    def see(path):
        def hook(_, __, output):
            if isinstance(output, torch.Tensor):
                seen[path] = (output.shape, output.dtype, output.device)

        return hook

    handles = [part.register_forward_hook(see(path)) for path, part in module.named_modules()]
    try:
        with torch.no_grad():
            module(*args, **kwargs)
    finally:
        for handle in handles:
            handle.remove()
    return seen


def scanned_shapes(tracer_of):
    with tracer_of() as tracer:
        cache = tracer.cache()
    return {
        path: (visits.output.shape, visits.output.dtype, visits.output.device)
        for path, visits in cache.items()
        if isinstance(visits.output, torch.Tensor)
    }


class Stateful(nn.Module):
    """Changes everything a forward can change on its module."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.linear = nn.Linear(4, 4)
        self.register_buffer("last", torch.zeros(2, 4))
        self.table = torch.arange(4.0)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        x = self.norm(x) + self.table
        self.last = x
        self.seen = x
        self.table += 1
        return torch.nn.functional.dropout(self.linear(x), training=self.training)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        x = self.linear(x)
        if x.sum() > 0:
            return x
        return -x


class Selects(nn.Module):
    def forward(self, x):
        return x[x > 0] * 2


def state(module):
    return {
        path: (
            {
                key: (id(value), value.clone())
                for key, value in part.__dict__.items()
                if isinstance(value, torch.Tensor)
            },
            {key: value for key, value in part.__dict__.items() if isinstance(value, int)},
            [(key, id(value), value.clone()) for key, value in (*part._parameters.items(), *part._buffers.items())],
        )
        for path, part in module.named_modules()
    }


def assert_same_state(one, other):
    assert one.keys() == other.keys()
    for path, (attributes, plain, tensors) in one.items():
        their_attributes, their_plain, theirs = other[path]
        assert plain == their_plain
        assert attributes.keys() == their_attributes.keys()
        for key, (identity, value) in attributes.items():
            assert identity == their_attributes[key][0]
            assert same(value, their_attributes[key][1])
        assert [(name, identity) for name, identity, _ in tensors] == [(name, identity) for name, identity, _ in theirs]
        assert all(same(mine[2], their[2]) for mine, their in zip(tensors, theirs, strict=True))


def test_every_site_has_the_real_forwards_shape(model):
    x = sample()
    assert scanned_shapes(lambda: model.scan(x)) == shapes_by_hooks(model._model, x)


def test_operations_and_inputs_have_shapes_too(model):
    with model.scan(sample()):
        inner = model.h[0].mlp.source.self_act_0.output
        block = model.h[1].input
        arguments = model.h[1].inputs
    assert inner.shape == (2, 3, 16)
    assert block.shape == (2, 3, 8)
    assert arguments[1] == {"scale": 0.5}


def test_a_large_model_is_scanned_without_computing(model):
    class Huge(nn.Module):
        def __init__(self):
            super().__init__()
            with torch.device("meta"):
                self.one, self.two = nn.Linear(200_000, 200_000), nn.Linear(200_000, 7)

        def forward(self, x):
            return self.two(self.one(x))

    huge = NNsight(Huge())
    with huge.scan(torch.empty(5, 200_000, device="meta")) as tracer:
        one = huge.one.output
    assert one.shape == (5, 200_000)
    assert one.device == torch.device("cpu")
    assert tracer.result.shape == (5, 7)
    assert huge._model.one.weight.is_meta


def test_a_language_model_is_scanned_without_loading_its_weights(gpt2, tmp_path):
    gpt2._model.save_pretrained(tmp_path)
    gpt2.tokenizer.save_pretrained(tmp_path)
    model = LanguageModel(tmp_path)
    prompts = ["The Eiffel Tower is in the city of", "Rome"]
    shapes = scanned_shapes(lambda: model.scan(prompts))
    assert not model.dispatched
    assert all(parameter.is_meta for parameter in model._model.parameters())
    encoded = gpt2.tokenizer(prompts, return_tensors="pt", padding=True)
    positions = (encoded["attention_mask"].cumsum(-1) - 1).clamp(min=0)
    assert shapes == shapes_by_hooks(gpt2._model, **encoded, position_ids=positions)
    with torch.no_grad(), model.trace(prompts):
        logits = model.lm_head.output
    with torch.no_grad(), gpt2.trace(prompts):
        expected = gpt2.lm_head.output
    assert same(logits, expected)


def test_llama_and_its_rotary_embedding_are_scanned():
    llama = demo.load("smollm2")
    ids = llama.tokenizer("The Eiffel Tower", return_tensors="pt")
    assert scanned_shapes(lambda: llama.scan("The Eiffel Tower")) == shapes_by_hooks(llama._model, **ids)


@pytest.mark.parametrize("training", [False, True])
def test_a_scanned_model_is_as_it_was(training):
    module = Stateful().train(training)
    model, x = NNsight(module), torch.randn(2, 4)
    before, generator, names = state(module), torch.get_rng_state(), installed(module)
    with model.scan(x):
        assert model.norm.output.shape == (2, 4)
        assert model.linear.output.requires_grad
    assert_same_state(before, state(module))
    assert torch.equal(generator, torch.get_rng_state())
    assert installed(module) == names
    assert not hasattr(module, "seen")
    assert same(module(x) * 0, torch.zeros(2, 4))


def test_a_scan_that_is_stopped_or_fails_leaves_the_model_as_it_was(model):
    before, names = state(model._model), installed(model._model)
    with model.scan(sample()) as tracer:
        model.h[0].output
        tracer.stop()
    with pytest.raises(ValueError, match="mine"), model.scan(sample()):
        model.h[0].output
        raise ValueError("mine")
    assert_same_state(before, state(model._model))
    assert installed(model._model) == names


def test_edits_and_modules_called_by_the_body_work_on_shapes(model):
    with model.scan(sample()) as tracer:
        hidden = model.h[0].output
        hidden[:, -1] = 0
        early = model.head(hidden + torch.randn(8))
        model.h[1].output = model.h[1].output * 2
        model.h[2].skip(hidden)
    assert early.shape == tracer.result.shape == (2, 3, 5)


def test_gradients_have_shapes_and_reach_no_parameter(model):
    with model.scan(sample()) as tracer:
        hidden = model.h[0].output
        hidden.retain_grad()
        tracer.result.sum().backward()
    assert hidden.grad.shape == (2, 3, 8)
    assert all(parameter.grad is None for parameter in model._model.parameters())


def test_arguments_that_the_forward_changes_are_copies():
    class Appends(nn.Module):
        def forward(self, x, store):
            store.append(x)
            x += 1
            return x

    x, store = torch.zeros(2), []
    with NNsight(Appends()).scan(x, store) as tracer:
        assert tracer.result.shape == (2,)
    assert store == []
    assert torch.equal(x, torch.zeros(2))


def test_tied_weights_stay_tied():
    module = toy()
    module.unused.weight = module.embed.weight
    model = NNsight(module)
    with model.scan(sample()):
        model.h[0].output
        assert model._model.unused.weight is model._model.embed.weight
        assert isinstance(model._model.embed.weight, nn.Parameter)
    assert module.unused.weight is module.embed.weight


@pytest.mark.parametrize(
    ("kind", "line", "why"),
    [(Branches, "if x.sum() > 0:", "asks for the value"), (Selects, "return x[x > 0] * 2", "whose shape depends")],
)
def test_a_forward_that_depends_on_data_is_reported_with_its_line(kind, line, why):
    model = NNsight(kind())
    with pytest.raises(nl.ScanError, match=why) as caught, model.scan(torch.randn(4)) as tracer:
        tracer.result
    assert line in str(caught.value)
    assert __file__ in str(caught.value)
    assert "model.trace(...)" in str(caught.value)
    with model.trace(torch.randn(4)) as tracer:
        assert tracer.result is not None


def test_what_lies_before_such_a_line_is_scanned():
    model = NNsight(Branches())
    with model.scan(torch.randn(4)) as tracer:
        shape = model.linear.output.shape
        tracer.stop()
    assert shape == (4,)


@pytest.mark.parametrize("ask", [torch.Tensor.item, torch.Tensor.tolist, lambda x: x.detach().numpy()])
def test_a_block_that_asks_for_numbers_is_reported_with_its_line(model, ask):
    with pytest.raises(nl.ScanError, match=r"test_scan\.py, line") as caught, model.scan(sample()):
        ask(model.h[0].output[0, 0, 0])  # numbers
    assert caught.value.__cause__ is not None


def test_an_error_of_shapes_is_the_models_own(model):
    with pytest.raises(RuntimeError, match="8") as caught, model.scan(torch.ones(2, 9)) as tracer:
        tracer.result
    assert not isinstance(caught.value, nl.TraceError)


# trace(scan=True)


def test_a_trace_with_scan_has_real_values(model):
    x = sample()
    with model.trace(x, scan=True, validate=True) as tracer:
        block = model.h[1].output
    assert same(tracer.result, model._model(x))
    assert type(block) is torch.Tensor


def test_a_trace_with_scan_finds_what_does_not_fit_before_the_block(model):
    with pytest.raises(RuntimeError, match="8"):
        model.trace(torch.ones(2, 9), scan=True)
    with pytest.raises(TypeError, match="unexpected keyword"):
        model.trace(sample(), nothing=1, scan=True)
    with pytest.raises(nl.ScanError, match=r"if x\.sum\(\) > 0"):
        NNsight(Branches()).trace(torch.ones(4), scan=True)


def test_a_language_models_trace_with_scan_is_the_plain_one(gpt2):
    with torch.no_grad(), gpt2.trace("The Eiffel Tower", scan=True):
        logits = gpt2.lm_head.output
    with torch.no_grad():
        plain = gpt2._model(**gpt2.tokenizer("The Eiffel Tower", return_tensors="pt"))
    assert same(logits, plain.logits)


def test_a_forward_that_names_these_options_gets_them():
    class Own(nn.Module):
        def forward(self, x, scan=1, validate=2):
            return x * scan + validate

    with NNsight(Own()).trace(torch.ones(1), scan=5, validate=7) as tracer:
        assert tracer.result.item() == 12


def test_a_caller_may_hand_over_keywords_that_are_used_again(model):
    options = {"scan": True, "validate": True}
    kept = copy.copy(options)
    with model.trace(sample(), **options) as tracer:
        tracer.result
    assert options == kept


def test_two_hundred_scans_without_the_garbage_collector_leave_nothing(model):
    x = sample()

    def run():
        with model.scan(x):
            model.h[1].output
            model.head.output

    def census():
        return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())

    for _ in range(3):
        run()
    gc.collect()
    gc.disable()
    try:
        before = census()
        for _ in range(200):
            run()
        after = census()
    finally:
        gc.enable()
    assert after == before
