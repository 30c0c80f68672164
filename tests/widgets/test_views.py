"""Values as the page sees them: pooled, peeked at, sliced, and listings with what a forward showed."""

from __future__ import annotations

import base64
import json

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from nnsight_lab import NNsight, demo
from nnsight_lab.experiments import KL, Recipe, Zero, run
from nnsight_lab.experiments.observation import TensorInside, observe, summarise
from nnsight_lab.widgets import wire
from nnsight_lab.widgets.views import answer_view, label_of, listing_view, peek, picture, sites_of, snapshot, table_csv
from nnsight_lab.widgets.views.pooling import colour_range, count_for, odd_counts, pooled

NAN, INF = float("nan"), float("inf")
TARGET = wire.Target("h.0")


# Pooling


def test_pooling_by_hand():
    cells = torch.tensor([[1.0, -5.0, 2.0], [3.0, 4.0, -1.0]])
    # Two columns of three: the first stands for one cell, the second for two.
    by_hand = {"min": [[1, -5], [3, -1]], "max": [[1, 2], [3, 4]], "mean": [[1, -1.5], [3, 1.5]],
               "extreme": [[1, -5], [3, 4]]}  # fmt: skip
    for pooling, expected in by_hand.items():
        assert pooled(cells, 2, 2, pooling).tolist() == expected


def one_by_one(cells, rows, columns, reduce):
    height, width = cells.shape
    return np.array([
        [
            reduce(cells[i * height // rows : (i + 1) * height // rows, j * width // columns : (j + 1) * width // columns])
            for j in range(columns)
        ]
        for i in range(rows)
    ])  # fmt: skip


def extreme(part):
    if np.isnan(part).any():
        return NAN
    return part.ravel()[np.abs(part).ravel().argmax()]


@given(st.data())
def test_each_entry_is_made_of_the_cells_that_it_stands_for(data):
    height, width = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    rows, columns = data.draw(st.integers(1, height)), data.draw(st.integers(1, width))
    # Of two that are as far from zero either may be kept, so that no number here has its negative beside it.
    numbers = st.integers(-99, 100).filter(lambda n: n % 3 != 0 or n >= 0).map(lambda n: n + 0.25)
    entry = numbers | st.sampled_from([NAN, INF])
    cells = np.array(data.draw(st.lists(entry, min_size=height * width, max_size=height * width)), np.float32)
    cells = cells.reshape(height, width)
    reductions = {"min": np.min, "max": np.max, "extreme": extreme, "mean": lambda part: part.mean(dtype=np.float64)}
    for pooling, reduce in reductions.items():
        found = pooled(torch.from_numpy(cells), rows, columns, pooling)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, one_by_one(cells, rows, columns, reduce), rtol=1e-5, err_msg=pooling)


@pytest.mark.parametrize(
    ("size", "pixels", "count"), [(10, 100, 10), (10, 10, 10), (100, 60, 50), (97, 60, 60), (7, 0, 1), (5, -2, 1)]
)
def test_equal_pieces_are_taken_where_they_cost_at_most_half_of_the_pixels(size, pixels, count):
    assert count_for(size, pixels) == count


def test_what_is_not_finite_is_counted():
    assert odd_counts(torch.tensor([NAN, INF, -INF, INF, 3.0])) == wire.Counts(1, 2, 1)
    assert odd_counts(torch.tensor([INF, -INF])) == wire.Counts(0, 1, 1)
    # A sum that overflows is no odd cell.
    assert odd_counts(torch.tensor([3e38, 3e38])) == wire.Counts()


def test_colours_are_symmetric_and_tell_how_many_cells_lie_beyond():
    cells = torch.cat([torch.linspace(-1, 1, 9_998), torch.tensor([50.0, -40.0])])
    colours = colour_range(cells, wire.Counts(), 0.99)
    assert colours.low == -colours.high
    assert 0.9 < colours.high < 40
    assert (colours.smallest, colours.largest) == (-40, 50)
    assert colours.beyond_high == int((cells > colours.high).sum())
    assert colours.beyond_low == int((cells < colours.low).sum())


def test_colours_without_a_finite_cell_are_a_range_all_the_same():
    assert colour_range(torch.tensor([NAN, INF]), wire.Counts(1, 1, 0), 0.99) == wire.ColourRange(-1.0, 1.0)


# Pictures


def ask(**fields):
    return wire.AskTensor("1", "r1", TARGET, **fields)


def test_a_window_is_pooled_and_the_colours_are_those_of_the_whole():
    tensor = torch.arange(24.0).reshape(1, 4, 6)
    request = ask(window=wire.Window(2, 4, 1, 5), height=1, width=2, pooling="max")
    shown, cells = picture(request, tensor, "x")
    # Rows 2 and 3, columns 1 to 4, of which two stand for each entry.
    assert cells.tolist() == [[20.0, 22.0]]
    assert shown.colours.largest == 23
    assert (shown.rows, shown.columns, shown.shape) == (1, 2, (1, 4, 6))


def test_axes_are_turned_and_the_others_have_an_index():
    tensor = torch.arange(120.0).reshape(2, 3, 4, 5)
    request = ask(slice=wire.Slice(3, 1, (1, 2)), height=9, width=9)
    shown, cells = picture(request, tensor, "x")
    np.testing.assert_array_equal(cells, tensor[1, :, 2, :].T.numpy())
    assert shown.slice == wire.Slice(3, 1, (1, 2))


@pytest.mark.parametrize(
    ("tensor", "cells"),
    [
        (torch.tensor(3), [[3.0]]),
        (torch.tensor([True, False]), [[1.0, 0.0]]),
        (torch.tensor([3 + 4j]), [[5.0]]),
        (torch.tensor([[0.5, NAN]], dtype=torch.float16), [[0.5, NAN]]),
        (torch.tensor([[-INF, 2.0]], dtype=torch.bfloat16), [[-INF, 2.0]]),
    ],
)
def test_any_dtype_and_rank_has_a_picture(tensor, cells):
    shown, found = picture(ask(), tensor, "x")
    np.testing.assert_array_equal(found, np.array(cells, np.float32))
    assert shown.dtype == str(tensor.dtype).removeprefix("torch.")


def test_a_huge_value_is_reduced_to_the_screen():
    tensor = torch.zeros(4096, 16384)
    tensor[4000, 9] = -7
    shown, cells = picture(ask(height=300, width=500), tensor, "x")
    assert shown.rows <= 300
    assert shown.columns <= 500
    assert cells.shape == (shown.rows, shown.columns)
    assert cells[4000 * shown.rows // 4096, 9 * shown.columns // 16384] == -7
    assert np.count_nonzero(cells) == 1


def test_a_table_keeps_half_precision_and_what_is_not_finite():
    request = wire.AskTable("1", "r1", TARGET)
    table = table_csv(request, torch.tensor([[0.1, NAN], [INF, -2]], dtype=torch.float16), "h.0 act")
    _, *rows = (line.split(",") for line in table.csv.splitlines())
    found = np.array([row[1:] for row in rows], np.float16)
    np.testing.assert_array_equal(found, np.array([[0.1, NAN], [INF, -2]], np.float16))


def test_a_snapshot_is_small_and_holds_the_extremes():
    tensor = torch.zeros(1, 400, 3000)
    tensor[0, 399, 2999] = 9
    found = snapshot(TARGET, "x", tensor)
    cells = np.frombuffer(base64.b64decode(found.data), "<f4").reshape(found.rows, found.columns)
    assert found.rows <= 48
    assert found.columns <= 192
    assert cells[-1, -1] == 9


# Peeks


def seen(value):
    """A value as an observation of a module that gives it would see it."""

    class Gives(nn.Module):
        def forward(self, x):
            return value

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Gives()

        def forward(self, x):
            self.inner(x)
            return x

    found = observe(NNsight(Outer()), Recipe(metric=None), ["inner"], base=torch.ones(1))
    (sighting,) = found.sightings.values()
    return sighting.seen


def peeked(value, **target):
    request = wire.AskPeek("1", wire.Target("inner", **target))
    return peek(request, "inner", seen(value), 1)


def test_a_peek_of_nan_tells_the_statistics_of_the_others():
    shown, cells = peeked(torch.tensor([[1.0, NAN], [3.0, INF]]))
    assert shown.odd == wire.Counts(1, 1, 0)
    assert shown.statistics == wire.Statistics(1.0, 3.0, 2.0, 1.0, pytest.approx(10**0.5))
    np.testing.assert_array_equal(cells, np.array([[1, NAN], [3, INF]], np.float32))


def test_a_peek_of_nothing_finite_has_no_statistics():
    shown, cells = peeked(torch.tensor([[NAN, NAN]]))
    assert shown.statistics == wire.Statistics(None, None, None, None, None)
    assert np.isnan(cells).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_statistics_of_half_precision_do_not_overflow(dtype):
    shown, _ = peeked(torch.full((100, 100), 300.0, dtype=dtype))
    assert shown.tensors[0].dtype == str(dtype).removeprefix("torch.")
    assert (shown.statistics.mean, shown.statistics.std) == (300, 0)
    assert shown.statistics.norm == pytest.approx(30_000)


def test_a_peek_of_a_tuple_shows_its_structure_and_its_first_tensor_or_the_one_chosen():
    value = (torch.tensor([[1.0, 2.0]]), None, {"k": torch.tensor([[7]])})
    shown, cells = peeked(value)
    assert shown.structure.splitlines() == ["tuple of 3", "  0: [1,2] f32", "  1: None", "  2: dict of 1",
                                            "    k: [1,1] i64"]  # fmt: skip
    assert [facts.element for facts in shown.tensors] == [(0,), (2, "k")]
    assert cells.tolist() == [[1.0, 2.0]]
    assert peeked(value, element=(2, "k"))[1].tolist() == [[7.0]]


@pytest.mark.parametrize(
    ("value", "text"), [(None, "None"), (3, "3"), ("eager", "'eager'"), (True, "True"), ((), None)]
)
def test_a_peek_of_no_tensor_is_its_text(value, text):
    shown, cells = peeked(value)
    assert shown.structure == (text or "tuple of 0")
    assert (shown.tensors, shown.statistics, cells) == ((), None, None)


def test_a_peek_of_an_empty_tensor_has_no_picture():
    shown, cells = peeked(torch.zeros(0, 3))
    assert shown.tensors[0].shape == (0, 3)
    assert cells is None


def test_a_peek_of_what_was_not_computed_says_why():
    request = wire.AskPeek("1", TARGET)
    shown, cells = peek(request, "h.0", None, 0, "model.h[0].output was never reached: the branch was not taken.")
    assert shown.reason == "the branch was not taken."
    assert cells is None


def test_a_peek_is_a_small_picture():
    shown, cells = peeked(torch.zeros(500, 700))
    assert cells.shape == (shown.rows, shown.columns)
    assert shown.rows <= 24
    assert shown.columns <= 64


def test_long_values_are_told_in_short():
    assert len(summarise("x" * 500)) <= 60
    structure = seen(list(range(100))).structure.splitlines()
    assert structure[-1] == "  … 88 more"
    assert len(structure) == 14


# Observations


@pytest.fixture(scope="module")
def model():
    return demo.load()


def test_what_is_seen_is_what_plain_hooks_see(model):
    sites = ["transformer.h.3.mlp.act", "transformer.h.7", "lm_head"]
    caught = {}
    hooks = [
        model._model.get_submodule(site).register_forward_hook(
            lambda module, args, output, site=site: caught.__setitem__(site, output)
        )
        for site in sites
    ]
    try:
        with torch.no_grad():
            model._model(**model.tokenizer(demo.EIFFEL, return_tensors="pt"))
    finally:
        for hook in hooks:
            hook.remove()
    looked = observe(model, Recipe(base=demo.EIFFEL), sites)
    for place, sighting in looked.sightings.items():
        expected = caught[place.site]
        expected = expected[0] if isinstance(expected, tuple) else expected
        (tensor,) = sighting.seen.kept.values()
        assert sighting.calls == 1
        if place.site != "lm_head":
            torch.testing.assert_close(tensor, expected)
        else:
            torch.testing.assert_close(tensor[:, -1], expected[:, -1])


def test_an_edited_forward_is_what_is_seen(model):
    site = "transformer.h.3.mlp"
    looked = observe(model, Recipe(base=demo.EIFFEL, steps=[Zero(site)]), [site, f"{site}.act"])
    edited, before = (sighting.seen.kept[()] for sighting in looked.sightings.values())
    assert not edited.any()
    assert before.any()


def test_what_the_budget_has_no_room_for_is_told_and_not_kept(model):
    sites = ["transformer.h.3.mlp.act", "transformer.h.4.mlp.act"]
    size = 4 * len(model.tokenizer(demo.EIFFEL)["input_ids"]) * model._model.config.n_embd * 4
    one, other = observe(model, Recipe(base=demo.EIFFEL), sites, keep=size).sightings.values()
    assert [len(one.seen.kept), len(other.seen.kept)] == [1, 0]
    assert one.seen.tensors == other.seen.tensors
    assert one.seen.tensors[0] == TensorInside((), one.seen.kept[()].shape, "float32")


class Thrice(nn.Module):
    def __init__(self):
        super().__init__()
        self.twice = nn.Linear(1, 1, bias=False)
        self.never = nn.Identity()
        nn.init.constant_(self.twice.weight, 2.0)

    def forward(self, x):
        for _ in range(3):
            x = self.twice(x)
        return x


def test_the_latest_call_is_seen_and_others_where_they_are_asked_for():
    looked = observe(NNsight(Thrice()), Recipe(metric=None), ["twice", "never"], base=torch.ones(1, 1), calls=(0, 1))
    twice, never = looked.sightings.values()
    assert twice.calls == 3
    assert float(twice.seen.kept[()]) == 8
    assert {call: float(one.kept[()]) for call, one in twice.by_call.items()} == {0: 2.0, 1: 4.0}
    assert (never.calls, never.seen) == (0, None)
    assert "never reached" in never.reason


# Listings and answers


def test_a_listing_tells_what_the_forward_showed():
    model = NNsight(Thrice())
    sites, functions = sites_of(model, "")
    looked = observe(model, Recipe(metric=None), sites, functions=functions, base=torch.ones(1, 1))
    (block,) = listing_view(model, "", observation=looked).blocks
    by_label = {operation.label: operation for operation in block.operations}
    call = by_label["self_twice_0"]
    assert (call.calls, call.summary, call.module, call.can_step_into) == (3, "[1,1] f32", "twice", False)
    text = ["".join(span.text for span in row) for row in block.rows]
    assert text[0].strip() == "def forward(self, x):"
    assert "self.twice(x)" in text[call.line + 1]
    (without,) = listing_view(model, "").blocks
    assert all(operation.calls is None and operation.summary == "" for operation in without.operations)


@pytest.mark.parametrize(
    ("target", "label"),
    [
        (wire.Target("transformer.h.11.mlp.source.self_act_0"), "self_act_0"),
        (wire.Target("transformer.h.11", io="input"), " input"),
        (wire.Target("transformer.h.11", call=2), " call 2"),
        (wire.Target("transformer.h.11", element=(0, "k")), " [0.k]"),
    ],
)
def test_a_label_says_which_value_it_is(target, label):
    assert label_of(target).endswith(label)


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_an_answer_that_is_not_finite_says_so_and_has_only_numbers_that_json_has(odd):
    logits = nn.Linear(3, 4)
    nn.init.constant_(logits.bias, odd)
    result = run(Recipe(), NNsight(logits), base=torch.ones(2, 3))
    answer = answer_view("r1", result)
    assert "NaN or infinity" in answer.headline
    assert answer.rows == ()
    json.dumps(msgspec.to_builtins(answer), allow_nan=False)


def test_an_answer_is_the_results_numbers(model):
    result = run(Recipe(base=demo.EIFFEL, steps=[Zero("transformer.h.11.mlp")], metric=KL()), model)
    answer = answer_view("r1", result)
    assert answer.edited
    assert answer.rows == result.rows
    assert answer.kl == result.kl
    top = {row.clean_rank: row.token for row in answer.rows}
    assert top[0].strip() in answer.headline
