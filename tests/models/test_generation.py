"""Generation under a trace, against plain `generate` with hand-written hooks that count the model's forwards."""

from __future__ import annotations

import gc
import resource
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import nnsight_lab as nl
from nnsight_lab import LanguageModel
from nnsight_lab.models import PromptError
from tests.models.tiny import Fixed, tiny_model, tiny_tokenizer

PROMPT = "once upon"
STEPS = 5
GREEDY = {"max_new_tokens": STEPS, "do_sample": False}


@pytest.fixture(params=["gpt2", "llama"])
def model(request: Any) -> LanguageModel:
    return LanguageModel(tiny_model(request.param), tokenizer=tiny_tokenizer())


def blocks(model: LanguageModel) -> Any:
    return model.transformer.h if hasattr(model._model, "transformer") else model.model.layers


def plain(
    model: LanguageModel,
    prompt: Any = PROMPT,
    read: tuple[Any, ...] = (),
    edit: tuple[Any, Callable[[int, Tensor], Tensor | None]] | None = None,
    **options: Any,
) -> tuple[Tensor, list[list[Tensor]]]:
    """Plain `generate`: its ids, and for each of `read` the output at every call; `edit` is told the call's number."""
    module: Any = model._model
    values: list[list[Tensor]] = [[] for _ in read]
    handles = []
    for envoy, seen in zip(read, values, strict=True):
        handles.append(envoy._module.register_forward_hook(lambda m, a, output, seen=seen: seen.append(output.clone())))
    if edit is not None:
        envoy, change = edit
        calls = iter(range(1000))
        handles.append(envoy._module.register_forward_hook(lambda m, a, output: change(next(calls), output)))
    try:
        encoded = model.tokenizer(prompt, return_tensors="pt", padding=True)
        ids = module.generate(encoded.input_ids, attention_mask=encoded.attention_mask, **{**GREEDY, **options})
    finally:
        for handle in handles:
            handle.remove()
    return ids, values


def same(mine: list[Tensor], theirs: list[Tensor]) -> bool:
    return len(mine) == len(theirs) > 0 and all(map(torch.equal, mine, theirs))


def test_every_layer_at_every_step_and_the_ids_are_those_of_plain_generate(model):
    seen: list[list[Tensor]] = [[] for _ in blocks(model)]
    logits = []
    with model.generate(PROMPT, **GREEDY) as tracer:
        numbers = []
        for step in tracer.iter[:]:
            numbers.append(step)
            for layer, values in zip(blocks(model), seen, strict=True):
                values.append(layer.output.clone())
            logits.append(model.lm_head.output)
        inside = tracer.result
    ids, (*layers, head) = plain(model, read=(*blocks(model), model.lm_head))
    assert numbers == list(range(STEPS))
    assert all(map(same, seen, layers))
    assert same(logits, head)
    assert torch.equal(inside, ids)
    assert torch.equal(tracer.result, ids)


def test_a_generation_without_a_body_and_outside_a_block(model):
    context = model.generate(PROMPT, **GREEDY)
    with context as tracer:
        pass
    assert torch.equal(tracer.result, plain(model)[0])
    assert isinstance(context, nl.engine.Tracer)


def test_the_generator_stands_for_what_generate_returned(model):
    with model.generate(PROMPT, **GREEDY):
        first = blocks(model)[0].output
        ids = model.generator.output.save()
    expected, (layer,) = plain(model, read=(blocks(model)[0],))
    assert torch.equal(ids, expected)
    assert torch.equal(first, layer[0])


def test_the_generator_has_nothing_in_a_trace_of_one_forward(model):
    with pytest.raises(nl.OutsideTraceError, match=r"model\.generator\.output"):
        model.generator.output
    with pytest.raises(nl.TraceStateError, match=r"model\.generate"), model.trace(PROMPT):
        model.generator.output


@pytest.mark.parametrize("chosen", [0, 2, 4])
def test_an_edit_in_one_step_is_a_hook_that_counts(model, chosen):
    with model.generate(PROMPT, **GREEDY) as tracer:
        for step in tracer.iter[:]:
            if step == chosen:
                blocks(model)[0].output = blocks(model)[0].output * -3
    edit = (blocks(model)[0], lambda call, output: output * -3 if call == chosen else None)
    assert torch.equal(tracer.result, plain(model, edit=edit)[0])


@pytest.mark.parametrize(
    ("key", "steps"),
    [(slice(None), range(5)), (slice(1, 3), (1, 2)), (slice(None, None, 2), (0, 2, 4)), (3, (3,)), ([0, 4], (0, 4))],
)
def test_assignments_and_in_place_edits_in_chosen_steps(model, key, steps):
    with model.generate(PROMPT, **GREEDY) as tracer:
        for _ in tracer.iter[key]:
            blocks(model)[1].output[:] *= 0
            model.lm_head.output = model.lm_head.output.roll(7, -1)

    def zero(call: int, output: Tensor) -> Tensor | None:
        return torch.zeros_like(output) if call in steps else None

    module: Any = model._model
    calls = iter(range(100))
    handle = module.lm_head.register_forward_hook(
        lambda m, a, output: output.roll(7, -1) if next(calls) in steps else None
    )
    try:
        expected, _ = plain(model, edit=(blocks(model)[1], zero))
    finally:
        handle.remove()
    assert torch.equal(tracer.result, expected)


def test_an_assignment_before_an_earlier_site_is_read_meets_its_own_step(model):
    values = []
    with model.generate(PROMPT, **GREEDY) as tracer:
        for step in tracer.iter[:3]:
            if step:
                blocks(model)[1].output = torch.zeros(1, 1, 32)
            values.append(blocks(model)[0].output)
    ids, (layer,) = plain(
        model,
        read=(blocks(model)[0],),
        edit=(blocks(model)[1], lambda call, output: torch.zeros_like(output) if call in (1, 2) else None),
    )
    assert torch.equal(tracer.result, ids)
    assert same(values, layer[:3])


def test_operations_of_each_step():
    model = LanguageModel(tiny_model("gpt2"), tokenizer=tiny_tokenizer())
    act, late = [], []
    with model.generate(PROMPT, **GREEDY) as tracer:
        for step in tracer.iter[:]:
            act.append(model.transformer.h[0].mlp.source.self_act_0.output)
            if step >= 2:  # first asked for when the function has run twice already
                late.append(model.transformer.h[1].mlp.source.self_c_proj_0.input)
    _, (plain_act, plain_late) = plain(model, read=(model.transformer.h[0].mlp.act, model.transformer.h[1].mlp.act))
    assert same(act, plain_act)
    assert same(late, plain_late[2:])


def test_an_operation_edited_in_one_step():
    model = LanguageModel(tiny_model("gpt2"), tokenizer=tiny_tokenizer())
    with model.generate(PROMPT, **GREEDY) as tracer:
        for _ in tracer.iter[2]:
            model.transformer.h[0].mlp.source.self_act_0.output = torch.ones(1, 1, 128)
    edit = (model.transformer.h[0].mlp.act, lambda call, output: torch.ones_like(output) if call == 2 else None)
    assert torch.equal(tracer.result, plain(model, edit=edit)[0])


def test_outside_a_loop_the_first_step_is_meant_and_next_goes_on(model):
    with model.generate(PROMPT, **GREEDY) as tracer:
        zero = blocks(model)[0].output
        tracer.next()
        one = blocks(model)[0].output
        assert tracer.next(step=2) is tracer
        three = blocks(model)[1].output
    _, (first, second) = plain(model, read=tuple(blocks(model)))
    assert same([zero, one, three], [first[0], first[1], second[3]])


def test_leaving_the_loop_leaves_the_model_in_its_step(model):
    with model.generate(PROMPT, **GREEDY) as tracer:
        for step in tracer.iter[:]:
            first = blocks(model)[0].output
            if step == 2:
                break
        second = blocks(model)[1].output
        rest = [(step, blocks(model)[1].output) for step in tracer.all() if step > 2]
    ids, (one, two) = plain(model, read=tuple(blocks(model)))
    assert same([first, second, *(value for _, value in rest)], [one[2], two[2], two[3], two[4]])
    assert [step for step, _ in rest] == [3, 4]
    assert torch.equal(tracer.result, ids)


def test_two_loops_one_after_the_other(model):
    with model.generate(PROMPT, **GREEDY) as tracer:
        values = [blocks(model)[0].output for _ in tracer.iter[:2]]
        values += [blocks(model)[0].output for _ in tracer.iter[2:]]
    assert same(values, plain(model, read=(blocks(model)[0],))[1][0])


@pytest.mark.parametrize("key", [slice(None), slice(0, 9), [0, 1, 2, 4], 4])
def test_an_end_of_text_token_ends_the_loop_and_the_code_after_it_runs(model, key):
    free, _ = plain(model)
    new = free[0, -STEPS:].tolist()
    at = next(i for i in range(STEPS) if new[i] == new[2])
    steps, after = [], False
    with model.generate(PROMPT, eos_token_id=new[2], **GREEDY) as tracer:
        for step in tracer.iter[key]:
            steps.append(step)
            model.lm_head.output
        after = True
    expected, _ = plain(model, eos_token_id=new[2])
    assert after
    assert torch.equal(tracer.result, expected)
    assert expected.shape[1] == free.shape[1] - STEPS + at + 1
    assert steps == ([] if key == 4 else list(range(at + 1)))


def test_next_beyond_the_end_and_reads_after_the_last_step_are_errors(model):
    with pytest.raises(nl.NotReachedError, match="Step 5 never came: the model made 5 steps"):
        with model.generate(PROMPT, **GREEDY) as tracer:
            tracer.next(5)
    with pytest.raises(nl.OutOfOrderError, match="already passed"), model.generate(PROMPT, **GREEDY) as tracer:
        for _ in tracer.iter[:]:
            pass
        blocks(model)[0].output


def test_a_read_does_not_run_into_the_next_step(model):
    with pytest.raises(nl.OutOfOrderError, match=r"h\[0\]|layers\[0\].*in step 1"):
        with model.generate(PROMPT, **GREEDY) as tracer:
            for step in tracer.iter[:]:
                blocks(model)[1].output
                if step == 1:
                    blocks(model)[0].output


def test_a_cache_keeps_every_step_and_an_edit_holds_in_each(model):
    block = blocks(model)[0]._dotted

    def halve(m: Any) -> None:
        m.get(block).output = m.get(block).output / 2

    edited = model.edit(halve)
    last = []
    with edited.generate(PROMPT, **GREEDY) as tracer:
        cache = tracer.cache(modules=[blocks(edited)[1]])
        for _ in tracer.iter[:]:
            last.append(edited.lm_head.output)
    ids, (second, head) = plain(
        model, read=(blocks(model)[1], model.lm_head), edit=(blocks(model)[0], lambda call, output: output / 2)
    )
    kept = cache[blocks(model)[1]._dotted]
    assert torch.equal(tracer.result, ids)
    assert same(last, head)
    assert same([kept[number].output for number in range(STEPS)], second)


def test_an_edit_cannot_go_from_step_to_step(model):
    edited = model.edit(lambda m: m.lm_head.next().output)
    with pytest.raises(nl.TraceStateError, match="An edit holds for every step"), edited.generate(PROMPT, **GREEDY):
        pass


def test_validation_of_an_assignment_in_a_step(model):
    with pytest.raises(nl.ValidationError, match="lm_head"):
        with model.generate(PROMPT, validate=True, **GREEDY) as tracer:
            for step in tracer.iter[:]:
                model.lm_head.output = torch.zeros(1, 1 if step else len(model.tokenizer(PROMPT).input_ids), 257 + step)


def test_gradients_stay_off_on_the_models_side_alone(model):
    with torch.enable_grad(), model.generate(PROMPT, **GREEDY) as tracer:
        for _ in tracer.iter[:2]:
            assert torch.is_grad_enabled()
            assert not model.lm_head.output.requires_grad
            assert torch.is_grad_enabled()


def test_sampling_with_a_seed_is_that_of_plain_generate(model):
    options = {"do_sample": True, "top_k": 20, "temperature": 2.0}
    torch.manual_seed(3)
    values = []
    with model.generate(PROMPT, **{**GREEDY, **options}) as tracer:
        for _ in tracer.iter[:]:
            values.append(model.lm_head.output)
    torch.manual_seed(3)
    ids, (head,) = plain(model, read=(model.lm_head,), **options)
    torch.manual_seed(4)
    other, _ = plain(model, **options)
    assert torch.equal(tracer.result, ids)
    assert same(values, head)
    assert not torch.equal(ids, other)


def test_beams_are_rows_of_the_batch(model):
    values = []
    with model.generate(PROMPT, num_beams=2, **GREEDY) as tracer:
        for _ in tracer.iter[:]:
            values.append(blocks(model)[1].output)
    ids, (layer,) = plain(model, read=(blocks(model)[1],), num_beams=2)
    assert torch.equal(tracer.result, ids)
    assert same(values, layer)
    assert values[1].shape[0] == 2


def test_prompts_of_different_lengths_generate_what_each_generates_alone(model):
    prompts = [PROMPT, "a longer prompt than that"]
    with model.generate(prompts, **GREEDY) as tracer:
        last = [model.lm_head.output[:, -1] for _ in tracer.iter[:]]
    ids, (head,) = plain(model, prompts, read=(model.lm_head,))
    assert torch.equal(tracer.result, ids)
    assert same(last, [value[:, -1] for value in head])
    alone, _ = plain(model, prompts[0])
    assert ids[0, -STEPS:].tolist() == alone[0, -STEPS:].tolist()


def test_ids_and_mappings_are_prompts_too(model):
    encoded = model.tokenizer(PROMPT, return_tensors="pt")
    expected, _ = plain(model)
    for prompt in (encoded.input_ids, encoded.input_ids[0].tolist(), dict(encoded)):
        with model.generate(prompt, **GREEDY) as tracer:
            pass
        assert torch.equal(tracer.result, expected)
    with model.generate(input_ids=encoded.input_ids, **GREEDY) as tracer:
        pass
    assert torch.equal(tracer.result, expected)


def test_transformers_output_object_is_given_as_it_is(model):
    with model.generate(PROMPT, return_dict_in_generate=True, output_scores=True, **GREEDY) as tracer:
        pass
    assert torch.equal(tracer.result.sequences, plain(model)[0])
    assert len(tracer.result.scores) == STEPS


def test_progress_counts_the_steps(model, capsys):
    with model.generate(PROMPT, progress=True, **GREEDY) as tracer:
        for _ in tracer.iter[:2]:
            pass
    assert f"{STEPS}/{STEPS}" in capsys.readouterr().err
    assert torch.equal(tracer.result, plain(model)[0])
    assert not model._model._forward_hooks


def test_stopping_in_a_step_takes_the_model_down(model):
    values = []
    with model.generate(PROMPT, progress=True, **GREEDY) as tracer:
        for step in tracer.iter[:]:
            values.append(blocks(model)[0].output)
            if step == 1:
                tracer.stop()
    assert same(values, plain(model, read=(blocks(model)[0],))[1][0][:2])
    assert not model._model._forward_hooks
    assert torch.equal(model._model.generate(**model.tokenizer(PROMPT, return_tensors="pt"), **GREEDY), plain(model)[0])


def test_a_generation_needs_a_prompt_and_a_model_that_generates(model):
    with pytest.raises(PromptError, match=r"model\.generate"), model.generate(max_new_tokens=3):
        pass
    with pytest.raises(NotImplementedError, match="generate\\(remote"):
        model.generate(PROMPT, remote=True)
    with pytest.raises(PromptError, match="no method 'generate'"):
        LanguageModel(Fixed(tiny_model()), tokenizer=tiny_tokenizer()).generate(PROMPT)


def test_an_argument_that_generate_does_not_take_is_refused_by_it(model):
    with pytest.raises(ValueError, match="max_new_token"), model.generate(PROMPT, max_new_token=3) as tracer:
        tracer.result


def test_the_first_generation_loads_the_weights(tmp_path):
    made = tiny_model("llama")
    made.save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    model = LanguageModel(tmp_path)
    assert not model.dispatched
    layer = model.model.layers[1]
    with model.generate(PROMPT, **GREEDY) as tracer:
        values = [layer.output for _ in tracer.iter[:]]
    ids, (expected,) = plain(model, read=(model.model.layers[1],))
    assert model.dispatched
    assert torch.equal(tracer.result, ids)
    assert torch.equal(ids, plain(LanguageModel(made, tokenizer=tiny_tokenizer()))[0])
    assert same(values, expected)


def test_200_generations_leave_nothing_behind():
    model = LanguageModel(tiny_model("gpt2"), tokenizer=tiny_tokenizer())

    def generation() -> None:
        with model.generate(PROMPT, max_new_tokens=3, do_sample=False) as tracer:
            for _ in tracer.iter[:]:
                model.transformer.h[0].mlp.source.self_act_0.output
                model.transformer.h[1].output

    for _ in range(10):
        generation()
    gc.collect()
    gc.disable()
    try:
        tensors = sum(isinstance(thing, Tensor) for thing in gc.get_objects())
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(200):
            generation()
        assert sum(isinstance(thing, Tensor) for thing in gc.get_objects()) <= tensors
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000
    finally:
        gc.enable()
