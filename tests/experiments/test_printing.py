"""What a person sees of a result, a sweep and a lens: headline, table, sites, the tokens that answers are."""

import math

import pytest
import torch
from torch import nn

from nnsight_lab import NNsight
from nnsight_lab.demo import BRANDENBURG, EIFFEL
from nnsight_lab.experiments import (
    KL,
    Capture,
    LogitDiff,
    Noise,
    Patch,
    Probability,
    Rank,
    Recipe,
    Result,
    Scale,
    StoredResultError,
    Zero,
    lens,
    sweep,
)
from nnsight_lab.experiments.views import signed

PATCH = Patch("transformer.h.3", positions=[2])


@pytest.fixture(scope="module")
def patched(atlas):
    return Recipe(base=EIFFEL, source=BRANDENBURG, steps=[PATCH]).run(atlas)


def first_tokens(atlas, *texts):
    """Text and probability of the likeliest next token of each prompt, by transformers alone."""
    found = []
    for text in texts:
        ids = atlas.tokenizer(text, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            probabilities = atlas._model(input_ids=ids).logits[0, -1].double().softmax(-1)
        best = int(probabilities.argmax())
        found.append((atlas.tokenizer.decode([best]), float(probabilities[best])))
    return found


def test_the_headline_tells_the_answer_before_and_after(atlas, patched):
    ((token, probability),) = first_tokens(atlas, EIFFEL)
    new = max(patched.rows, key=lambda row: row.edited_logit)
    assert new.token != token
    line = str(patched).splitlines()[1]
    assert line == f"'{token}' {probability:.3f} → '{new.token}' {new.edited_probability:.3f}"
    assert line.replace("'", "&#x27;") in patched._repr_html_()


def test_the_new_first_token_is_marked_in_its_row_alone(atlas, patched):
    new = max(patched.rows, key=lambda row: row.edited_logit).token
    marked = [line for line in str(patched).splitlines() if "← first after the edits" in line]
    assert len(marked) == 1
    assert marked[0].startswith(f"'{new}'")
    assert patched._repr_html_().count("← first after the edits") == 1
    same = Recipe(base=EIFFEL, steps=[Scale("transformer.h.3.mlp", factor=1.01)]).run(atlas)
    assert "first after" not in str(same)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.00001, "0.0000"), (-0.00001, "0.0000"), (0.0, "0.0000"), (0.25, "+0.2500"), (-0.25, "-0.2500")],
)
def test_a_difference_of_zero_has_no_sign(value, text):
    assert signed(value, 4) == text


def test_differences_that_are_no_numbers_are_shown_as_such():
    assert signed(math.nan, 3) == "+nan"
    assert signed(-math.inf, 3) == "-inf"


def test_a_run_that_only_captures_shows_one_column_and_nothing_of_edits(atlas):
    result = Recipe(base=EIFFEL, steps=Capture("transformer.h.5.mlp"), metric=Probability(" Paris")).run(atlas)
    text = str(result)
    (line,) = [line for line in text.splitlines() if line.startswith("token ")]
    assert line.split() == ["token", "id", "logit", "prob", "rank"]
    for noise in ("Δ", "KL", "largest change", "→", "Note", "edited"):
        assert noise not in text
    assert "Probability ' Paris' 0.9978" in text
    assert not result.has_edits
    assert "<th" in result._repr_html_()
    assert "edited" not in result._repr_html_()


def test_an_edit_that_never_ran_is_not_passed_over(atlas):
    text = str(Recipe(base=EIFFEL, steps=Zero("transformer.h.0.attn.source.self_q_attn_0")).run(atlas))
    assert "never ran" in text
    assert "Note: No enabled edit was carried out" in text


def test_the_change_at_the_site_is_measured(atlas):
    kept = {}

    def keep(name):
        return lambda module, args, output: kept.__setitem__(name, output[0].detach().clone())

    block = atlas._model.transformer.h[3]
    for name, text in (("base", EIFFEL), ("source", BRANDENBURG)):
        handle = block.register_forward_hook(keep(name))
        with torch.no_grad():
            atlas._model(input_ids=atlas.tokenizer(text, return_tensors="pt")["input_ids"])
        handle.remove()
    base, source = (kept[name].reshape(8, 96)[2].double() for name in ("base", "source"))
    report = Recipe(base=EIFFEL, source=BRANDENBURG, steps=PATCH).run(atlas).sites[0]
    assert report.entries == 96
    assert report.change == pytest.approx(float((source - base).abs().max()), rel=1e-5)
    assert report.relative_change == pytest.approx(float((source - base).norm() / base.norm()), rel=1e-5)


def test_the_change_adds_up_over_calls_and_counts_the_entries_of_the_scope():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.twofold = nn.Linear(2, 2, bias=False)
            self.twofold.weight = nn.Parameter(2 * torch.eye(2))

        def forward(self, x):
            return self.twofold(self.twofold(x))

    result = Recipe(steps=Zero("twofold", index=0), metric=None).run(NNsight(Twice()), base=torch.tensor([[3.0, 1.0]]))
    report = result.sites[0]
    assert (report.entries, report.change, report.relative_change) == (2, 6.0, 1.0)  # 6 at first, then 0 of 0
    assert "2 of 4 entries edited, by up to 6 (100% of their norm)" in str(result)


def test_an_edit_that_leaves_the_values_as_they_are_says_so(atlas):
    result = Recipe(base=EIFFEL, steps=Noise("transformer.h.3", std=0.0), metric=KL()).run(atlas)
    assert "all 768 entries edited, which had these values already" in str(result)
    assert (result.sites[0].change, result.sites[0].relative_change) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (LogitDiff(" Berlin", " Paris"), "LogitDiff ' Berlin' − ' Paris'"),
        (LogitDiff("Berlin", "Paris"), "LogitDiff 'Berlin' − 'Paris'"),
        (Probability(" Paris"), "Probability ' Paris'"),
        (Rank(" Paris"), "Rank ' Paris'"),
        (KL(), "KL"),
    ],
)
def test_the_metric_is_printed_with_its_tokens(atlas, metric, name):
    result = Recipe(base=EIFFEL, source=BRANDENBURG, steps=PATCH, metric=metric).run(atlas)
    assert result.metric.name == name
    assert f"{name} " in str(result)
    grid = sweep(atlas, PATCH, base=EIFFEL, source=BRANDENBURG, metric=metric, positions=None, progress=False)
    assert f": {name}, clean" in str(grid)


def test_a_token_given_by_its_number_is_printed_as_text(atlas):
    number = atlas.tokenizer(" Paris")["input_ids"][0]
    assert Recipe(base=EIFFEL, metric=Rank(number)).run(atlas).metric.name == "Rank ' Paris'"
    module = nn.Sequential(nn.Linear(4, 5))
    assert Recipe(metric=LogitDiff(2, 4)).run(NNsight(module), base=torch.ones(1, 4)).metric.name == "LogitDiff 2 − 4"


@pytest.mark.parametrize(
    ("metric", "meant"),
    [
        (LogitDiff("Berlin", "Paris"), ["Berlin", "Paris"]),
        (LogitDiff(" Berlin", "Paris"), ["Paris"]),
        (Probability("Paris"), ["Paris"]),
        (Rank("Paris"), ["Paris"]),
        (LogitDiff(" Berlin", " Paris"), []),
        (KL(), []),
    ],
)
def test_an_answer_without_its_leading_space_is_noted(atlas, metric, meant):
    tokens = {text: atlas.tokenizer(text)["input_ids"] for word in meant for text in (word, f" {word}")}
    assert all(len(ids) == 1 for ids in tokens.values())
    result = Recipe(base=EIFFEL, source=BRANDENBURG, steps=PATCH, metric=metric).run(atlas)
    grid = sweep(atlas, PATCH, base=EIFFEL, source=BRANDENBURG, metric=metric, positions=None, progress=False)
    for notes in (result.notes, grid.notes):
        spaces = [note for note in notes if "leading space" in note]
        assert len(spaces) == len(meant)
        for note, word in zip(spaces, meant, strict=True):
            assert note.startswith(f"'{word}' is token {tokens[word][0]}, of probability ")
            assert f"With a leading space it is token {tokens[' ' + word][0]}" in note
            assert note.endswith(f"write ' {word}' if that is meant.")


def test_tokens_whose_logits_a_sweep_keeps_are_noted_too(atlas):
    grid = sweep(atlas, Zero("lm_head"), base=EIFFEL, metric=KL(), logits="Paris", positions=None, progress=False)
    assert [note for note in grid.notes if "leading space" in note and note.startswith("'Paris'")]


def test_an_answer_that_is_the_likelier_one_is_not_noted(atlas):
    notes = Recipe(base="The Eiffel Tower is in the city of Paris", metric=Probability(".")).run(atlas).notes
    assert notes == ()


@pytest.mark.parametrize("kind", ["result", "sweep", "lens"])
def test_a_folder_that_holds_something_is_not_written_into(atlas, patched, tmp_path, kind):
    if kind == "result":
        found = patched
    elif kind == "sweep":
        found = sweep(atlas, Zero("lm_head"), base=EIFFEL, metric=KL(), positions=None, progress=False)
    else:
        found = lens(atlas, EIFFEL)
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    with pytest.raises(StoredResultError, match="holds something already: take another folder, or overwrite=True"):
        found.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    found.save(tmp_path, overwrite=True)
    found.save(tmp_path, overwrite=True)
    assert str(type(found).load(tmp_path)) == str(found)
    assert other.read_text() == "mine"
    with pytest.raises(StoredResultError, match="is a file"):
        found.save(other, overwrite=True)
    (tmp_path / "empty").mkdir()
    found.save(tmp_path / "empty")


def test_a_stored_result_prints_as_before(patched, tmp_path):
    patched.save(tmp_path / "kept")
    assert str(Result.load(tmp_path / "kept")) == str(patched)


def test_a_sweep_says_in_plain_words_how_it_ran(atlas):
    grid = sweep(
        atlas, Patch("transformer.h.*"), base=EIFFEL, source=BRANDENBURG, metric=(" Paris", " Berlin"), progress=False
    )
    assert "Cells run together, each from the layer and position of its edit on; " in str(grid)
    assert "rolling" not in str(grid)


def test_a_lens_shows_the_numbers_of_its_token_and_cuts_long_ones(atlas):
    result = lens(atlas, EIFFEL, token=" Paris")
    assert any(len(token) > 10 for row in result.top_tokens for token in row)
    assert "<|endofte…'" in str(result)
    grid, numbers = str(result).split("\n\n")
    assert "Logit and #rank of ' Paris'" in numbers
    last = numbers.splitlines()[-1]
    ids = atlas.tokenizer(EIFFEL, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        logits = atlas._model(input_ids=ids).logits[0].double()
    mine = logits[:, atlas.tokenizer(" Paris")["input_ids"][0]]
    ranks = (logits > mine[:, None]).sum(-1).tolist()
    shown = [f"{value:.2f} #{rank}" for value, rank in zip(mine.tolist(), ranks, strict=True)]
    assert last.split() == ["transformer.h.11", *" ".join(shown).split()]
    assert "Logit" not in str(lens(atlas, EIFFEL))
    widths = {len(line) for line in grid.splitlines()[1:]}
    assert len(widths) == 1
