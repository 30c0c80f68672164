"""Several views, several Labs, saved notebooks, narrow and wide pages, and models of very many layers and modules."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from page_harness import Notebook, shot
from playwright.sync_api import Locator, Page, expect

LAB = 'model = demo.load(); lab = Lab(model, EIFFEL, source=BRANDENBURG, module="transformer.h.11.mlp"); lab'


def headline(lab: Page | Locator) -> Locator:
    return lab.get_by_role("region", name="Results").get_by_role("status").first


def zero(lab: Page | Locator, label: str) -> None:
    lab.get_by_role("button", name=label).click()
    lab.get_by_role("button", name=re.compile("^Zero")).click()


def test_two_views_of_one_lab_show_the_same(notebook: Notebook) -> None:
    (widget,) = notebook.run(LAB).shown
    notebook.show_again(widget)
    one, other = notebook.page.get_by_role("region", name="nnsight-lab").all()
    expect(headline(other)).to_contain_text("Paris")
    zero(other, "self_act_0")
    for view in (one, other):
        expect(headline(view)).to_contain_text("London")
        expect(view.get_by_role("switch", name="Zero self_act_0 is on")).to_be_checked()
    one.get_by_role("tab", name="Activation").click()
    expect(other.get_by_role("tab", name="Answer")).to_have_attribute("aria-selected", "true")
    shot(notebook, "two-views")


def test_two_labs_on_one_model_do_not_disturb_each_other(notebook: Notebook) -> None:
    notebook.run(LAB)
    notebook.run('second = Lab(model, COLOSSEUM, module="transformer.h.11.mlp"); second')
    one, other = notebook.page.get_by_role("region", name="nnsight-lab").all()
    expect(headline(other)).to_contain_text("Rome")
    zero(one, "self_act_0")
    expect(headline(one)).to_contain_text("London")
    expect(headline(other)).to_contain_text("Rome")
    expect(other.get_by_role("region", name="Steps").get_by_role("switch")).to_have_count(0)
    shot(notebook, "two-labs")


@pytest.mark.parametrize("width", [800, 1600])
def test_narrow_and_wide_pages_show_all_parts_without_scrolling_sideways(
    open_notebook: Callable[..., Notebook], notebook: Notebook, kernel: str, width: int
) -> None:
    (widget,) = notebook.run(LAB).shown
    expect(headline(notebook.page)).to_contain_text("Paris")
    sized = open_notebook(kernel, width=width)
    sized.show_again(widget)
    page = sized.page
    zero(page, "self_act_0")
    expect(headline(page)).to_contain_text("London")
    for name in ("Modules", "Listing", "Steps", "Results", "History", "Code"):
        expect(page.get_by_role("region", name=name)).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    for button in page.get_by_role("toolbar", name="Actions on the selected value").get_by_role("button").all():
        expect(button).to_be_in_viewport(ratio=1)
    shot(sized, f"main-{width}")


def test_a_saved_notebook_shows_the_last_state_without_a_kernel(
    open_notebook: Callable[..., Notebook], notebook: Notebook
) -> None:
    notebook.run(LAB)
    zero(notebook.page, "self_act_0")
    expect(headline(notebook.page)).to_contain_text("London")
    notebook.page.get_by_role("button", name="self_c_fc_0").click()
    notebook.page.get_by_role("tab", name="Activation").click()
    drawn = notebook.page.get_by_role("tabpanel", name="Activation").get_by_role("application")
    expect(drawn).to_have_attribute("aria-busy", "false")
    reader = open_notebook(None)
    reader.open_saved(notebook.saved())
    page = reader.page
    expect(headline(page)).to_contain_text("London")
    expect(page.get_by_role("status").filter(has_text="No kernel: this is the last state")).to_be_visible()
    expect(page.get_by_role("switch", name="Zero self_act_0 is on")).to_be_disabled()
    expect(page.get_by_role("textbox", name="Python code of the present state")).to_contain_text("self_act_0")
    page.get_by_role("tab", name="Activation").click()
    panel = page.get_by_role("tabpanel", name="Activation")
    expect(panel).to_contain_text("h.11 self_c_fc_0 [1,8,384] · as saved, reduced")
    expect(panel.get_by_role("alert")).to_have_count(0)
    shot(reader, "saved")


def test_a_model_of_200_layers(notebook: Notebook) -> None:
    notebook.run("""
from kernel_side.odd_models import deep_language_model
lab = Lab(deep_language_model(), EIFFEL, module="transformer.h.150.mlp"); lab
""")
    page = notebook.page
    tree = page.get_by_role("tree")
    expect(tree.get_by_role("treeitem", name="h.0 to h.149, 150 GPT2Block")).to_be_visible()
    expect(tree.get_by_role("treeitem", name="mlp GPT2MLP")).to_have_attribute("aria-selected", "true")
    zero(page, "self_act_0")
    expect(page.get_by_role("region", name="History")).to_contain_text("zero h.150 self_act_0")
    shot(notebook, "200-layers")


def test_a_model_of_20_000_modules(notebook: Notebook) -> None:
    notebook.run("""
from kernel_side.odd_models import Wide
lab = Lab(NNsight(Wide()), torch.ones(2, 4)); lab
""")
    page = notebook.page
    page.get_by_role("searchbox").fill("blocks.1999")
    tree = page.get_by_role("tree")
    expect(tree.get_by_role("treeitem", name="1999 Sequential")).to_be_visible()
    page.get_by_role("searchbox").fill("ReLU")
    expect(tree.get_by_role("treeitem", name="7 ReLU").first).to_be_visible()
    assert 10 < tree.get_by_role("treeitem").count() < 100
    shot(notebook, "20000-modules")
    page.get_by_role("searchbox").fill("")
    tree.get_by_role("treeitem", name="blocks ModuleList").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    expect(tree.get_by_role("treeitem", name=re.compile("^blocks.0 to blocks.1999, 2000 Sequential"))).to_be_visible()
