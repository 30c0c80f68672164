"""The JupyterLab extension in a real JupyterLab: models panel, listing, inserted cells, output renderer, commands."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from conftest import SCREENSHOTS
from page_harness.jupyterlab import SLOW, JupyterLab, OpenNotebook
from playwright.sync_api import Browser, Locator, expect

LOAD = "from nnsight_lab import demo\nmodel = demo.load()"
# The same edit in plain torch: the activation of the last layer's MLP, zeroed by a hook.
BY_HAND = """
import torch
handle = model._module.transformer.h[11].mlp.act.register_forward_hook(lambda m, i, o: torch.zeros_like(o))
ids = model.tokenizer(demo.EIFFEL, return_tensors="pt").input_ids
with torch.no_grad():
    logits = model._module(ids).logits[0, -1]
handle.remove()
probabilities = logits.softmax(-1)
top = probabilities.argmax()
print("by hand:", repr(model.tokenizer.decode(top)), f"{probabilities[top]:.3f}")
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[JupyterLab]:
    with JupyterLab.started() as lab:
        yield lab


@pytest.fixture
def open_in(lab: JupyterLab, browser: Browser, request: pytest.FixtureRequest) -> Iterator[object]:
    opened: list[OpenNotebook] = []

    def open_one(cells: list[str]) -> OpenNotebook:
        name = f"{request.node.name}.ipynb"
        lab.write(name, cells)
        opened.append(lab.open(browser, name))
        opened[-1].idle()
        return opened[-1]

    yield open_one
    for notebook in opened:
        notebook.page.screenshot(path=SCREENSHOTS / "jupyterlab" / f"{request.node.name}.png")
        notebook.close()
        assert notebook.errors == []


def models_of(notebook: OpenNotebook) -> Locator:
    notebook.command("nnsight-lab:show-models")
    return notebook.page.get_by_role("region", name="Models", exact=True)


def test_a_model_is_followed_to_an_operation_and_into_a_cell_with_the_same_numbers(open_in) -> None:
    notebook = open_in([LOAD, BY_HAND])
    models = models_of(notebook)
    # Nothing is imported yet: the panel says what to type, and has run no cell.
    expect(models).to_contain_text("import nnsight_lab", timeout=SLOW)
    expect(notebook.cells.first.locator(".jp-InputPrompt").first).to_have_text("[ ]:")
    notebook.run_all()
    expect(models.get_by_role("heading", name="model")).to_be_visible(timeout=SLOW)
    models.get_by_role("searchbox").fill("h.11.mlp")
    models.get_by_role("treeitem", name=re.compile("GPT2MLP")).click()

    listing = notebook.page.get_by_role("region", name="Listing")
    listing.get_by_role("button", name="self_act_0").click()
    listing.get_by_role("button", name="Insert: zero it").click()
    expect(notebook.cells).to_have_count(3)
    inserted = notebook.cells.nth(2)
    expect(inserted.locator(".cm-content")).to_contain_text("transformer.h.11.mlp.source.self_act_0")
    for theme in ("Dark", "Light"):
        notebook.command("apputils:change-theme", {"theme": f"JupyterLab {theme}"})
        expect(notebook.page.locator("body")).to_have_attribute("data-jp-theme-name", f"JupyterLab {theme}")
        expect(notebook.page.locator("#jupyterlab-splash")).to_have_count(0)
        notebook.page.screenshot(path=SCREENSHOTS / "jupyterlab" / f"listing-{theme.lower()}.png")
    notebook.activate()
    notebook.run_all()
    by_hand = re.search(r"by hand: '(.*)' (\d\.\d+)", notebook.output(1))
    assert by_hand is not None
    text = notebook.output(2)
    assert by_hand[1] in text, text
    assert by_hand[2] in text, f"{by_hand[0]!r} is not in:\n{text}"


def test_the_panel_follows_a_restart(open_in) -> None:
    notebook = open_in([LOAD])
    models = models_of(notebook)
    notebook.run_all()
    expect(models.get_by_role("heading", name="model")).to_be_visible(timeout=SLOW)
    notebook.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    expect(models).to_contain_text("import nnsight_lab", timeout=SLOW)
    notebook.run_all()
    expect(models.get_by_role("heading", name="model")).to_be_visible(timeout=SLOW)
    notebook.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    expect(models).to_contain_text("This notebook has no kernel.", timeout=SLOW)


def test_a_saved_listing_is_read_without_a_kernel(open_in) -> None:
    notebook = open_in([LOAD, "model.transformer.h[11].source"])
    notebook.run_all()
    shown = notebook.cells.nth(1).get_by_role("region", name="Listing")
    expect(shown).to_contain_text("GPT2Block.forward", timeout=SLOW)
    notebook.command("docmanager:save")
    expect(notebook.page.get_by_role("main").locator(".jp-mod-dirty")).to_have_count(0, timeout=SLOW)
    # Drawn again from what was saved; then its kernel, which knows nothing of the model, is ended.
    notebook.page.reload()
    expect(shown).to_contain_text("GPT2Block.forward", timeout=SLOW)
    notebook.idle()
    notebook.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    expect(models_of(notebook)).to_contain_text("This notebook has no kernel.", timeout=SLOW)
    shown.get_by_role("button", name="self_mlp_0").click()
    shown.get_by_role("button", name="Show mlp").click()
    expect(shown).to_contain_text("GPT2MLP.forward")


def test_the_command_opens_the_lab_and_its_code_goes_below_it(open_in) -> None:
    notebook = open_in([LOAD])
    models = models_of(notebook)
    notebook.run_all()
    expect(models.get_by_role("heading", name="model")).to_be_visible(timeout=SLOW)
    notebook.command("nnsight-lab:open-lab")
    shown = notebook.cells.nth(1).locator(".nnsl").first
    expect(shown).to_be_visible(timeout=SLOW)
    expect(notebook.cells.nth(1).locator(".cm-content")).to_contain_text("model.lab(")
    notebook.command("nnsight-lab:insert-lab-code")
    expect(notebook.cells).to_have_count(3, timeout=SLOW)
    expect(notebook.cells.nth(2).locator(".cm-content")).to_contain_text("model.trace(prompt)")


def test_keys_toolbar_and_context_menu_reach_the_lab(open_in) -> None:
    notebook = open_in([LOAD])
    notebook.run_all()
    page = notebook.page
    notebook.cells.first.locator(".jp-InputPrompt").click()
    page.keyboard.press("n")
    page.keyboard.press("m")
    models = page.get_by_role("region", name="Models", exact=True)
    expect(models.get_by_role("heading", name="model")).to_be_visible(timeout=SLOW)
    notebook.panel.get_by_role("button", name="Insert a cell that opens the Lab").click()
    expect(notebook.cells.nth(1).locator(".nnsl").first).to_be_visible(timeout=SLOW)
    notebook.cells.first.locator(".jp-InputPrompt").click(button="right")
    page.get_by_role("menuitem", name="Insert the Lab's Code Below").click()
    # The Lab shows that code as well; a cell's editor holds it once.
    editors = notebook.panel.locator(".cm-content")
    expect(editors.filter(has_text="model.trace(prompt)")).to_have_count(1, timeout=SLOW)


def test_the_launcher_makes_a_notebook_that_shows_the_lab(open_in) -> None:
    notebook = open_in(["1"])
    notebook.command("nnsight-lab:new-notebook")
    new = notebook.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)").last
    expect(new.locator(".jp-Cell")).to_have_count(2, timeout=SLOW)
    notebook.idle()
    notebook.command("notebook:run-all-cells")
    expect(new.locator(".jp-Cell").nth(1).locator(".nnsl").first).to_contain_text("Paris", timeout=SLOW)


def test_the_setting_keeps_the_inserted_cell_from_running(lab: JupyterLab, open_in) -> None:
    lab.set("nnsight-lab/commands.jupyterlab-settings", {"runInserted": False})
    try:
        notebook = open_in([LOAD])
        models = models_of(notebook)
        notebook.run_all()
        expect(models.get_by_role("heading", name="model")).to_be_visible(timeout=SLOW)
        notebook.command("nnsight-lab:open-lab")
        inserted = notebook.cells.nth(1)
        expect(inserted.locator(".cm-content")).to_contain_text("model.lab(", timeout=SLOW)
        notebook.idle()
        expect(inserted.locator(".jp-InputPrompt").first).to_have_text("[ ]:")
    finally:
        lab.set("nnsight-lab/commands.jupyterlab-settings", {})
