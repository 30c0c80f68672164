"""Traits stay within what a saved notebook can bear, and say what was left out."""

from __future__ import annotations

import msgspec
import pytest
import torch

from nnsight_lab import Lab, NNsight
from nnsight_lab.experiments import Zero
from nnsight_lab.widgets import fitting, wire
from nnsight_lab.widgets.fitting import FIT, SHARES, size
from nnsight_lab.widgets.views.pictures import snapshot

TARGET = wire.Target("h.0")


def operation(line):
    return wire.OperationView(f"op_{line}", "call", line, 0, line, 4, f"source.op_{line}")


def block(rows, text="x = 1" * 20):
    spans = (wire.Span("plain", text),)
    return wire.ListingBlock(
        site="h.0",
        title="f",
        rows=(spans,) * rows,
        operations=tuple(operation(line) for line in range(rows - 1)),
        variables=tuple(wire.Variable(line, 0, 1, "x", TARGET) for line in range(rows - 1)),
    )


def prompt(tokens):
    return wire.PromptView(text=" word" * tokens, tokens=tuple(wire.TokenText(i, " word") for i in range(tokens)))


def entry(number):
    return wire.HistoryEntry(f"r{number}", "run", "zero " * 20, "Paris " * 20)


def row(number):
    return wire.CapturedView(wire.Target(f"h.{number}" + "x" * 200), "label", ())


LARGE = {
    "_view": wire.View(base=prompt(5000), source=prompt(5000)),
    "_listing": wire.ListingView("h.0", (block(3000), block(50))),
    "_answer": wire.Answer("r1", "headline", captured=tuple(map(row, range(2000)))),
    "_history": wire.History(tuple(map(entry, range(1000)))),
    "_code": wire.CodeView("x = 1\n" * 20_000),
    "_snapshot": wire.Snapshot(TARGET, "x", (1,), 1, 1, 0.0, 1.0, "A" * 200_000),
}


def test_the_shares_are_no_more_than_the_budget():
    assert sum(SHARES.values()) < fitting.BUDGET_BYTES
    assert set(SHARES) == set(FIT) == set(wire.TRAITS) - {"_status"}


@pytest.mark.parametrize("name", LARGE)
def test_what_is_too_long_is_cut_to_its_share(name):
    assert size(LARGE[name]) > SHARES[name]
    fitted = FIT[name](LARGE[name])
    assert fitted is None or size(fitted) <= SHARES[name]
    if fitted is not None:
        assert msgspec.convert(msgspec.to_builtins(fitted), wire.TRAITS[name]) == fitted


@pytest.mark.parametrize(
    "value",
    [
        wire.View(base=prompt(8)),
        wire.ListingView("h.0", (block(20),)),
        wire.Answer("r1", "headline", captured=(row(0),)),
        wire.History((entry(0),)),
        wire.CodeView("x = 1"),
        wire.Snapshot(TARGET, "x", (1,), 1, 1, 0.0, 1.0, "AAAA"),
    ],
)
def test_what_fits_stays_as_it_is(value):
    name = next(name for name, kind in wire.TRAITS.items() if isinstance(value, kind))
    assert FIT[name](value) == value


def test_a_listing_is_cut_at_the_end_of_its_longest_block_with_a_note():
    long, short = fitting.fit_listing(LARGE["_listing"]).blocks
    assert short == block(50)
    assert "too long" in long.rows[-1][0].text
    shown = len(long.rows) - 1
    # `rows[0]` is the `def` line, so the last of `shown` rows is line `shown - 2`.
    assert [one.line for one in long.operations] == list(range(shown - 1))
    assert long.variables[-1].line == shown - 2


def test_the_latest_of_the_history_are_kept():
    kept = fitting.fit_history(LARGE["_history"]).entries
    assert kept == LARGE["_history"].entries[-len(kept) :]
    assert len(kept) > 10


def test_an_answer_and_code_say_that_they_were_cut_and_where_the_whole_is():
    assert "lab.result" in fitting.fit_answer(LARGE["_answer"]).notes[-1]
    assert "lab.code()" in fitting.fit_code(LARGE["_code"]).error


def test_a_long_prompt_keeps_its_first_tokens():
    view = fitting.fit_view(LARGE["_view"])
    assert [token.id for token in view.base.tokens] == list(range(200))
    assert view.base.text is None


def test_a_view_of_many_steps_is_cut_in_its_prompts_only():
    steps = tuple(wire.StepView(Zero(f"h.{number}"), "zero", "all") for number in range(40))
    view = wire.View(steps=steps, base=prompt(5000))
    fitted = fitting.fit_view(view)
    assert fitted.steps == steps
    assert size(fitted) <= SHARES["_view"]


def test_the_picture_of_a_large_tensor_fits():
    tensor = torch.randn(1024, 3072, generator=torch.Generator().manual_seed(0))
    drawn = snapshot(wire.Target("transformer.h.11.mlp.source.self_act_0"), "h.11 self_act_0", tensor)
    assert FIT["_snapshot"](drawn) is drawn


def test_a_trait_that_nothing_fits_of_is_empty(monkeypatch):
    monkeypatch.setitem(FIT, "_snapshot", lambda view: None)
    lab = Lab(NNsight(torch.nn.ReLU()), torch.randn(4, 4), selection="")
    lab.run()
    assert lab._session.snapshot is not None
    assert lab._snapshot == {}
