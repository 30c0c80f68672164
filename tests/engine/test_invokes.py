"""Blocks of `tracer.invoke`: one forward over all their inputs, each block reading and editing its own rows.

Expected values come from the plain module, run once for each input, with torch hooks where it is read or edited.
"""

from __future__ import annotations

import gc
import linecache
import sys
import warnings

import pytest
import torch
from torch import nn

from nnsight_lab import InvokeError, NNsight, NotReachedError, OutOfOrderError, TraceStateError

from .trace_toys import Toy, sample, toy

A, B, C = sample(1, rows=1), sample(2, rows=2), sample(3, rows=1)


def close(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Rows of a batch differ from single runs by the rounding of another kernel."""
    return left.shape == right.shape and torch.allclose(left, right, atol=1e-5)


def block(module: Toy, x: torch.Tensor, depth: int) -> torch.Tensor:
    """The output of block `depth - 1`, computed by hand."""
    x = module.embed(x)
    for layer in module.h[:depth]:
        x = layer(x, scale=0.5)
    return x


def rest(module: Toy, x: torch.Tensor, depth: int) -> torch.Tensor:
    for layer in module.h[depth:]:
        x = layer(x, scale=0.5)
    return module.head(x)


@pytest.fixture
def module() -> Toy:
    return toy()


@pytest.fixture
def model(module: Toy) -> NNsight:
    return NNsight(module)


def test_each_block_reads_its_rows_of_one_forward(model, module):
    calls = []
    handle = module.register_forward_hook(lambda *_: calls.append(1))
    with torch.no_grad():
        with model.trace() as tracer:
            with tracer.invoke(A):
                one = model.h[1].output.save()
                first = model.output.save()
            with tracer.invoke(B):
                two = model.h[1].output.save()
                second = model.output.save()
        handle.remove()
        assert calls == [1]
        assert close(one, block(module, A, 2))
        assert close(two, block(module, B, 2))
        assert close(first, module(A))
        assert close(second, module(B))


def test_an_edit_in_place_touches_its_rows_alone(model, module):
    with torch.no_grad():
        with model.trace() as tracer:
            with tracer.invoke(A):
                model.h[1].output[:] = 0
                first = model.output
            with tracer.invoke(B):
                second = model.output
        assert close(first, rest(module, torch.zeros_like(A), 2))
        assert close(second, module(B))


def test_an_assignment_touches_its_rows_alone(model, module):
    with torch.no_grad():
        with model.trace() as tracer:
            with tracer.invoke(A):
                model.h[0].output = torch.ones_like(A)
                first = model.output
            with tracer.invoke(B):
                second = model.output
            with tracer.invoke(C):
                model.h[0].output = model.h[0].output * 2
                third = model.output
        assert close(first, rest(module, torch.ones_like(A), 1))
        assert close(second, module(B))
        assert close(third, rest(module, block(module, C, 1) * 2, 1))


def test_assigning_after_another_block_read_keeps_what_that_one_changed(model, module):
    with torch.no_grad():
        with model.trace() as tracer:
            with tracer.invoke(A):
                hidden = model.h[0].output
                go()
                hidden[:] = 0
                first = model.output
            with tracer.invoke(B):
                model.h[0].output = model.h[0].output + 1
                second = model.output
        assert close(first, rest(module, torch.zeros_like(A), 1))
        assert close(second, rest(module, block(module, B, 1) + 1, 1))


def go() -> None:
    """Something between two lines."""


def test_inputs_are_read_and_assigned_by_row(model, module):
    with torch.no_grad():
        with model.trace() as tracer:
            with tracer.invoke(A):
                given = model.h[1].input
                (args, keywords) = model.h[1].inputs
                model.h[1].input = given * 3
                first = model.output
            with tracer.invoke(B):
                second = model.output
        assert close(given, block(module, A, 1))
        assert keywords == {"scale": 0.5}
        assert len(args) == 1
        assert close(first, rest(module, block(module, A, 1) * 3, 1))
        assert close(second, module(B))


def test_skipping_a_call_for_some_rows(model, module):
    with torch.no_grad():
        with model.trace() as tracer:
            with tracer.invoke(A):
                model.h[1].skip(model.h[0].output)
                first = model.output
            with tracer.invoke(B):
                second = model.output
        x = block(module, A, 1)
        assert close(first, module.head(module.h[2](x, scale=0.5)))
        assert close(second, module(B))


def test_operations_are_read_and_edited_by_row(model, module):
    with torch.no_grad():
        with model.trace() as tracer:
            with tracer.invoke(A):
                model.h[0].mlp.source.self_act_0.output[:] = 0
                first = model.h[0].output
            with tracer.invoke(B):
                act = model.h[0].mlp.source.self_act_0.output
                second = model.h[0].output
        x = module.embed(A)
        assert close(first, x + module.h[0].mlp.down.bias.expand_as(x) * 0.5)
        mlp = module.h[0].mlp
        assert close(act, mlp.act(mlp.up(module.h[0].norm(module.embed(B)))))
        assert close(second, block(module, B, 1))


def test_a_block_without_input_sees_the_whole_batch(model, module):
    with torch.no_grad():
        with model.trace() as tracer:
            with tracer.invoke(A):
                pass
            with tracer.invoke(B):
                pass
            with tracer.invoke():
                whole = model.output.clone()
                model.output = whole * 2
            with tracer.invoke(C):
                third = model.output
        assert close(whole, module(torch.cat([A, B, C])))
        assert close(third, 2 * module(C))
        assert torch.equal(tracer.result, whole * 2)


def test_a_name_of_an_earlier_block_is_waited_for(model, module):
    with torch.no_grad():
        with model.trace() as tracer:
            with tracer.invoke(A):
                late = model.h[1].output
            with tracer.invoke(C):
                early = model.h[0].output
                model.h[1].output[:] = late
                patched = model.output
        assert close(early, block(module, C, 1))
        assert close(patched, module(A))


def test_a_later_block_can_feed_an_earlier_one_across_a_barrier(model, module):
    kept = {}
    with torch.no_grad():
        with model.trace() as tracer:
            barrier = tracer.barrier(2)
            with tracer.invoke(A):
                barrier()
                model.h[1].output = kept["hidden"]
                patched = model.output
            with tracer.invoke(C):
                kept["hidden"] = model.h[1].output
                barrier()
        assert close(patched, module(C))


def test_blocks_that_wait_for_one_another_are_reported(model):
    with pytest.raises(InvokeError, match="barrier of 2 blocks"), model.trace() as tracer:
        barrier = tracer.barrier(2)
        with tracer.invoke(A):
            barrier()
        with tracer.invoke(C):
            pass


def test_a_loop_makes_a_block_of_each_turn(model, module):
    found = {}
    with torch.no_grad():
        with model.trace() as tracer:
            for name, x in {"a": A, "b": B, "c": C}.items():
                with tracer.invoke(x):
                    found[name] = model.output
        assert all(close(found[name], module(x)) for name, x in {"a": A, "b": B, "c": C}.items())


def test_closures_comprehensions_and_lambdas_see_the_names_of_the_frame(model, module):
    scale = 2.0
    offset = torch.ones(8)

    def shifted(x):
        return x * scale + offset

    with torch.no_grad():
        with model.trace() as tracer:
            with tracer.invoke(A):
                model.h[0].output = shifted(model.h[0].output)
                double = lambda x: x * scale  # noqa: E731
                layers = [double(layer.output) for layer in model.h]
                total = sum(part.sum() for part in layers)
            with tracer.invoke(C):
                scaled = double(model.output)
        x = block(module, A, 1) * 2 + 1
        expected = [x, module.h[1](x, scale=0.5)]
        expected.append(module.h[2](expected[1], scale=0.5))
        assert all(close(layer, 2 * one) for layer, one in zip(layers, expected, strict=True))
        assert torch.allclose(total, sum(2 * one.sum() for one in expected), atol=1e-3)
        assert close(scaled, 2 * module(C))
        assert close(double(A), 2 * A)


class Study:
    def __init__(self, model):
        self.model = model
        self.__kept = []

    def run(self, *inputs):
        with self.model.trace() as tracer:
            for x in inputs:
                with tracer.invoke(x):
                    self.__kept.append(self.model.output)
        return self.__kept


def test_a_method_uses_self_and_private_names(model, module):
    with torch.no_grad():
        kept = Study(model).run(A, C)
        assert close(kept[0], module(A))
        assert close(kept[1], module(C))


def test_a_block_on_the_line_of_its_with_statement(model, module):
    with torch.no_grad():
        with model.trace() as tracer:
            with tracer.invoke(A): one = model.output  # fmt: skip  # noqa: E701
            with tracer.invoke(C) as invoker: two = model.output; seen = invoker.inputs  # fmt: skip  # noqa: E701, E702
        assert close(one, module(A))
        assert close(two, module(C))
        assert seen == ((C,), {})


def test_names_of_a_module_are_bound_in_it(module, tmp_path):
    path = tmp_path / "study.py"
    path.write_text(
        "with model.trace() as tracer:\n"
        "    with tracer.invoke(a):\n"
        "        one = model.output\n"
        "    with tracer.invoke(c):\n"
        "        two = model.output\n"
    )
    names = {"model": NNsight(module), "a": A, "c": C}
    with torch.no_grad():
        exec(compile(path.read_text(), str(path), "exec"), names)
        assert close(names["one"], module(A))
        assert close(names["two"], module(C))


def test_without_source_each_block_runs_alone_with_one_warning(model, module):
    text = (
        "with model.trace() as tracer:\n"
        "    with tracer.invoke(a):\n"
        "        kept = model.h[0].output\n"
        "    with tracer.invoke(c):\n"
        "        model.h[0].output = kept\n"
        "        two = model.output\n"
    )
    names = {"model": model, "a": A, "c": C}
    with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(text, names)
        assert close(names["two"], module(A))
    assert [str(w.message).split(": ")[1][:15] for w in caught] == ["the source of t"]


def test_an_error_in_a_block_points_to_its_line(model):
    def study():
        with model.trace() as tracer:
            with tracer.invoke(A):
                one = model.h[0].output
            with tracer.invoke(C):
                one = model.h[0].output
                raise KeyError("mine")
        return one

    with pytest.raises(KeyError, match="mine") as caught:
        study()
    last = caught.traceback[-1]
    assert str(last.path) == __file__
    assert str(last.statement).strip() == 'raise KeyError("mine")'
    assert type(model._model).forward is Toy.forward
    assert "_compiled_call_impl" not in model._model.__dict__


def test_a_site_asked_for_too_late_or_never_reached_is_an_error_of_its_block(model):
    with pytest.raises(OutOfOrderError, match=r"model.h\[0\].output was asked for after"), model.trace() as tracer:
        with tracer.invoke(A):
            model.h[2].output
        with tracer.invoke(C):
            model.h[1].output
            model.h[0].output
    with pytest.raises(NotReachedError, match=r"model.unused.output was never reached"), model.trace() as tracer:
        with tracer.invoke(A):
            model.unused.output
        with tracer.invoke(C):
            model.output


def test_an_error_of_the_model_comes_at_the_line_that_waits(model):
    with pytest.raises(RuntimeError, match="normalized_shape") as caught, model.trace() as tracer:
        with tracer.invoke(torch.randn(1, 3, 8)):
            model.embed.output
        with tracer.invoke():
            model.embed.output = torch.randn(2, 3, 5)
            model.h[2].output
        with tracer.invoke(torch.randn(1, 3, 8)):
            pass
    lines = [str(entry.statement).strip() for entry in caught.traceback if str(entry.path) == __file__]
    assert lines[-1].startswith("model.h[2].output")


def test_a_value_that_does_not_fit_the_rows_is_refused(model):
    with pytest.raises(InvokeError, match=r"model.h\[0\].output was assigned a tensor of shape \[4, 3, 8\]") as caught:
        with model.trace() as tracer:
            with tracer.invoke(A):
                model.h[0].output = torch.zeros(4, 3, 8)
            with tracer.invoke(B):
                model.output
    assert __file__ in caught.value.__notes__[0]


class Mixing(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.shared = nn.Embedding(3, 4)
        self.total = nn.Identity()

    def forward(self, x):
        places = self.shared(torch.arange(3)[None])
        flat = self.inner(x.transpose(0, 1).reshape(-1, 4)).reshape(3, -1, 4).transpose(0, 1)
        return flat + places + 0 * self.total(flat.sum())


def test_rows_that_cannot_be_told_apart_are_refused_and_never_leak():
    model = NNsight(Mixing())
    for path in ("inner", "total"):
        with pytest.raises(InvokeError, match=f"model.{path}.output is a tensor of shape"), model.trace() as tracer:
            with tracer.invoke(torch.randn(1, 3, 4)):
                model.get(path).output
            with tracer.invoke(torch.randn(1, 3, 4)):
                pass


def test_a_value_that_all_rows_share_is_edited_for_its_own_rows():
    module = Mixing()
    model = NNsight(module)
    a, c = torch.randn(1, 3, 4), torch.randn(1, 3, 4)
    with torch.no_grad():
        with model.trace() as tracer:
            with tracer.invoke(a):
                shared = model.shared.output
                shared[:] = 0
                one = model.output
            with tracer.invoke(c):
                two = model.output
        assert close(one, module(a) - module.shared.weight)
        assert close(two, module(c))


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.pair = Pair()

    def forward(self, x):
        found = self.pair(self.inner(x))
        return found["one"] + found["rest"][0]


class Pair(nn.Module):
    def forward(self, x):
        return {"one": x * 2, "rest": [x + 1, None]}


def test_entries_of_a_container_can_be_replaced_in_place():
    module = Nested()
    model = NNsight(module)
    a, c = torch.randn(1, 4), torch.randn(2, 4)
    with torch.no_grad():
        with model.trace() as tracer:
            with tracer.invoke(a):
                model.pair.output["rest"][0] = torch.zeros(1, 4)
                one = model.output
            with tracer.invoke(c):
                two = model.output
        assert close(one, module.inner(a) * 2)
        assert close(two, module(c))


def test_gradients_reach_each_block(model, module):
    kept = []
    with model.trace() as tracer:
        for x in (A, B):
            with tracer.invoke(x):
                hidden = model.h[0].output
                hidden.retain_grad()
                kept.append(hidden)
                model.output.pow(2).sum().backward(retain_graph=True)
    for hidden, x in zip(kept, (A, B), strict=True):
        own = block(module, x, 1).detach().requires_grad_()
        rest(module, own, 1).pow(2).sum().backward()
        assert close(hidden.grad, own.grad)


def test_grad_mode_of_a_block_is_its_own(model):
    with model.trace() as tracer:
        with tracer.invoke(A):
            with torch.no_grad():
                model.h[0].output
                one = torch.is_grad_enabled()
                model.h[1].output
        with tracer.invoke(C):
            model.h[0].output
            two = torch.is_grad_enabled()
            out = model.output
    assert (one, two) == (False, True)
    assert out.requires_grad


def test_stopping_in_every_block_stops_the_model(model, module):
    ran = []
    handle = module.h[2].register_forward_hook(lambda *_: ran.append(1))
    with torch.no_grad():
        with model.trace() as tracer:
            with tracer.invoke(A):
                one = model.h[0].output
                tracer.stop()
            with tracer.invoke(C):
                two = model.h[1].output
                tracer.stop()
        handle.remove()
        assert close(one, block(module, A, 1))
        assert close(two, block(module, C, 2))
        assert ran == []


def test_the_result_in_a_block_is_its_rows(model, module):
    with torch.no_grad():
        with model.trace() as tracer:
            with tracer.invoke(A):
                one = tracer.result
            with tracer.invoke(C):
                two = tracer.result
        assert close(one, module(A))
        assert close(two, module(C))


def test_a_trace_of_the_same_model_inside_a_block(model, module):
    with torch.no_grad():
        with model.trace() as tracer:
            with tracer.invoke(A):
                before = model.h[0].output
                with model.trace(B):
                    inner = model.h[1].output
                one = model.output
            with tracer.invoke(C):
                two = model.output
        assert close(before, block(module, A, 1))
        assert close(inner, block(module, B, 2))
        assert close(one, module(A))
        assert close(two, module(C))


def test_what_cannot_be_done_says_what_to_do(model):
    with pytest.raises(InvokeError, match="given an input"), model.trace(A) as tracer:
        tracer.invoke(C)
    with pytest.raises(InvokeError, match="outside the invoke blocks"), model.trace() as tracer:
        with tracer.invoke(A):
            pass
        model.h[0].output
    with pytest.raises(InvokeError, match="No block of this trace has a prompt"), model.trace() as tracer:
        with tracer.invoke():
            pass
    with pytest.raises(InvokeError, match="differ in more than their first dimension"), model.trace() as tracer:
        with tracer.invoke(torch.randn(1, 3, 8)):
            pass
        with tracer.invoke(torch.randn(1, 4, 8)):
            pass
    with pytest.raises(TraceStateError, match="inside the trace's"):
        model.trace().invoke(A)


def test_leaving_a_block_is_refused(model):
    def study():
        with model.trace() as tracer:
            with tracer.invoke(A):
                return model.output

    with pytest.raises(InvokeError, match="`return` cannot leave this block"):
        study()


def test_a_trace_function_is_put_back(model):
    events = []

    def watch(frame, event, argument):
        if frame.f_code.co_filename == __file__:
            events.append((frame.f_lineno, event))
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        with model.trace() as tracer:
            with tracer.invoke(A):
                one = model.output
            with tracer.invoke(C):
                two = model.output
        active = sys.gettrace()
        local = sys._getframe().f_trace
    finally:
        sys.settrace(before)
    assert active is watch
    assert local in (None, before, watch)
    assert one.shape == two.shape


def test_memory_stays_flat_without_the_garbage_collector(model):
    def study():
        with model.trace() as tracer:
            with tracer.invoke(A):
                hidden = model.h[0].output
            with tracer.invoke(C):
                model.h[0].output[:] = hidden
                return_value = [model.output for _ in range(1)]
        return return_value

    with torch.no_grad():
        study()
        gc.collect()
        gc.disable()
        try:
            before = len(gc.get_objects())
            for _ in range(200):
                study()
            after = len(gc.get_objects())
        finally:
            gc.enable()
    assert after - before < 200


def test_a_changed_file_is_not_taken_for_the_source(module, tmp_path):
    path = tmp_path / "study.py"
    text = "with model.trace() as tracer:\n    with tracer.invoke(a):\n        one = model.output\n"
    code = compile(text, str(path), "exec")
    path.write_text(text.replace("one", "other"))
    linecache.checkcache(str(path))
    names = {"model": NNsight(module), "a": A}
    with torch.no_grad():
        with pytest.warns(UserWarning, match="cannot be found"):
            exec(code, names)
        assert close(names["one"], module(A))
        assert "other" not in names
