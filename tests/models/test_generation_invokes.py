"""Invoke blocks over a generation: each block's rows of every step equal the plain model's generation of its prompt.

Expected values come from plain `generate` of one prompt at a time, with hand-written hooks that count the forwards.
Rows are padded on the left, so values differ by the rounding of other shapes.
"""

from __future__ import annotations

import gc
import itertools
import resource
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import nnsight_lab as nl
from nnsight_lab import LanguageModel
from nnsight_lab.models import PromptError
from tests.models.test_encoder_decoder import made
from tests.models.test_generation import GREEDY, STEPS, blocks, plain
from tests.models.tiny import tiny_model, tiny_tokenizer

SHORT, LONG = "rome", "once upon a time"


@pytest.fixture(params=["gpt2", "llama"])
def model(request: Any) -> LanguageModel:
    return LanguageModel(tiny_model(request.param), tokenizer=tiny_tokenizer())


def close(mine: list[Tensor], theirs: list[Tensor]) -> bool:
    return len(mine) == len(theirs) > 0 and all(
        torch.allclose(one[:, -two.shape[1] :], two, atol=2e-5) for one, two in zip(mine, theirs, strict=True)
    )


def new_tokens(ids: Tensor) -> list[int]:
    return ids[0, -STEPS:].tolist()


def test_blocks_before_generate_run_as_its_steps(model):
    layer = blocks(model)[1]
    with model.trace() as tracer:
        with tracer.invoke(SHORT):
            short = [layer.output for _ in tracer.iter[:]]
        with tracer.invoke(LONG):
            long = []
            for _ in tracer.iter[:]:
                long.append(layer.output)
        ids = model.generate(**GREEDY)
    for row, prompt, values in ((0, SHORT, short), (1, LONG, long)):
        expected, (seen,) = plain(model, prompt, read=(layer,))
        assert ids[row : row + 1, -STEPS:].tolist() == expected[:, -STEPS:].tolist()
        assert close(values, seen)


def test_an_edit_of_one_block_in_one_step_concerns_its_row_alone(model):
    layer = blocks(model)[0]

    def at_two(number: int, output: Tensor) -> Tensor | None:
        return output.flip(-1) * 9 if number == 2 else None

    with model.generate(**GREEDY) as tracer:
        with tracer.invoke(SHORT):
            for _ in tracer.iter[2]:
                layer.output = layer.output.flip(-1) * 9
            short = tracer.result
        with tracer.invoke(LONG):
            long = model.generator.output
    edited, _ = plain(model, SHORT, edit=(layer, at_two))
    assert new_tokens(short) == new_tokens(edited)
    assert new_tokens(long) == new_tokens(plain(model, LONG)[0])
    assert new_tokens(edited) != new_tokens(plain(model, SHORT)[0])
    assert tracer.result.shape == (2, long.shape[1])


def test_blocks_go_through_different_steps(model):
    layer = blocks(model)[1]
    seen: dict[str, Any] = {}
    with model.trace() as tracer:
        with tracer.invoke(SHORT):
            for step in tracer.iter[1:3]:
                seen[f"short {step}"] = layer.output
        with tracer.invoke(LONG):
            seen["long 0"] = layer.output
            tracer.next(3)
            seen["long 3"] = layer.output
        with tracer.invoke():
            seen["all"] = [layer.output.shape[0] for _ in tracer.iter[[0, 4]]]
        model.generate(**GREEDY)
    _, (short,) = plain(model, SHORT, read=(layer,))
    _, (long,) = plain(model, LONG, read=(layer,))
    assert close([seen["short 1"], seen["short 2"]], short[1:3])
    assert close([seen["long 0"], seen["long 3"]], [long[0], long[3]])
    assert seen["all"] == [2, 2]


def test_modules_count_their_own_next_in_each_block(model):
    layer = blocks(model)[1]
    with model.trace() as tracer:
        with tracer.invoke(SHORT):
            short = [layer.output, layer.next().output, layer.next().output]
        with tracer.invoke(LONG):
            long = [layer.output, layer.next(2).output]
        model.generate(**GREEDY)
    _, (one,) = plain(model, SHORT, read=(layer,))
    _, (two,) = plain(model, LONG, read=(layer,))
    assert close(short, one[:3])
    assert close(long, [two[0], two[2]])


def test_what_a_step_did_not_meet_is_told_to_the_block_that_asked(model):
    first, second = blocks(model)[0], blocks(model)[1]
    told = []
    with model.trace() as tracer:
        with tracer.invoke(SHORT):
            second.output
            try:
                first.output  # passed in this step
            except nl.OutOfOrderError as error:
                told.append((error, traceback.extract_tb(error.__traceback__)))
            for _ in tracer.iter[2]:
                here = first.output
        with tracer.invoke(LONG):
            there = [first.output for _ in tracer.iter[:]]
        ids = model.generate(**GREEDY)
    _, (short,) = plain(model, SHORT, read=(first,))
    assert len(told) == 1
    assert any(entry.line == "first.output  # passed in this step" for entry in told[0][1])
    assert close([here], [short[2]])
    assert len(there) == STEPS == ids.shape[1] - 16


def test_an_assignment_that_its_step_never_met_is_an_error_of_its_block():
    model = LanguageModel(tiny_model("gpt2"), tokenizer=tiny_tokenizer())
    told = []
    with model.trace() as tracer:
        with tracer.invoke(SHORT):
            values = [blocks(model)[1].output for _ in tracer.iter[:]]
        with tracer.invoke(LONG):
            try:
                for _ in tracer.iter[1]:
                    blocks(model)[0].source.self_crossattention_0.output = 0
                blocks(model)[1].next(2).output
            except nl.NotReachedError as error:
                told.append(str(error))
        model.generate(**GREEDY)
    assert len(told) == 1
    assert "self_crossattention_0" in told[0]
    assert len(values) == STEPS


def test_one_row_that_ends_early_leaves_the_others_going(model):
    def pairs() -> Iterator[tuple[str, str, list[int], int]]:
        alone = {prompt: new_tokens(plain(model, prompt)[0]) for prompt in ("rome", "a", "once upon", "z y x", "1 2")}
        for one, other in itertools.permutations(alone, 2):
            for at in range(1, STEPS - 1):
                token = alone[one][at]
                if token not in alone[one][:at] and token not in alone[other]:
                    yield one, other, alone[one][: at + 1], token

    one, other, until, eos = next(pairs())
    with model.trace() as tracer:
        with tracer.invoke(one):
            steps = list(tracer.iter[:])
        with tracer.invoke(other):
            pass
        together = model.generate(**GREEDY, eos_token_id=eos, pad_token_id=eos)
    assert steps == list(range(STEPS))  # the model goes on for the other row
    assert new_tokens(together) == [*until, *[eos] * (STEPS - len(until))]
    assert new_tokens(together[1:]) == new_tokens(plain(model, other)[0])


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_encoder_decoder_models(kind):
    model = LanguageModel(made(kind), tokenizer=tiny_tokenizer())
    with torch.no_grad(), model.trace() as tracer:
        with tracer.invoke("hello"):
            pass
        with tracer.invoke("good morning to you"):
            logits = [model.lm_head.output for _ in tracer.iter[:]]
        ids = model.generate(max_new_tokens=4, do_sample=False)
    for row, prompt in enumerate(("hello", "good morning to you")):
        encoded = model.tokenizer(prompt, return_tensors="pt")
        expected = model._model.generate(**encoded, max_new_tokens=4, do_sample=False)
        assert ids[row].tolist() == expected[0].tolist()
    first = model._model(**encoded, decoder_input_ids=ids[1:, :1]).logits
    assert torch.allclose(logits[0], first, atol=2e-5)


def test_sampling_with_a_seed_equals_plain_generate_of_the_batch(model):
    options = {"max_new_tokens": STEPS, "do_sample": True, "top_k": 20}
    torch.manual_seed(3)
    expected, _ = plain(model, [SHORT, LONG], **options)
    torch.manual_seed(3)
    with model.trace() as tracer:
        for prompt in (SHORT, LONG):
            with tracer.invoke(prompt):
                pass
        ids = model.generate(**options)
    assert torch.equal(ids, expected)


@pytest.mark.parametrize("option", ["num_beams", "num_return_sequences"])
def test_several_rows_for_each_prompt_are_refused_for_blocks(model, option):
    with pytest.raises(nl.InvokeError, match=f"{option}=2"), model.trace() as tracer:
        with tracer.invoke(SHORT):
            pass
        with tracer.invoke(LONG):
            pass
        model.generate(**{**GREEDY, "do_sample": option != "num_beams"}, **{option: 2})


def test_one_block_may_use_beams(model):
    with model.trace() as tracer:
        with tracer.invoke(SHORT):
            rows = blocks(model)[0].output.shape[0]
        ids = model.generate(**GREEDY, num_beams=3)
    assert rows == 3
    assert torch.equal(ids, plain(model, SHORT, num_beams=3)[0])


def test_generate_twice_or_after_the_result_is_refused(model):
    with model.trace() as tracer:
        with tracer.invoke(SHORT):
            pass
        tracer.result
        with pytest.raises(PromptError, match="nothing to run"), model.generate(**GREEDY):
            pass


def test_blocks_whose_source_cannot_be_found_say_so(model):
    code = (
        "with model.trace() as tracer:\n"
        "    with tracer.invoke('rome'):\n"
        "        value = model.output\n"
        "    ids = model.generate(max_new_tokens=2)\n"
    )
    with pytest.raises(nl.InvokeError, match=r"open model\.generate"), pytest.warns(UserWarning, match="source"):
        exec(code, {"model": model})
    code = (
        "with model.generate(max_new_tokens=2, do_sample=False) as tracer:\n"
        "    with tracer.invoke('rome'):\n"
        "        seen = [layer.output.shape[1] for _ in tracer.iter[:]]\n"
        "        ids = tracer.result\n"
    )
    names: dict[str, Any] = {"model": model, "layer": blocks(model)[0]}
    with pytest.warns(UserWarning, match="source"):
        exec(code, names)
    assert names["seen"] == [len("rome"), 1]
    assert torch.equal(names["ids"], plain(model, "rome", max_new_tokens=2)[0])


def test_a_block_needs_a_prompt_here_too(model):
    with pytest.raises(nl.InvokeError, match="no tensor with a batch"), model.generate(**GREEDY) as tracer:
        with tracer.invoke(attention_mask=None):
            pass


def test_the_model_is_as_before(model):
    before, _ = plain(model, LONG)
    with model.trace() as tracer:
        with tracer.invoke(SHORT):
            for _ in tracer.iter[:]:
                blocks(model)[0].output[:] = 0
        model.generate(**GREEDY)
    assert torch.equal(plain(model, LONG)[0], before)


def test_200_generations_of_blocks_leave_nothing_behind():
    model = LanguageModel(tiny_model("gpt2"), tokenizer=tiny_tokenizer())

    def generation() -> None:
        with model.trace() as tracer:
            with tracer.invoke(SHORT):
                for _ in tracer.iter[:]:
                    model.transformer.h[1].output[:] = 0
            with tracer.invoke(LONG):
                model.transformer.h[0].mlp.source.self_act_0.output
            model.generate(max_new_tokens=2, do_sample=False)

    for _ in range(5):
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
