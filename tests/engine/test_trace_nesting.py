"""Traces inside traces, shared modules, threads, and what torch itself puts around a module's call."""

import threading

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from nnsight_lab import NNsight, RecomputedEditError
from tests.engine.trace_toys import hooked, installed, recorded, same, sample, toy


@pytest.fixture
def model():
    return NNsight(toy())


def test_a_trace_of_another_model_inside_a_trace(model):
    other = NNsight(toy(7))
    x, y = sample(1), sample(2)
    with model.trace(x) as outer:
        first = model.h[0].output
        with other.trace(y) as inner:
            theirs = other.h[1].output
            other.h[1].output = theirs * 2
        model.h[1].output = theirs
        second = model.h[2].output
    assert same(first, recorded(model._model, model._model.h[0], x)[0])
    assert same(theirs, recorded(other._model, other._model.h[1], y)[0])
    with hooked(other._model.h[1], lambda value: value * 2):
        assert same(inner.result, other._model(y))
    with hooked(model._model.h[1], lambda _: theirs):
        assert same(second, recorded(model._model, model._model.h[2], x)[0])
        assert same(outer.result, model._model(x))


def test_both_models_of_nested_traces_are_read_in_turn(model):
    other = NNsight(toy(7))
    x = sample()
    with model.trace(x):
        with other.trace(x):
            pairs = [(one.output, two.output) for one, two in zip(model.h, other.h, strict=True)]
    for depth, (one, two) in enumerate(pairs):
        assert same(one, recorded(model._model, model._model.h[depth], x)[0])
        assert same(two, recorded(other._model, other._model.h[depth], x)[0])


def test_the_same_model_inside_itself_to_depth_three(model):
    x, y, z = sample(1), sample(2), sample(3)
    with model.trace(x) as one:
        a = model.h[0].output
        with model.trace(y) as two:
            b = model.h[1].output
            with model.trace(z) as three:
                c = model.h[1].output
                model.h[2].output = b
            model.h[2].output = c
        d = model.h[2].output
        model.h[2].output = a
    plain = model._model
    assert same(a, recorded(plain, plain.h[0], x)[0])
    assert same(b, recorded(plain, plain.h[1], y)[0])
    assert same(c, recorded(plain, plain.h[1], z)[0])
    assert same(d, recorded(plain, plain.h[2], x)[0])
    assert same(three.result, plain.head(b))
    assert same(two.result, plain.head(c))
    assert same(one.result, plain.head(a))
    assert installed(plain) == installed(toy())


def test_operations_of_the_same_model_inside_itself(model):
    x, y = sample(1), sample(2)
    act = model.h[1].mlp.source.self_act_0
    with model.trace(x) as one:
        a = act.output
        with model.trace(y) as two:
            b = act.output
            act.output = b * 3
        act.output = a * 2
    plain = model._model
    assert same(a, recorded(plain, plain.h[1].mlp.act, x)[0])
    assert same(b, recorded(plain, plain.h[1].mlp.act, y)[0])
    with hooked(plain.h[1].mlp.act, lambda value: value * 2):
        assert same(one.result, plain(x))
    with hooked(plain.h[1].mlp.act, lambda value: value * 3):
        assert same(two.result, plain(y))


def test_two_wrappers_of_one_module_each_have_their_own_trace():
    plain = toy()
    one, two = NNsight(plain), NNsight(plain)
    x, y = sample(1), sample(2)
    with one.trace(x) as first:
        a = one.h[0].output
        with two.trace(y) as second:
            b = two.h[0].output
            c = one.h[1].output
            one.h[1].output = c * 2
            d = two.h[1].output
    assert same(a, recorded(plain, plain.h[0], x)[0])
    assert same(b, recorded(plain, plain.h[0], y)[0])
    assert same(c, recorded(plain, plain.h[1], x)[0])
    assert same(d, recorded(plain, plain.h[1], y)[0])
    assert same(second.result, plain(y))
    with hooked(plain.h[1], lambda value: value * 2):
        assert same(first.result, plain(x))
    assert installed(plain) == installed(toy())


def in_threads(*works):
    """Run the callables at the same time; the first exception is raised here."""
    failures = []

    def guarded(work):
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.parametrize("shared", [True, False])
def test_threads_that_trace_at_the_same_time_each_get_their_own(shared):
    plain = toy()
    models = [NNsight(plain) if shared else NNsight(toy()) for _ in range(4)]
    inputs = [sample(seed) for seed in range(4)]
    expected = []
    for x in inputs:
        with hooked(plain.h[1].mlp.act, lambda value: value * 2):
            expected.append((recorded(plain, plain.h[2], x)[0], plain(x)))
    barrier = threading.Barrier(4)

    def work(index):
        model, x = models[index], inputs[index]
        for _ in range(10):
            with model.trace(x) as tracer:
                operation = model.h[1].mlp.source.self_act_0
                barrier.wait(timeout=60)
                operation.output = operation.output * 2
                seen = model.h[2].output
            assert same(seen, expected[index][0])
            assert same(tracer.result, expected[index][1])

    in_threads(*(lambda index=index: work(index) for index in range(4)))
    assert installed(plain) == installed(toy())


def test_one_wrapper_traced_by_several_threads():
    plain = toy()
    model = NNsight(plain)
    barrier = threading.Barrier(3)

    def work(seed):
        x = sample(seed)
        for _ in range(10):
            barrier.wait(timeout=60)
            with model.trace(x) as tracer:
                model.h[1].output = model.h[1].output + seed
            expected = x
            expected = plain.h[1](plain.h[0](plain.embed(x), scale=0.5), scale=0.5) + seed
            assert same(tracer.result, plain.head(plain.h[2](expected, scale=0.5)))

    in_threads(*(lambda seed=seed: work(seed) for seed in range(3)))
    assert installed(plain) == installed(toy())


def test_the_model_called_plainly_inside_the_body_is_not_part_of_the_trace(model):
    x, y = sample(1), sample(2)
    with model.trace(x) as tracer:
        middle = model.h[1].output
        lens = model.head(middle)
        whole = model._model(y)
        also = model(y)
        model.h[1].output = middle * 2
        last = model.h[2].output
    plain = model._model
    assert same(lens, plain.head(middle))
    assert same(whole, plain(y))
    assert same(also, whole)
    with hooked(plain.h[1], lambda value: value * 2):
        assert same(last, recorded(plain, plain.h[2], x)[0])
        assert same(tracer.result, plain(x))


def test_a_plain_call_in_the_body_is_not_taken_for_a_pass_of_the_run(model):
    x = sample()
    with model.trace(x):
        middle = model.h[1].output
        model.head(middle)
        model._model.head(middle)
        logits = model.head.output
    assert same(logits, model._model(x))


def test_the_model_called_plainly_from_another_thread_during_a_trace(model):
    x, y = sample(1), sample(2)
    answers = []
    expected = model._model(y)
    with model.trace(x) as tracer:
        model.h[1].mlp.source.self_act_0.output = 0 * model.h[1].mlp.source.self_act_0.output
        model.h[1].output
        in_threads(lambda: answers.append(model._model(y)))
        last = model.h[2].output
    assert same(answers[0], expected)
    with hooked(model._model.h[1].mlp.act, lambda value: 0 * value):
        assert same(last, recorded(model._model, model._model.h[2], x)[0])
        assert same(tracer.result, model._model(x))


class Shares(nn.Module):
    """One layer under two names and twice in a list; two layers with one weight."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.also_first = self.first
        self.layers = nn.ModuleList([self.first, nn.Linear(4, 4), self.first])
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.first.weight

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.tied(x)


def test_a_module_under_several_names_is_one_site():
    torch.manual_seed(0)
    plain = Shares()
    model = NNsight(plain)
    x = torch.randn(2, 4)
    expected = recorded(plain, plain.first, x)
    with model.trace(x):
        one = model.first.output
        two = model.also_first.output
        three = model.layers[0].output
        middle = model.layers[1].output
        again = model.layers[2].output
        last = model.tied.output
    assert one is two is three
    assert same(one, expected[0])
    assert same(middle, plain.layers[1](torch.relu(one)))
    assert same(again, expected[1])
    assert same(last, plain(x))


def test_a_shared_module_named_by_one_parent_and_run_by_the_other():
    class Around(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner(x) + 1

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            inner = nn.Linear(4, 4)
            self.idle, self.busy = Around(inner), Around(inner)

        def forward(self, x):
            return self.busy(x)

    model = NNsight(Two())
    x = torch.ones(1, 4)
    with model.trace(x):
        inner = model.idle.inner.output
        outer = model.busy.output
    assert same(inner, model._model.busy.inner(x))
    assert same(outer, inner + 1)


def test_an_edit_of_a_shared_module_reaches_the_call_that_was_meant():
    torch.manual_seed(0)
    plain = Shares()
    model = NNsight(plain)
    x = torch.randn(2, 4)
    with model.trace(x) as tracer:
        model.layers[1].output
        model.first.output = torch.ones(2, 4)
    assert same(tracer.result, plain.tied(torch.ones(2, 4)))


def test_a_module_that_calls_itself():
    class Recursive(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x, depth=2):
            return self.linear(x) if depth == 0 else self(x + 1, depth - 1)

    plain = Recursive()
    model = NNsight(plain)
    x = torch.randn(2, 4)
    with model.trace(x) as tracer:
        seen = model.linear.input
    assert same(seen, x + 1 + 1)
    assert same(tracer.result, plain(x))


def test_a_module_replaced_between_traces(model):
    x = sample()
    with model.trace(x):
        model.h[1].mlp.source.self_act_0.output
        model.h[1].mlp.output
    torch.manual_seed(9)
    replacement = type(model._model.h[1].mlp)(8)
    model._model.h[1].mlp = replacement
    with model.trace(x):
        value = model.h[1].mlp.output
    assert same(value, recorded(model._model, replacement, x)[0])
    with model.trace(x):
        value = model.h[1].mlp.source.self_act_0.output
    assert same(value, recorded(model._model, replacement.act, x)[0])


def test_a_module_appended_between_traces(model):
    x = sample()
    with model.trace(x):
        model.h[1].output
    torch.manual_seed(9)
    model._model.h.append(type(model._model.h[0])(8))
    with model.trace(x):
        value = model.h[3].output
    assert same(value, recorded(model._model, model._model.h[3], x)[0])


def test_the_output_is_what_the_caller_receives_users_hooks_included(model):
    x = sample()
    handle = model._model.h[1].mlp.register_forward_hook(lambda _, __, output: output * 2)
    before = model._model.h[1].mlp.register_forward_pre_hook(lambda _, args: (args[0] + 1,))
    with model.trace(x) as tracer:
        given = model.h[1].mlp.input
        value = model.h[1].mlp.output
    result = model._model(x)
    handle.remove()
    before.remove()
    assert same(given, recorded(model._model, model._model.h[1].norm, x)[0])
    assert same(value, model._model.h[1].mlp(given + 1) * 2)
    assert same(tracer.result, result)


def test_hooks_registered_inside_the_body_work_and_stay(model):
    x = sample()
    seen = []
    with model.trace(x):
        handle = model._model.h[1].register_forward_hook(lambda _, __, output: seen.append(output))
        value = model.h[1].output
    handle.remove()
    assert seen[0] is value


def test_a_module_compiled_on_its_own_keeps_its_compiled_call(model):
    x = sample()
    module = model._model.h[1].mlp
    compilations = []

    def backend(graph, _):
        compilations.append(1)
        return graph.forward

    module.compile(backend=backend)
    expected = model._model(x)
    compiled = module._compiled_call_impl
    with model.trace(x) as tracer:
        value = model.h[1].mlp.output
        model.h[1].mlp.output = value * 2
    assert module._compiled_call_impl is compiled
    assert compilations
    assert same(model._model(x), expected)
    module._compiled_call_impl = None
    with hooked(module, lambda output: output * 2):
        torch.testing.assert_close(tracer.result, model._model(x))
    torch._dynamo.reset()


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return {name: None if p.grad is None else p.grad.clone() for name, p in model.named_parameters()}


def equal_gradients(one, other):
    return all((one[k] is None and other[k] is None) or same(one[k], other[k]) for k in one)


def test_backward_through_edited_values_equals_plain_autograd(model):
    x = sample()
    plain = model._model
    with hooked(plain.h[1].mlp, lambda value: value * 3):
        expected = gradients(plain, plain(x).pow(2).sum())
    with model.trace(x) as tracer:
        model.h[1].mlp.output = model.h[1].mlp.output * 3
        loss = tracer.result.pow(2).sum()
    assert equal_gradients(gradients(plain, loss), expected)


def test_backward_inside_the_body_and_the_gradient_of_a_read_value(model):
    x = sample()
    plain = model._model
    stream = recorded(plain, plain.h[1], x)[0].detach().requires_grad_()
    plain.head(plain.h[2](stream, scale=0.5)).sum().backward()
    expected = stream.grad
    with model.trace(x) as tracer:
        value = model.h[1].output
        value.retain_grad()
        tracer.result.sum().backward()
        inside = value.grad
    assert same(inside, expected)


def test_a_tensor_hook_set_in_the_body_sees_the_gradient(model):
    x = sample()
    seen = []
    with model.trace(x) as tracer:
        model.h[1].output.register_hook(lambda gradient: seen.append(gradient))
        tracer.result.sum().backward()
    with model.trace(x) as tracer:
        value = model.h[1].output
        value.retain_grad()
    tracer.result.sum().backward()
    assert same(seen[0], value.grad)


class Checkpointed(nn.Module):
    """Recomputes its block in backward."""

    def __init__(self, reentrant):
        super().__init__()
        self.block = toy().h[0]
        self.head = nn.Linear(8, 5)
        self.reentrant = reentrant

    def forward(self, x):
        return self.head(checkpoint(self.block, x, use_reentrant=self.reentrant))


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("inside", [True, False])
def test_reads_under_gradient_checkpointing_leave_the_gradients_as_they_are(reentrant, inside):
    plain = Checkpointed(reentrant)
    model = NNsight(plain)
    x = sample().requires_grad_()
    expected = gradients(plain, plain(x).sum())
    with model.trace(x) as tracer:
        act = model.block.mlp.act.output
        mine = (act * 2).sum()
        block = model.block.output
        result = tracer.result
        if inside:
            seen = gradients(plain, result.sum())
    if not inside:
        seen = gradients(plain, tracer.result.sum())
    assert equal_gradients(seen, expected)
    assert same(act, recorded(plain, plain.block.mlp.act, x)[0])
    assert same(block, recorded(plain, plain.block, x)[0])
    assert mine.ndim == 0


@pytest.mark.parametrize("reentrant", [True, False])
def test_edits_inside_a_region_that_backward_runs_again_are_refused(reentrant):
    plain = Checkpointed(reentrant)
    model = NNsight(plain)
    x = sample().requires_grad_()
    with pytest.raises(RecomputedEditError, match=r"model\.block\.mlp\.act lies in a region"), model.trace(x):
        model.block.mlp.act.output = model.block.mlp.act.output * 2
    with pytest.raises(RecomputedEditError, match=r"model\.block\.mlp lies in a region"), model.trace(x):
        model.block.mlp.input = torch.zeros(2, 3, 8)
    with torch.no_grad(), hooked(plain.block.mlp.act, lambda value: value * 2):
        expected = plain(x)
    with torch.no_grad(), model.trace(x.detach()) as tracer:
        model.block.mlp.act.output = model.block.mlp.act.output * 2
    assert same(tracer.result, expected)


@pytest.mark.parametrize("reentrant", [True, False])
def test_edits_outside_the_checkpointed_region_have_right_gradients(reentrant):
    plain = Checkpointed(reentrant)
    model = NNsight(plain)
    x = sample().requires_grad_()
    with hooked(plain.head, lambda value: value * 2):
        expected = gradients(plain, plain(x).sum())
    with model.trace(x) as tracer:
        model.head.output = model.head.output * 2
    assert equal_gradients(gradients(plain, tracer.result.sum()), expected)
