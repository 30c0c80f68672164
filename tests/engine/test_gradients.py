"""Gradients inside a trace, against plain autograd with hooks or `retain_grad` on the same model."""

from __future__ import annotations

import gc
import inspect
import pickle
import resource
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from nnsight_lab import GradientEditError, NNsight
from tests.engine.trace_toys import Toy, sample, toy

Loss = Callable[[Tensor], Tensor]


def total(output: Tensor) -> Tensor:
    return (output**2).sum()


def plain(model: Toy, paths: list[str], loss: Loss = total, edit: Any = None) -> dict[str, Tensor]:
    """Gradients at modules' outputs by torch's hooks; `edit` is a pair of a path and a gradient hook."""
    kept: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, output: Tensor) -> None:
            if edit is not None and edit[0] == name:
                output.register_hook(edit[1])
            output.retain_grad()
            kept[name] = output

        return hook

    handles = [model.get_submodule(path).register_forward_hook(keep(path)) for path in paths]
    try:
        loss(model(sample())).backward()
    finally:
        for handle in handles:
            handle.remove()
    model.zero_grad()
    return {name: value.grad for name, value in kept.items() if value.grad is not None}


PATHS = ["embed", "h.0", "h.1.mlp.act", "h.1", "h.2"]


def test_gradients_at_modules_are_those_of_autograd() -> None:
    expected = plain(toy(), PATHS)
    model = NNsight(toy())
    values = {}
    with model.trace(sample()):
        for path in PATHS:
            values[path] = model.get(path).output
            values[path].retain_grad()
        total(model.output).backward()
    assert set(expected) == set(PATHS)
    for path in PATHS:
        assert torch.equal(values[path].grad, expected[path])


def test_reading_suffices_in_a_trace() -> None:
    expected = plain(toy(), PATHS)
    model = NNsight(toy())
    values, inside = {}, {}
    with model.trace(sample()):
        for path in PATHS:
            values[path] = model.get(path).output
        with total(model.output).backward():
            for path in PATHS:
                inside[path] = values[path].grad.save()
    for path in PATHS:
        assert torch.equal(inside[path], expected[path])
        assert values[path].grad is inside[path]


def test_gradients_at_operations_and_inputs_are_those_of_autograd() -> None:
    module = toy()
    x = module.embed(sample())
    x = module.h[0](x, scale=0.5)
    normed = module.h[1].norm(x)
    up = module.h[1].mlp.up(normed)
    act = module.h[1].mlp.act(up)
    scaled = module.h[1].mlp.down(act)
    end = module.h[2](x + scaled * 0.5, scale=0.5)
    wanted = [x, normed, up, act]
    expected = torch.autograd.grad(total(module.head(end)), wanted)

    model = NNsight(toy())
    norm = model.h[1].source.self_norm_0
    with model.trace(sample()):
        args, kwargs = model.h[1].inputs
        entering = norm.output
        given = model.h[1].mlp.source.self_act_0.input
        acted = model.h[1].mlp.source.self_act_0.output
        total(model.output).backward()
    assert kwargs == {"scale": 0.5}
    for value, gradient in zip((args[0], entering, given, acted), expected, strict=True):
        assert torch.equal(value.grad, gradient)


class Nested(nn.Module):
    """Gives its values in a tuple with a mapping in it."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Any:
        a = self.inner(x)
        b = a.tanh()
        return b, {"sum": b + a, "none": None}


def test_tensors_in_containers_have_gradients() -> None:
    torch.manual_seed(0)
    module = Nested()
    x = torch.ones(2, 3)
    a = module.inner(x)
    b = a.tanh()
    c = b + a
    expected = torch.autograd.grad((b * c).sum(), [b, c])
    model = NNsight(module)
    with model.trace(x):
        first, rest = model.output
        (first * rest["sum"]).sum().backward()
    assert torch.equal(first.grad, expected[0])
    assert torch.equal(rest["sum"].grad, expected[1])


def test_each_pass_gives_its_own_gradient_to_what_was_only_read() -> None:
    first, second = plain(toy(), PATHS), plain(toy(), PATHS, torch.sum)
    model = NNsight(toy())
    with model.trace(sample()):
        value = model.h[1].output
        output = model.output
        with total(output).backward(retain_graph=True):
            one = value.grad.clone()
        with output.sum().backward():
            two = value.grad.clone()
    assert torch.equal(one, first["h.1"])
    assert torch.equal(two, second["h.1"])


def test_a_retained_gradient_adds_up_as_in_plain_torch() -> None:
    first, second = plain(toy(), PATHS), plain(toy(), PATHS, torch.sum)
    model = NNsight(toy())
    with model.trace(sample()):
        retained, later = model.h[0].output, model.h[1].output
        retained.retain_grad()
        output = model.output
        total(output).backward(retain_graph=True)
        later.retain_grad()
        output.sum().backward()
    assert torch.equal(retained.grad, first["h.0"] + second["h.0"])
    assert torch.equal(later.grad, second["h.1"])


def test_a_value_that_a_later_pass_does_not_reach_has_no_stale_gradient() -> None:
    model = NNsight(toy())
    with model.trace(sample()):
        first = model.h[0].output
        second = model.h[1].output
        total(second).backward(retain_graph=True)
        assert first.grad is not None
        total(first).backward()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert second.grad is None
        assert torch.equal(first.grad, 2 * first.detach())


def test_an_edit_by_a_hook_reaches_upstream_gradients() -> None:
    def doubled(gradient: Tensor) -> Tensor:
        return gradient * 2 + 1

    expected = plain(toy(), PATHS, edit=("h.1", doubled))
    model = NNsight(toy())
    with model.trace(sample()):
        upstream = model.h[0].output
        edited = model.h[1].output
        edited.register_hook(doubled)
        total(model.output).backward()
    assert torch.equal(upstream.grad, expected["h.0"])
    assert torch.equal(edited.grad, expected["h.1"])
    assert not torch.equal(upstream.grad, plain(toy(), PATHS)["h.0"])


def test_gradients_follow_an_assigned_value() -> None:
    module = toy()
    given = torch.linspace(-1, 1, 48).reshape(2, 3, 8).requires_grad_()
    end = module.h[2](module.h[1](given * 2, scale=0.5), scale=0.5)
    (expected,) = torch.autograd.grad(total(module.head(end)), [given])
    model = NNsight(module)
    with model.trace(sample()):
        model.h[0].output = given * 2
        total(model.output).backward()
    assert torch.equal(given.grad, expected)


def test_gradients_follow_an_edit_in_place() -> None:
    module = toy()
    x = module.h[0](module.embed(sample()), scale=0.5)
    y = x.clone()
    y[:, 0] = 0
    end = module.h[2](module.h[1](y, scale=0.5), scale=0.5)
    (expected,) = torch.autograd.grad(total(module.head(end)), [y])
    model = NNsight(module)
    with model.trace(sample()):
        value = model.h[0].output
        value[:, 0] = 0
        total(model.output).backward()
    assert torch.equal(value.grad, expected)


def test_parameters_get_their_gradients() -> None:
    module, other = toy(), toy()
    total(other(sample())).backward()
    model = NNsight(module)
    with model.trace(sample()):
        total(model.output).backward()
    for mine, theirs in zip(module.parameters(), other.parameters(), strict=True):
        if theirs.grad is None:
            assert mine.grad is None
        else:
            assert torch.equal(mine.grad, theirs.grad)


def test_the_keywords_of_backward_pass_through() -> None:
    weights = torch.linspace(0, 1, 30).reshape(2, 3, 5)
    module = toy()
    x = module.h[0](module.embed(sample()), scale=0.5)
    end = module.head(module.h[2](module.h[1](x, scale=0.5), scale=0.5))
    (expected,) = torch.autograd.grad(end, [x], weights)
    model = NNsight(toy())
    with model.trace(sample()):
        value, later = model.h[0].output, model.h[1].output
        output = model.output
        output.backward(gradient=weights, inputs=[value], retain_graph=True)
        once = value.grad.clone()
        output.backward(weights, inputs=[value])
        assert later.grad is not None
    assert torch.equal(once, expected)
    assert torch.equal(value.grad, 2 * expected)  # `inputs` adds up, as torch says
    assert all(parameter.grad is None for parameter in model._model.parameters())


def test_second_order_gradients() -> None:
    module = toy()
    x = module.h[0](module.embed(sample()), scale=0.5)
    loss = total(module.head(module.h[2](module.h[1](x, scale=0.5), scale=0.5)))
    (first,) = torch.autograd.grad(loss, [x], create_graph=True)
    (expected,) = torch.autograd.grad((first**2).sum(), [x])
    model = NNsight(toy())
    with model.trace(sample()):
        value = model.h[0].output
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of the cycle between a parameter and its gradient
            with total(model.output).backward(create_graph=True):
                gradient = value.grad
        (second,) = torch.autograd.grad((gradient**2).sum(), [value])
    assert torch.equal(gradient, first)
    assert torch.equal(second, expected)


def test_two_gradients_never_share_memory() -> None:
    model = NNsight(toy())
    with model.trace(sample()):
        added, whole = model.h[2].mlp.output, model.h[2].output
        total(model.output).backward()
    before = added.grad.clone()
    whole.grad.zero_()
    assert torch.equal(added.grad, before)


def test_a_loss_over_two_models() -> None:
    one, two = NNsight(toy(0)), NNsight(toy(1))
    with one.trace(sample()), two.trace(sample()):
        a, b = one.h[0].output, two.h[0].output
        (one.output * two.output).sum().backward()
    left, right = toy(0), toy(1)
    with torch.no_grad():
        outputs = left(sample()), right(sample())
    assert torch.equal(a.grad, plain(left, ["h.0"], lambda y: (y * outputs[1]).sum())["h.0"])
    assert torch.equal(b.grad, plain(right, ["h.0"], lambda y: (outputs[0] * y).sum())["h.0"])


def test_a_pass_before_the_model_has_ended() -> None:
    module = toy()
    expected = module.h[0](module.embed(sample()), scale=0.5)
    model = NNsight(module)
    with model.trace(sample()):
        start = model.embed.output
        total(model.h[0].output).backward(retain_graph=True)
        early = start.grad.clone()
        output = model.output
    assert torch.equal(output, module(sample()))
    x = module.embed(sample())
    (by_hand,) = torch.autograd.grad(total(module.h[0](x, scale=0.5)), [x])
    assert expected.shape == early.shape
    assert torch.equal(early, by_hand)


class Recomputing(Toy):
    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for block in self.h:
            x = checkpoint(block, x, 0.5, use_reentrant=False)
        return self.head(x)


def test_gradients_under_checkpointing() -> None:
    torch.manual_seed(0)
    module = Recomputing().eval()
    expected = plain(module, ["embed", "h.1"])
    model = NNsight(module)
    with model.trace(sample()):
        first, value = model.embed.output, model.h[1].output
        total(model.output).backward()
    assert torch.equal(first.grad, expected["embed"])
    assert torch.equal(value.grad, expected["h.1"])


def test_a_trace_records_gradients_as_the_caller_does() -> None:
    model = NNsight(toy())
    with model.trace(sample()):
        assert torch.is_grad_enabled()
        assert model.h[0].output.requires_grad
        assert torch.is_grad_enabled()
    with torch.no_grad(), model.trace(sample()):
        assert not model.h[0].output.requires_grad
        with torch.enable_grad():
            assert not model.h[1].output.requires_grad  # the model goes on as it was called


# `with loss.backward():`


@pytest.mark.parametrize("how", ["assigned", "in place", "added to", "cleared"])
def test_changing_a_gradient_inside_the_block_is_refused(how: str) -> None:
    model = NNsight(toy())
    with pytest.raises(GradientEditError, match=r"model\.h\[0\]\.output was changed .*register_hook"):
        with model.trace(sample()):
            value = model.h[0].output
            with total(model.output).backward():
                if how == "assigned":
                    value.grad = value.grad * 2
                elif how == "in place":
                    value.grad[:] = 0
                elif how == "added to":
                    value.grad += 1
                else:
                    value.grad = None


def test_an_error_of_the_block_is_not_replaced() -> None:
    model = NNsight(toy())
    with pytest.raises(ZeroDivisionError), model.trace(sample()):
        value = model.h[0].output
        with total(model.output).backward():
            value.grad[:] = 0
            raise ZeroDivisionError


def test_a_failing_pass_leaves_no_hook_behind() -> None:
    model = NNsight(toy())
    with model.trace(sample()):
        value = model.h[0].output
        later = model.h[1].output
        output = model.output
        with pytest.raises(RuntimeError, match="scalar outputs"):
            output.backward()
        assert not value._backward_hooks
        assert not later._backward_hooks
        total(output).backward()
    assert torch.equal(value.grad, plain(toy(), PATHS)["h.0"])


def test_backward_outside_traces_is_torchs() -> None:
    x = torch.ones(2, requires_grad=True)
    assert (x * 2).sum().backward() is None
    with pytest.raises(TypeError, match="context manager"):
        with (x * 2).sum().backward():  # type: ignore[attr-defined]
            pass
    assert torch.equal(x.grad, torch.full((2,), 4.0))


def test_backward_of_another_thread_is_torchs() -> None:
    results: list[Any] = []
    model = NNsight(toy())

    def other() -> None:
        x = torch.ones(2, requires_grad=True)
        results.append(x.sum().backward())

    with model.trace(sample()):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert results == [None]


class Inner(nn.Module):
    """Differentiates in its own forward."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            assert (x**3).sum().backward() is None
        return x.grad


def test_a_model_that_calls_backward_itself_gets_torchs() -> None:
    model = NNsight(Inner())
    with model.trace(torch.ones(2)):
        output = model.output
    assert torch.equal(output, torch.full((2,), 3.0))


@pytest.mark.parametrize("name", ["backward", "retain_grad"])
def test_the_methods_look_and_pickle_like_torchs(name: str) -> None:
    method = getattr(Tensor, name)
    original = method.__wrapped__
    assert method.__name__ == original.__name__
    if name == "backward":
        assert pickle.loads(pickle.dumps(method)) is method
        assert inspect.signature(method) == inspect.signature(original)
        assert method.__doc__.startswith(original.__doc__)


class Tagged(Tensor):
    """A subclass that goes through `__torch_function__`."""


def test_a_subclass_of_tensor_can_be_differentiated() -> None:
    model = NNsight(toy())
    with model.trace(sample()):
        value = model.h[0].output
        with total(model.output).as_subclass(Tagged).backward():
            gradient = value.grad
    assert torch.equal(gradient, plain(toy(), PATHS)["h.0"])


# Views beside the graph


@pytest.mark.parametrize(
    "index", [0, (slice(None), -1), (slice(None), slice(None, None, 2)), (0, 1, 2), (Ellipsis, None)], ids=str
)
def test_a_view_beside_the_graph_retains_its_part_of_the_gradient(index: Any) -> None:
    model = NNsight(toy())
    with model.trace(sample()):
        hidden = model.h[0].output[index]
        hidden.retain_grad()
        turned = model.h[1].output.transpose(0, 1)[..., 1:]
        turned.retain_grad()
        total(model.output).backward(retain_graph=True)
        once = hidden.grad
        total(model.output).backward()
    expected = plain(toy(), PATHS)
    assert torch.equal(once, expected["h.0"][index])
    assert torch.equal(hidden.grad, 2 * expected["h.0"][index])  # retained gradients add up
    assert torch.equal(turned.grad, 2 * expected["h.1"].transpose(0, 1)[..., 1:])


class Repeated(nn.Module):
    """Gives one row in the place of four, in one memory."""

    def __init__(self) -> None:
        super().__init__()
        self.row = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.row(x).expand(4, 3)


def test_a_view_whose_part_is_not_known_is_warned_of() -> None:
    model = NNsight(nn.Sequential(Repeated(), nn.Linear(3, 1)))
    with model.trace(torch.ones(3)):
        hidden = model[0].output[0]
        hidden.retain_grad()
        with pytest.warns(UserWarning, match=r"shares the memory of model\[0\]\.output.*retain_grad\(\) on") as caught:
            total(model.output).backward()
    assert hidden.grad is None
    assert [warning.filename for warning in caught] == [__file__]


def test_a_view_on_the_graph_is_not_warned_of() -> None:
    model = NNsight(toy())
    with warnings.catch_warnings(), model.trace(sample()):
        warnings.simplefilter("error")
        hidden = model.h[0].output[0]
        hidden.retain_grad()
        beside = model.h[1].output[0]
        (model.output.sum() + hidden.sum()).backward()
    assert torch.equal(hidden.grad, torch.ones_like(hidden))
    assert not beside.retains_grad


def test_a_view_of_a_value_that_the_loss_does_not_use_is_not_warned_of() -> None:
    model = NNsight(toy())
    with warnings.catch_warnings(), model.trace(sample()):
        warnings.simplefilter("error")
        early = model.h[0].output
        late = model.h[1].output[0]
        late.retain_grad()
        total(early).backward()
    assert late.grad is None


# Lifetimes


def test_nothing_is_kept_alive_after_the_block() -> None:
    model = NNsight(toy())
    gc.disable()
    try:
        with model.trace(sample()):
            value = model.h[0].output
            value.retain_grad()
            output = model.output
            loss = total(output)
            with loss.backward():
                gradient = value.grad
        nodes = [weakref.ref(entry) for entry in (value, output, loss, gradient)]
        del value, output, loss, gradient
        assert [node() for node in nodes] == [None] * 4
    finally:
        gc.enable()


def test_what_the_body_drops_is_not_kept_alive_by_having_been_read() -> None:
    model = NNsight(toy())
    gc.disable()
    try:
        with model.trace(sample()):
            gone = weakref.ref(model.h[0].output)
            model.h[0].output = torch.zeros(2, 3, 8)
            model.h[1].output
        assert gone() is None
    finally:
        gc.enable()


def test_memory_is_flat_over_200_traces_without_the_garbage_collector() -> None:
    module = toy(width=64)
    model = NNsight(module)
    x = sample(rows=64, width=64)

    def once() -> None:
        with model.trace(x):
            values = [block.output for block in model.h]
            values[0].retain_grad()
            with total(model.output).backward():
                assert values[1].grad is not None
        module.zero_grad()

    def tensors() -> int:
        return sum(issubclass(type(entry), Tensor) for entry in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        for _ in range(40):
            once()
        count = tensors()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(200):
            once()
        assert tensors() == count
        # One trace holds over a megabyte of activations and gradients.
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000
    finally:
        gc.enable()
