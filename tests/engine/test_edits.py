"""`model.edit`: functions that take part in every trace, against torch hooks that do the same."""

import copy
import gc
import pickle

import pytest
import torch
from torch import nn

import nnsight_lab as nl
from nnsight_lab import NNsight, demo
from nnsight_lab.engine import Tracer

from .trace_toys import hooked, installed, prehooked, recorded, same, sample, toy


@pytest.fixture
def model():
    return NNsight(toy())


def zero_first_block(m):
    m.h[0].output[:] = 0


def double_the_last(m):
    m.h[2].output = m.h[2].output * 2


def zeroed(module):
    return hooked(module.h[0], torch.zeros_like)


def test_an_edit_holds_in_every_trace_of_the_edited_model_and_in_no_other(model):
    edited = model.edit(zero_first_block)
    for seed in range(3):
        with torch.no_grad():
            with edited.trace(sample(seed)):
                logits = edited.head.output
            with model.trace(sample(seed)):
                plain = model.head.output
            assert same(plain, model._model(sample(seed)))
            with zeroed(model._model):
                assert same(logits, model._model(sample(seed)))
    assert edited._model is model._model
    assert installed(model._model) == installed(toy())


def test_an_edit_in_place_holds_on_the_model_itself_until_it_is_cleared(model):
    assert model.edit(zero_first_block, inplace=True) is model
    with torch.no_grad(), model.trace(sample()) as tracer:
        pass
    with zeroed(model._model):
        assert same(tracer.result, model._model(sample()))
    model.clear_edits()
    with torch.no_grad(), model.trace(sample()) as tracer:
        pass
    assert same(tracer.result, model._model(sample()))


def test_an_edit_may_read_later_sites_from_earlier_ones(model):
    def carry(m):
        early = m.h[0].mlp.act.output.mean()
        m.h[1].input = m.h[1].input + early
        inner = m.h[1].mlp.source.self_up_0.output
        m.head.output = m.head.output * inner.sum()

    with torch.no_grad(), model.edit(carry).trace(sample()) as tracer:
        pass
    plain, x = model._model, sample()
    with torch.no_grad():
        early = recorded(plain, plain.h[0].mlp.act, x)[0].mean()
        with prehooked(plain.h[1], lambda value: value + early):
            inner = recorded(plain, plain.h[1].mlp.up, x)[0]
            assert same(tracer.result, plain(x) * inner.sum())


def test_values_assigned_ahead_and_skips_are_edits_too(model):
    value = torch.ones(2, 3, 8)

    def ahead(m):
        m.h[2].output = value
        m.h[1].skip(value)

    edited, ran = model.edit(ahead), []
    handle = model._model.h[1].register_forward_hook(lambda *_: ran.append(1))
    for _ in range(2):
        with torch.no_grad(), edited.trace(sample()):
            assert edited.h[1].output is value
            assert edited.h[2].output is value
            logits = edited.head.output
    handle.remove()
    assert ran == []
    assert same(logits, model._model.head(value))


def test_the_block_sees_what_the_edit_made_and_has_the_last_word(model):
    edited = model.edit(zero_first_block)
    with torch.no_grad(), edited.trace(sample()):
        seen = edited.h[0].output.clone()
        edited.h[0].output[:] = 1
        logits = edited.head.output
    assert torch.equal(seen, torch.zeros(2, 3, 8))
    with hooked(model._model.h[0], torch.ones_like):
        assert same(logits, model._model(sample()))


def test_edits_follow_one_another(model):
    def add(m):
        m.h[0].output += 3

    both = model.edit(zero_first_block).edit(add).edit(double_the_last)
    with torch.no_grad(), both.trace(sample()) as tracer:
        first = both.h[0].output
    assert torch.equal(first, torch.full((2, 3, 8), 3.0))
    plain = model._model
    with hooked(plain.h[0], lambda x: torch.full_like(x, 3.0)), hooked(plain.h[2], lambda x: x * 2):
        assert same(tracer.result, plain(sample()))


def test_a_decorated_function_is_the_edited_model(model):
    @model.edit()
    def edited(m):
        m.h[0].output[:] = 0

    with torch.no_grad(), edited.trace(sample()) as tracer:
        pass
    with zeroed(model._model):
        assert same(tracer.result, model._model(sample()))


def test_gradients_flow_through_an_edit(model):
    with model.edit(double_the_last).trace(sample()) as tracer:
        pass
    tracer.result.sum().backward()
    mine = [parameter.grad.clone() for parameter in model._model.embed.parameters()]
    model._model.zero_grad()
    with hooked(model._model.h[2], lambda x: x * 2):
        model._model(sample()).sum().backward()
    assert all(same(one, other.grad) for one, other in zip(mine, model._model.embed.parameters(), strict=True))


class Chain(nn.Module):
    """Calls the wrapped model again and again, as a generation does."""

    def __init__(self):
        super().__init__()
        self.step = nn.Linear(4, 4)

    def forward(self, x):
        return torch.tanh(self.step(x))


def test_an_edit_holds_in_each_call_of_the_model_in_a_run(model):
    chain = Chain().eval()
    wrapped = NNsight(chain)

    def edit(m):
        m.step.output = m.step.output + 1

    def assign(m):
        m.step.output = torch.ones(1, 4)

    def steps(x):
        for _ in range(3):
            x = chain(x)
        return x

    for function, change in ((edit, lambda x: x + 1), (assign, lambda x: torch.ones(1, 4))):
        edited = wrapped.edit(function)
        with torch.no_grad(), Tracer(edited, edited._instruments, lambda: steps(torch.ones(1, 4))) as tracer:
            pass
        with torch.no_grad(), hooked(chain.step, change):
            assert same(tracer.result, steps(torch.ones(1, 4)))


def test_an_edit_that_meets_no_site_is_an_error_at_its_line(model):
    def wrong(m):
        m.unused.output[:] = 0  # never called

    with pytest.raises(nl.NotReachedError, match=r"model\.unused\.output was never reached") as caught:
        with model.edit(wrong).trace(sample()):
            pass
    assert any(entry.name == "wrong" for entry in caught.traceback)


def test_an_assignment_of_an_edit_that_meets_no_site_is_an_error(model):
    def wrong(m):
        m.unused.output = 0

    with pytest.raises(nl.NotReachedError, match=r"model\.unused\.output"), model.edit(wrong).trace(sample()):
        pass


def test_an_edit_out_of_order_and_an_edit_that_raises_are_errors_of_the_trace(model):
    def backwards(m):
        m.h[1].output
        m.h[0].output

    def raises(m):
        m.h[1].output
        raise KeyError("mine")

    before = installed(model._model)
    with pytest.raises(nl.OutOfOrderError), model.edit(backwards).trace(sample()):
        pass
    with pytest.raises(KeyError, match="mine"), model.edit(raises).trace(sample()) as tracer:
        tracer.result
    assert installed(model._model) == before
    with model.trace(sample()) as tracer:
        pass
    assert same(tracer.result, model._model(sample()))


def test_a_stopped_trace_takes_its_edits_down(model):
    ended = []

    def edit(m):
        try:
            m.h[2].output[:] = 0
        finally:
            ended.append(True)

    edited = model.edit(edit)
    with edited.trace(sample()) as tracer:
        edited.h[0].output
        tracer.stop()
    assert ended == [True]


def test_edits_are_checked_scanned_and_cached_like_blocks(model):
    def wrong(m):
        m.h[0].output = torch.zeros(1)

    with pytest.raises(nl.ValidationError, match=r"model\.h\[0\]\.output"):
        with model.edit(wrong).trace(sample(), validate=True):
            pass
    edited = model.edit(zero_first_block)
    with edited.scan(sample()):
        assert edited.head.output.shape == (2, 3, 5)
    with torch.no_grad(), edited.trace(sample()) as tracer:
        cache = tracer.cache()
    assert torch.equal(cache["h.0"].output, torch.zeros(2, 3, 8))


def test_an_edit_may_call_modules_itself(model):
    def lens(m):
        m.head.output = m.head(m.h[0].output)

    with torch.no_grad(), model.edit(lens).trace(sample()) as tracer:
        pass
    plain = model._model
    with torch.no_grad():
        assert same(tracer.result, plain.head(recorded(plain, plain.h[0], sample())[0]))


def test_gradient_mode_of_the_edit_does_not_reach_the_model(model):
    def edit(m):
        with torch.no_grad():
            m.h[0].output
            m.h[1].output

    with model.edit(edit).trace(sample()) as tracer:
        pass
    assert tracer.result.requires_grad
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_keep_their_edits(model, again):
    other = again(model.edit(zero_first_block))
    with torch.no_grad(), other.trace(sample()) as tracer:
        pass
    with zeroed(model._model):
        assert same(tracer.result, model._model(sample()))


def test_something_that_is_no_function_is_refused(model):
    with pytest.raises(TypeError, match="takes a function"):
        model.edit(3)


def test_the_embedded_model_is_edited():
    gpt2 = demo.load()

    def silence(m):
        m.transformer.h[1].attn.output[0][:] = 0
        m.transformer.h[5].mlp.source.self_act_0.output[:, -1] = 0

    edited = gpt2.edit(silence)
    prompt = "The Eiffel Tower is in the city of"
    with torch.no_grad(), edited.trace(prompt):
        logits = edited.lm_head.output

    def last(x):
        x[:, -1] = 0
        return x

    layers = gpt2._model.transformer.h
    with torch.no_grad():
        with hooked(layers[1].attn, lambda x: (torch.zeros_like(x[0]), *x[1:])), hooked(layers[5].mlp.act, last):
            expected = gpt2._model(**gpt2.tokenizer(prompt, return_tensors="pt")).logits
        plain = gpt2._model(**gpt2.tokenizer(prompt, return_tensors="pt")).logits
    assert same(logits, expected)
    assert not torch.equal(logits, plain)


def test_two_hundred_edited_traces_without_the_garbage_collector_leave_nothing(model):
    edited = model.edit(double_the_last)
    x = sample()

    def run():
        with edited.trace(x) as tracer:
            edited.h[2].output
            edited.head.output
        with edited.trace(x) as tracer:
            edited.h[0].output
            tracer.stop()

    def census():
        things = gc.get_objects()
        return sum(issubclass(type(t), torch.Tensor) for t in things), sum(
            str(type(t).__module__).startswith("nnsight_lab.engine") or type(t).__name__ in ("greenlet", "frame")
            for t in things
        )

    for _ in range(3):
        run()
    gc.collect()
    gc.disable()
    try:
        before = census()
        for _ in range(100):
            run()
        after = census()
    finally:
        gc.enable()
    assert after == before


# As a block


def test_a_block_is_an_edit_of_every_trace(model):
    with model.edit() as (tracer, edited):
        model.h[0].output[:] = 0
    for seed in range(2):
        with torch.no_grad(), edited.trace(sample(seed)):
            logits = edited.head.output
        with torch.no_grad(), zeroed(model._model):
            assert same(logits, model._model(sample(seed)))
        with torch.no_grad(), model.trace(sample(seed)):
            assert same(model.head.output, model._model(sample(seed)))
    with pytest.raises(AttributeError, match=r"as \(tracer, edited\)"):
        tracer.trace


def test_a_block_in_place_and_on_one_line_until_it_is_cleared(model):
    with torch.no_grad():
        with model.edit(inplace=True): model.h[0].output[:] = 0  # fmt: skip  # noqa: E701
        with model.trace(sample()):
            logits = model.head.output
        with zeroed(model._model):
            assert same(logits, model._model(sample()))
        model.clear_edits()
        with model.trace(sample()):
            assert same(model.head.output, model._model(sample()))


def test_names_of_a_block_keep_what_they_meant_where_it_stands(model):
    seen = []

    def scaled(factors):
        made = []
        for index, factor in enumerate(factors):
            with model.edit() as (_, edited):
                block = model.h[index]
                block.output = sum(block.output * part for part in [factor, factor])
                seen.append((index, [number for number in factors if number == factor]))
            made.append(edited)
        del factor
        return made

    editors = scaled([2, 3])
    for index, factor, edited in zip(range(2), (2, 3), editors, strict=True):
        with torch.no_grad(), edited.trace(sample()) as tracer:
            pass
        with hooked(model._model.h[index], lambda value, factor=factor: value * factor + value * factor):
            assert same(tracer.result, model._model(sample()))
    assert seen == [(0, [2]), (1, [3])]


def test_blocks_of_edits_add_up(model):
    with model.edit() as (_, one):
        model.h[0].output[:] = 0
    with one.edit() as (_, two):
        one.h[2].output[:] *= 2
    with torch.no_grad(), two.trace(sample()) as tracer:
        pass
    with torch.no_grad(), zeroed(model._model), hooked(model._model.h[2], lambda value: value * 2):
        assert same(tracer.result, model._model(sample()))


def test_an_edit_that_cannot_be_lifted_says_how_it_is_written(model):
    with pytest.raises(nl.SourceUnavailableError, match=r"edited = model\.edit\(function\)"):
        exec("with model.edit() as (tracer, edited):\n    model.h[0].output[:] = 0\n", {"model": model})
    with pytest.raises(nl.InvokeError, match="`return` cannot leave this block"):
        leaving(model)
    block = model.edit()
    with block:
        model.h[0].output[:] = 0
    with pytest.raises(nl.TraceStateError, match="used already"), block:
        pass


def leaving(model):
    with model.edit() as (_, edited):
        return edited


def test_an_error_in_a_block_points_to_its_line(model):
    with model.edit() as (_, edited):
        model.h[0].output.nothing_of_the_kind  # here
    with pytest.raises(AttributeError, match="nothing_of_the_kind") as caught, edited.trace(sample()):
        pass
    assert any(str(entry.statement).strip().endswith("# here") for entry in caught.traceback)


def test_an_edit_addresses_a_copy_by_the_model_that_it_is_given(model):
    edited = model.edit(lambda _: model.h[0].output)
    with pytest.raises(nl.OutsideTraceError), copy.deepcopy(edited).trace(sample()):
        pass
