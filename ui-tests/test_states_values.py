"""What the page shows of values that are not plain: not reached, tuples, no tensors, bfloat16, NaN, and very large."""

from __future__ import annotations

import re

from page_harness import Notebook, shot
from playwright.sync_api import Locator, expect


def picture(notebook: Notebook) -> Locator:
    """The activation's heatmap, once it is drawn."""
    notebook.page.get_by_role("tab", name="Activation").click()
    heatmap = notebook.page.get_by_role("tabpanel", name="Activation").get_by_role("application")
    expect(heatmap).to_have_attribute("aria-busy", "false")
    return heatmap


def test_operations_not_reached_tuples_and_values_without_tensors(notebook: Notebook) -> None:
    notebook.run("""
from kernel_side.odd_models import Branching
plain = Branching()
lab = Lab(NNsight(plain), torch.ones(3, 6)); lab
""")
    page = notebook.page
    never = page.get_by_role("button", name="torch_tanh_0, not reached")
    expect(never).to_have_attribute("title", re.compile("not reached: .*branch"))
    never.click()
    page.get_by_role("button", name=re.compile("^Zero")).click()
    expect(page.get_by_role("region", name="Steps")).to_contain_text("never ran")
    expect(page.get_by_role("region", name="Results").get_by_role("status").first).to_contain_text(
        "The operation never ran."
    )
    page.get_by_role("tab", name="Activation").click()
    expect(page.get_by_role("tabpanel", name="Activation")).to_contain_text("torch_tanh_0 was not reached: ")
    shot(notebook, "not-reached")
    page.get_by_role("button", name="Undo").click()

    page.get_by_role("button", name="torch_max_0").click()
    expect(page.get_by_role("region", name="Listing")).to_contain_text("max of 2")
    expect(picture(notebook)).to_be_visible()
    element = page.get_by_role("combobox", name="element")
    expect(element.get_by_role("option")).to_have_text(["first tensor", "0 [3]", "1 [3]"])
    element.select_option("1 [3]")
    expect(page.get_by_role("tabpanel", name="Activation")).to_contain_text("[3] i64")
    shot(notebook, "tuple-element")

    page.get_by_role("button", name="str_0").click()
    expect(page.get_by_role("tabpanel", name="Activation")).to_contain_text("str_0 gave no tensor to draw: '3'")
    page.get_by_role("button", name="str_0").press("p")
    expect(page.locator(".nnsl-peek")).to_contain_text("'3'")
    shot(notebook, "no-tensor")


def test_half_precision_is_named_and_drawn(notebook: Notebook) -> None:
    notebook.run("""
from kernel_side.odd_models import half_language_model
lab = Lab(half_language_model(), EIFFEL, module="transformer.h.11.mlp"); lab
""")
    page = notebook.page
    expect(page.get_by_role("region", name="Results").get_by_role("status").first).to_contain_text("Paris")
    expect(page.get_by_role("status").filter(has_text="bf16 · cpu")).to_be_visible()
    page.get_by_role("button", name="self_act_0").click()
    expect(picture(notebook)).to_be_visible()
    expect(page.get_by_role("tabpanel", name="Activation")).to_contain_text("[1,8,384] bf16")
    shot(notebook, "half-precision")


def test_what_is_not_finite_is_counted_and_does_not_spoil_the_colours(notebook: Notebook) -> None:
    notebook.run("""
from kernel_side.odd_models import NotFinite
lab = Lab(NNsight(NotFinite()), torch.linspace(-1, 1, 48).reshape(6, 8), selection="keep"); lab
""")
    headline = notebook.page.get_by_role("region", name="Results").get_by_role("status").first
    expect(headline).to_contain_text("The output has NaN or infinity at the last position")
    expect(picture(notebook)).to_be_visible()
    panel = notebook.page.get_by_role("tabpanel", name="Activation")
    for count in ("NaN 1", "+inf 1", "−inf 1"):
        expect(panel.get_by_text(count)).to_be_visible()
    expect(panel.get_by_role("img", name="Colours from −1 to 1")).to_be_visible()
    shot(notebook, "not-finite")


def test_a_huge_tensor_is_reduced_and_its_outlier_is_not_lost(notebook: Notebook) -> None:
    notebook.run("""
from kernel_side.odd_models import Huge
lab = Lab(NNsight(Huge()), torch.zeros(1), selection="keep"); lab
""")
    expect(picture(notebook)).to_be_visible()
    panel = notebook.page.get_by_role("tabpanel", name="Activation")
    expect(panel).to_contain_text("[4096,16384] f32")
    expect(panel).to_contain_text("4,096 batches × 16,384 neurons")
    expect(panel).to_contain_text("beyond, from −1 to 50")
    shot(notebook, "huge")
    panel.get_by_role("checkbox", name="trim outliers").uncheck()
    expect(panel.get_by_role("img", name="Colours from −50 to 50")).to_be_visible()
