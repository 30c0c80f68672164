"""`tracer.cache`: every visit of the sites asked for, against what torch's own hooks see."""

import gc

import pytest
import torch
from torch import nn

import nnsight_lab as nl
from nnsight_lab import NNsight, demo

from .trace_toys import Returns, recorded, same, sample, toy


@pytest.fixture
def model():
    return NNsight(toy())


@pytest.fixture(scope="module")
def gpt2():
    return demo.load()


class Repeats(nn.Module):
    """Calls one module three times, and another that returns nothing three times."""

    def __init__(self):
        super().__init__()
        self.step = nn.Linear(4, 4)
        self.nothing = Returns(None)

    def forward(self, x, gain=2.0):
        for _ in range(3):
            x = torch.tanh(self.step(x)) * gain
            self.nothing(x)
        return x


def test_every_module_called_is_there_with_what_a_hook_sees(model):
    x = sample()
    with model.trace(x) as tracer:
        cache = tracer.cache()
    plain = model._model
    called = {path for path, module in plain.named_modules() if recorded(plain, module, x)}
    assert set(cache) == called
    assert "unused" not in cache
    for path in called:
        assert same(cache[path].output, recorded(plain, plain.get_submodule(path), x)[0])


def test_sites_are_listed_in_the_order_in_which_their_calls_end(model):
    with model.trace(sample()) as tracer:
        cache = tracer.cache(modules=[model.head, model.h[0].mlp, "h.0", model.embed])
    assert list(cache) == ["embed", "h.0.mlp", "h.0", "head"]


def test_the_cache_holds_the_models_own_tensors(model):
    with model.trace(sample()) as tracer:
        cache = tracer.cache("h.1")
        seen = model.h[1].output
    assert cache["h.1"].output is seen
    assert seen.grad_fn is not None


def test_a_module_that_returns_none_three_times_has_three_visits():
    model = NNsight(Repeats())
    with model.trace(torch.ones(1, 4)) as tracer:
        cache = tracer.cache()
    assert [visit.output for visit in cache["nothing"]] == [None, None, None]


def test_a_module_called_several_times_has_a_visit_for_each(model):
    model, x = NNsight(Repeats()), torch.ones(1, 4)
    with model.trace(x) as tracer:
        cache = tracer.cache([model.step], include_inputs=True)
    plain = recorded(model._model, model._model.step, x)
    assert len(cache["step"]) == 3
    assert all(same(visit.output, value) for visit, value in zip(cache["step"], plain, strict=True))
    assert same(cache["step"][2].input, torch.tanh(plain[1]) * 2.0)
    with pytest.raises(nl.CacheLookupError, match=r"model\.step was visited 3 times, so \.output is not one value"):
        cache["step"].output
    with pytest.raises(IndexError, match="no visit 3"):
        cache["step"][3]


def test_operations_are_kept_at_every_call():
    model, x = NNsight(Repeats()), torch.ones(1, 4)
    with model.trace(x) as tracer:
        cache = tracer.cache(sources=[model.source.torch_tanh_0, "model.source.self_nothing_0"])
    steps = recorded(model._model, model._model.step, x)
    assert list(cache) == ["source.torch_tanh_0", "source.self_nothing_0"]
    assert all(
        same(visit.output, torch.tanh(step))
        for visit, step in zip(cache[model.source.torch_tanh_0], steps, strict=True)
    )
    assert len(cache["source.self_nothing_0"]) == 3


def test_a_whole_source_stands_for_its_operations(model):
    with model.trace(sample()) as tracer:
        cache = tracer.cache(sources=model.h[0].mlp.source, modules="h.0.mlp.act")
    assert list(cache) == [
        "h.0.mlp.source.self_up_0",
        "h.0.mlp.act",
        "h.0.mlp.source.self_act_0",
        "h.0.mlp.source.self_down_0",
    ]
    assert cache["h.0.mlp.act"].output is cache["h.0.mlp.source.self_act_0"].output


def test_inputs_are_kept_when_asked_for_and_said_to_be_missing_else(model):
    x = sample()
    with model.trace(x) as tracer:
        cache = tracer.cache(["h.1"], include_inputs=True)
        bare = tracer.cache(["h.1"])
    (block,), keywords = cache["h.1"].inputs
    assert keywords == {"scale": 0.5}
    assert same(block, recorded(model._model, model._model.h[0], x)[0])
    assert same(cache["h.1"].input, block)
    with pytest.raises(nl.CacheLookupError, match="include_inputs=True"):
        bare["h.1"].inputs


def test_the_body_reads_and_edits_other_sites_meanwhile(model):
    x = sample()
    with model.trace(x) as tracer:
        cache = tracer.cache()
        first = model.h[0].output
        model.h[1].output = torch.zeros_like(first)
        model.h[2].mlp.source.self_act_0.output[:] = 1.0
        head = model.head.output
    assert cache["h.0"].output is first
    assert torch.equal(cache["h.1"].output, torch.zeros_like(first))
    assert torch.equal(cache["h.2.mlp.act"].output, torch.ones(2, 3, 16))
    down = model._model.h[2].mlp.down
    assert same(cache["h.2.mlp"].output, down(torch.ones(2, 3, 16)))
    assert cache["head"].output is head is cache[""].output


def test_a_cache_made_while_the_model_runs_sees_what_is_still_to_come(model):
    with model.trace(sample()) as tracer:
        here = model.h[1].mlp.output
        cache = tracer.cache()
    assert list(cache)[:3] == ["h.1.mlp", "h.1", "h.2.norm"]
    assert cache["h.1.mlp"].output is here
    assert "h.0" not in cache


def test_a_skipped_call_is_a_visit_with_the_value_given(model):
    value = torch.zeros(2, 3, 8)
    with model.trace(sample()) as tracer:
        cache = tracer.cache()
        model.h[1].skip(value)
    assert cache["h.1"].output is value
    assert "h.1.mlp" not in cache


def test_a_stopped_trace_keeps_what_was_visited(model):
    with model.trace(sample()) as tracer:
        cache = tracer.cache()
        model.h[1].output
        tracer.stop()
    assert "h.0" in cache
    assert "h.2" not in cache


def test_detach_dtype_and_device_change_what_is_kept_and_nothing_else(model):
    x = sample()
    with model.trace(x) as tracer:
        cache = tracer.cache(["h.0"], include_inputs=True, detach=True, device="cpu", dtype=torch.float64)
        loose = tracer.cache(["h.0"], detach=True)
        head = model.head.output
    plain = recorded(model._model, model._model.h[0], x)[0]
    assert same(cache["h.0"].output, plain.detach().double())
    assert cache["h.0"].input.dtype == torch.float64
    assert not loose["h.0"].output.requires_grad
    assert same(loose["h.0"].output, plain.detach())
    assert head.requires_grad
    assert same(head, model._model(x))


def test_a_site_is_found_by_any_of_its_spellings(gpt2):
    with torch.no_grad(), gpt2.trace("The Eiffel Tower") as tracer:
        cache = tracer.cache(["model.transformer.h[5]", gpt2.transformer.wte])
    visits = cache["transformer.h.5"]
    for spelling in ("transformer.h[5]", "model.transformer.h.5", gpt2.transformer.h[5]):
        assert cache[spelling] is visits
    assert list(cache) == ["transformer.wte", "transformer.h.5"]


def test_tied_modules_are_one_site(model):
    model._model.unused = model._model.embed
    with model.trace(sample()) as tracer:
        cache = tracer.cache([model.unused, model.embed])
    assert len(cache) == 1
    assert cache["embed"] is cache["unused"]


def test_gpt2s_layers_are_those_of_plain_hooks(gpt2):
    prompt = "The Eiffel Tower is in the city of"
    with torch.no_grad(), gpt2.trace(prompt) as tracer:
        cache = tracer.cache(sources=[layer.mlp.source.self_act_0 for layer in gpt2.transformer.h])
        layers = tracer.cache(list(gpt2.transformer.h))
    seen = {}
    handles = [
        module.register_forward_hook(lambda _, __, output, path=path: seen.setdefault(path, output))
        for path, module in gpt2._model.named_modules()
    ]
    try:
        with torch.no_grad():
            gpt2._model(**gpt2.tokenizer(prompt, return_tensors="pt"))
    finally:
        for handle in handles:
            handle.remove()
    assert len(cache) == len(layers) == len(gpt2.transformer.h)
    for number in range(len(layers)):
        path = f"transformer.h.{number}"
        assert same(layers[path].output, seen[path])
        assert same(cache[f"{path}.mlp.source.self_act_0"].output, seen[f"{path}.mlp.act"])


def test_wrong_sites_are_refused_at_the_call(model):
    with model.trace(sample()) as tracer:
        with pytest.raises(nl.UnknownNameError, match="embed"):
            tracer.cache(["embet"])
        with pytest.raises(TypeError, match="takes wrapped modules"):
            tracer.cache([model.h[0].mlp.source.self_act_0])
        with pytest.raises(TypeError, match="takes operations"):
            tracer.cache(sources=[model.h[0]])
        with pytest.raises(TypeError, match="every call"):
            tracer.cache(sources=[model.h[0].mlp.source.self_act_0[1]])
        with pytest.raises(nl.CacheLookupError, match="another model"):
            tracer.cache([NNsight(toy()).h[0]])
    with pytest.raises(nl.TraceStateError, match="inside its own"):
        tracer.cache()


def test_what_was_not_visited_is_a_key_error_with_a_reason(model):
    with model.trace(sample()) as tracer:
        cache = tracer.cache(["h.0"])
    assert cache.get("h.1") is None
    with pytest.raises(KeyError, match=r"^'h\.1' is not in the cache") as caught:
        cache["h.1"]
    assert isinstance(caught.value, nl.TraceError)
    assert "nowhere" not in cache


def test_two_hundred_cached_traces_without_the_garbage_collector_leave_nothing(model):
    x = sample()

    def run():
        with model.trace(x) as tracer:
            cache = tracer.cache(include_inputs=True)
            tracer.cache(sources=model.h[0].mlp.source)
            model.h[1].output
        return len(cache)

    def census():
        things = gc.get_objects()
        return len(things), sum(issubclass(type(thing), torch.Tensor) for thing in things)

    for _ in range(3):
        run()
    gc.collect()
    gc.disable()
    try:
        before = census()
        for _ in range(200):
            assert run() == 21
        after = census()
    finally:
        gc.enable()
    assert after[1] == before[1]
    assert abs(after[0] - before[0]) < 20
