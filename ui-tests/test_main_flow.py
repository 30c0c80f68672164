"""The main flow, by mouse and by keyboard, on both demo models: zero an operation, patch it instead, sweep the patch,
take its brightest cell, and run the code of it. Every number on the page is compared with plain torch hooks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hands import Hands, Keyboard, Mouse
from page_harness import Notebook
from playwright.sync_api import expect

BASE = "The Eiffel Tower is in the city of"
SOURCE = "The Brandenburg Gate is in the city of"
BEFORE, INSTEAD = " Paris", " Berlin"

PLAIN = f"""
from kernel_side import plain_torch
BASE, SOURCE = {BASE!r}, {SOURCE!r}
"""
ROWS = """
def answer_rows(name, clean, edited):
    rows = []
    for token, (before, after, rank, new_rank) in plain_torch.table(name, clean, edited).items():
        rows.append([token, before, after, rank, new_rank])
    return rows
"""


@dataclass(frozen=True)
class Case:
    """A model, and where in it an MLP's activation is: the listing's operation, and the module for plain hooks.

    Attributes:
        sampled: layers of which the sweep's cells are compared; the others take long on the larger model.
    """

    name: str
    module: str
    row: str
    operation: str
    hooked: str
    layers: int
    positions: int
    sampled: tuple[int, ...]

    @property
    def site(self) -> str:
        return f"{self.module}.source.{self.operation}"

    def in_layer(self, path: str, layer: int) -> str:
        return re.sub(r"\.\d+\.", f".{layer}.", path)


ATLAS = Case(
    "atlas",
    "transformer.h.11.mlp",
    "mlp GPT2MLP",
    "self_act_0",
    "transformer.h.11.mlp.act",
    12,
    8,
    tuple(range(12)),
)
SMOLLM2 = Case(
    "smollm2",
    "model.layers.29.mlp",
    "mlp LlamaMLP",
    "self_act_fn_0",
    "model.layers.29.mlp.act_fn",
    30,
    9,
    (0, 1, 29),
)


@pytest.mark.parametrize("case", [ATLAS, SMOLLM2], ids=lambda case: case.name)
@pytest.mark.parametrize("hands", [Mouse, Keyboard])
def test_main_flow(notebook: Notebook, hands: Callable[..., Hands], case: Case) -> None:
    notebook.page.set_viewport_size({"width": 1600, "height": 1000})
    notebook.run(PLAIN + ROWS)
    notebook.run(f"lab = Lab(demo.load({case.name!r}), BASE)\nlab")
    user = hands(notebook.page)
    expect(user.headline).to_contain_text("Paris")

    user.show_module(case.module, case.row)
    user.choose(case.operation)
    user.act("Zero", "2")
    zeroed = f"plain_torch.zeroed({case.name!r}, BASE, {case.hooked!r})"
    shows_answer(notebook, user, case, f"plain_torch.logits({case.name!r}, BASE)", zeroed)
    if case is ATLAS:
        expect(user.headline).to_have_text(re.compile("␣Paris .* → ␣London"))
    shows_activation(notebook, user, case)

    user.limit_to_last("Base tokens")
    user.open_tab("Answer")
    zeroed = f"plain_torch.zeroed({case.name!r}, BASE, {case.hooked!r}, -1)"
    shows_answer(notebook, user, case, f"plain_torch.logits({case.name!r}, BASE)", zeroed)

    user.set_source(SOURCE)
    user.act("Patch", "3")
    expect(user.step(f"Patch {case.operation}")).to_be_visible()
    patched = f"plain_torch.patched({case.name!r}, BASE, SOURCE, {case.hooked!r}, -1)"
    shows_answer(notebook, user, case, f"plain_torch.logits({case.name!r}, BASE)", patched)
    assert steps(notebook) == [["Patch", case.site, [-1], True]]

    user.act("Sweep", "5")
    layer, position = shows_sweep(notebook, user, case)
    user.take(brightest(user))
    taken = case.in_layer(case.site, layer)
    expect(user.lab.get_by_role("navigation")).to_contain_text(f"{layer}mlp")
    expect(user.chip(case.operation)).to_have_attribute("aria-pressed", "true")
    enabled = [step[:3] for step in steps(notebook) if step[3]]
    assert enabled == [["Patch", taken, [position]]]
    expect(user.step(f"Patch {case.operation}").and_(notebook.page.locator("[aria-pressed=true]"))).to_have_count(1)

    user.open_tab("Answer")
    hooked = case.in_layer(case.hooked, layer)
    patched = f"plain_torch.patched({case.name!r}, BASE, SOURCE, {hooked!r}, {position})"
    shows_answer(notebook, user, case, f"plain_torch.logits({case.name!r}, BASE)", patched)

    user.press(user.lab.get_by_role("region", name="Code").get_by_role("button", name="Copy"))
    expect(user.lab.get_by_role("region", name="Code").get_by_role("status")).to_have_text("Copied")
    copied = notebook.page.evaluate("navigator.clipboard.readText()")
    printed = notebook.run(copied).text
    likeliest = re.search(r"^edited '(.*)' ", printed, re.MULTILINE)
    assert likeliest, printed
    token = re.escape(visible(likeliest[1]))
    expect(user.headline).to_have_text(re.compile(rf"{token} [\d.]+$|^{token} stays on top, "))
    shows_answer(notebook, user, case, "clean_logits[0]", "edited_logits[0]")


def steps(notebook: Notebook) -> list[list[Any]]:
    """Kind, site, positions, and whether it is on, of the Lab's steps."""
    return notebook.value(
        "[[type(s).__name__, s.site, None if s.positions is None else list(s.positions), s.enabled] for s in lab.steps]"
    )


def shows_answer(notebook: Notebook, user: Hands, case: Case, clean: str, edited: str) -> None:
    """The table has exactly the likeliest tokens of both logits, with their logits, differences and ranks."""
    expected = notebook.value(f"answer_rows({case.name!r}, {clean}, {edited})")
    table = user.results.get_by_role("table", name="Likeliest next tokens before and after the edits")
    for token, before, after, rank, new_rank in expected:
        moved = f"rank {rank} to {new_rank}, " if rank != new_rank else f"rank {rank}, unchanged"
        numbers = rf"{written(before)} \S+ {written(after)} \S+ {signed(after - before)} {moved}"
        row = table.get_by_role("row", name=re.compile(rf"^{re.escape(visible(token))} {numbers}"))
        expect(row).to_have_count(1)
    expect(table.get_by_role("row")).to_have_count(1 + len(expected))


def shows_activation(notebook: Notebook, user: Hands, case: Case) -> None:
    """The picture after the edit is empty, that before it has many colours and tells the values of the activation."""
    user.open_tab("Activation")
    for choice, state, least in (("After", "after", 1), ("Before", "before", 20)):
        user.pick("Run", choice)
        picture = user.heatmap(f"{case.operation}, {state}")
        expect(picture).to_have_attribute("aria-busy", "false")
        colours = picture.locator("canvas").evaluate(COLOURS)
        assert colours >= least
        assert least > 1 or colours == 1
    user.look_at_entry(picture)
    readout = user.results.get_by_role("tabpanel").locator("output")
    expect(readout).to_have_text(re.compile("position"))
    told = readout.inner_text()
    place = re.match(r"(\S+) .*position (\d+).*?neuron (\d+)(?: to (\d+))?", told)
    assert place, told
    value, row, first, last = place.groups()
    of_pixel = f"[0, {row}, {first}:{last or first} + 1]"
    entries = notebook.value(f"plain_torch.captured({case.name!r}, BASE, {case.hooked!r}){of_pixel}.tolist()")
    assert number(value) == pytest.approx(max(entries, key=abs), rel=1e-3, abs=1e-6)


def brightest(user: Hands) -> Any:
    return user.results.get_by_role("gridcell", name=re.compile("largest effect$"))


def shows_sweep(notebook: Notebook, user: Hands, case: Case) -> tuple[int, int]:
    """Cells are what patches of one place give; returns layer and position of the one that changes the most."""
    grid = user.results.get_by_role("grid", name=re.compile("^sweep patch"))
    expect(grid).to_have_attribute("aria-busy", "false", timeout=60_000)
    expect(user.results.get_by_role("tabpanel")).to_contain_text(f"LogitDiff '{INSTEAD}' − '{BEFORE}'")
    cells = {}
    for label in grid.get_by_role("gridcell").evaluate_all("cells => cells.map((cell) => cell.ariaLabel)"):
        found = re.match(r".*\.(\d+) · position (\d+) .*\((\S+)\)", label or "")
        if found is not None:
            cells[int(found[1]), int(found[2])] = number(found[3])
    assert len(cells) == case.layers * case.positions
    tokens = f"{BEFORE!r}, {INSTEAD!r}"
    notebook.run(f"""
_, tokenizer = plain_torch.hold({case.name!r})
before, instead = (tokenizer(text, add_special_tokens=False).input_ids[0] for text in ({tokens}))
difference = lambda logits: float(logits[instead] - logits[before])
def cell(path, position):
    return difference(plain_torch.patched({case.name!r}, BASE, SOURCE, path, position))
""")
    clean = notebook.value(f"difference(plain_torch.logits({case.name!r}, BASE))")
    for layer in case.sampled:
        path = case.in_layer(case.hooked, layer)
        expected = notebook.value(f"[cell({path!r}, position) for position in range({case.positions})]")
        shown = [cells[layer, position] for position in range(case.positions)]
        assert shown == pytest.approx(expected, abs=6e-3)
    layer, position = max(cells, key=lambda place: abs(cells[place] - clean))
    expect(brightest(user)).to_have_count(1)
    assert re.search(rf"\.{layer} · position {position} ", brightest(user).get_attribute("aria-label") or "")
    return layer, position


COLOURS = """(canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
}"""


def visible(token: str) -> str:
    return token.replace(" ", "␣")


def written(value: float) -> str:
    return re.escape(f"{value:.2f}".replace("-", "−"))


def signed(value: float) -> str:
    text = f"{value:+.2f}"
    return re.escape("0.00" if text[1:] == "0.00" else text.replace("-", "−"))


def number(text: str) -> float:
    return float(text.replace("−", "-"))
