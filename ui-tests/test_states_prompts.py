"""What the page shows of prompts that do not fit: empty, too long, a source prompt of another length, no tokens."""

from __future__ import annotations

import re

from page_harness import Notebook, shot
from playwright.sync_api import expect

LAB = 'lab = Lab(demo.load(), EIFFEL, source=COLOSSEUM, module="transformer.h.11.mlp"); lab'


def set_prompt(notebook: Notebook, field: str, text: str) -> None:
    page = notebook.page
    page.get_by_role("button", name=f"Edit {field} prompt").click()
    page.get_by_role("textbox", name=f"{field.capitalize()} prompt").fill(text)
    page.keyboard.press("Enter")


def test_an_empty_and_a_too_long_prompt_say_so_and_are_not_run(notebook: Notebook) -> None:
    notebook.run(LAB)
    page = notebook.page
    headline = page.get_by_role("region", name="Results").get_by_role("status").first
    expect(headline).to_contain_text("Paris")
    set_prompt(notebook, "base", "")
    expect(page.get_by_text("The prompt is empty: it has no tokens.", exact=True)).to_be_visible()
    expect(headline).to_contain_text("of an earlier state")
    shot(notebook, "prompt-empty")
    page.get_by_role("button", name="Run", exact=True).click()
    refused = page.get_by_role("status").filter(has_text="base: The prompt is empty: it has no tokens.")
    expect(refused).to_be_visible()
    shot(notebook, "prompt-empty-run")
    refused.get_by_role("button", name="Dismiss").click()
    set_prompt(notebook, "base", " the" * 300)
    too_long = "The prompt is too long: 300 tokens, and the model has positions for 256."
    expect(page.get_by_text(too_long, exact=True)).to_be_visible()
    assert page.get_by_text(too_long, exact=True).bounding_box()["height"] < 60
    expect(page.get_by_role("button", name="self_dropout_0")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("listbox", name="Base tokens").get_by_role("option")).to_have_count(300)
    shot(notebook, "prompt-too-long")
    assert notebook.value("len(lab.history)") == 1
    set_prompt(notebook, "base", "The Brandenburg Gate is in the city of")
    expect(headline).to_contain_text("Berlin")
    expect(headline).not_to_contain_text("of an earlier state")


def test_a_source_prompt_of_another_length_is_aligned_and_what_has_no_counterpart_is_refused(
    notebook: Notebook,
) -> None:
    notebook.run(LAB)
    page = notebook.page
    base = page.get_by_role("listbox", name="Base tokens").get_by_role("option")
    source = page.get_by_role("listbox", name="Source tokens").get_by_role("option")
    expect(base).to_have_count(8)
    expect(source).to_have_count(7)
    expect(page.get_by_text("2 of 8 without counterpart")).to_be_visible()
    why = re.compile("8 and 7 tokens.*choose where a patch there takes its values from", re.DOTALL)
    expect(base.nth(2)).to_have_attribute("title", why)
    expect(base.nth(3)).not_to_have_attribute("title", why)
    base.nth(3).hover()
    expect(source.nth(2)).to_have_attribute("data-linked", "true")
    base.nth(1).hover()
    expect(page.locator("[data-linked=true]")).to_have_count(1)

    page.get_by_role("button", name="self_act_0").click()
    base.nth(2).click()
    page.get_by_role("button", name=re.compile("^Patch")).click()
    steps = page.get_by_role("region", name="Steps")
    refused = steps.get_by_text(re.compile("position 2 “ Tower” has no counterpart in the source prompt: choose"))
    expect(refused).to_be_visible()
    assert notebook.value("len(lab.history)") == 1
    shot(notebook, "alignment-refused")
    source.nth(1).click()
    expect(page.get_by_role("region", name="History")).to_contain_text("patch h.11 self_act_0")
    expect(refused).to_have_count(0)
    shot(notebook, "alignment-chosen")
    step = notebook.value("[list(lab.steps[0].positions), list(lab.steps[0].from_positions)]")
    assert step == [[2], [1]]
    base.nth(3).click()
    expect(source.nth(2)).to_have_attribute("aria-selected", "true")
    step = notebook.value("[list(lab.steps[0].positions), lab.steps[0].from_positions]")
    assert step == [[-5], None]


def test_a_model_without_tokens_has_numbered_axes(notebook: Notebook) -> None:
    notebook.run("""
from torch import nn
torch.manual_seed(0)
plain = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 36, 5))
lab = Lab(NNsight(plain), torch.randn(2, 3, 8, 8), selection="1"); lab
""")
    page = notebook.page
    expect(page.get_by_text("Inputs given in Python")).to_be_visible()
    expect(page.get_by_role("button", name="Add base prompt")).to_have_count(0)
    page.get_by_role("tab", name="Activation").click()
    panel = page.get_by_role("tabpanel", name="Activation")
    expect(panel.get_by_role("application")).to_have_attribute("aria-busy", "false")
    expect(panel).to_contain_text("[2,6,6,6] f32")
    expect(panel.get_by_role("combobox", name="rows")).to_contain_text(
        re.compile(r"batch \(2\)axis 1 \(6\)axis 2 \(6\)")
    )
    panel.get_by_role("application").hover(position={"x": 20, "y": 20})
    expect(panel.get_by_role("status")).to_contain_text(re.compile("axis 2 0"))
    shot(notebook, "no-tokens")
    page.get_by_role("button", name=re.compile("^Zero")).click()
    page.get_by_role("tab", name="Answer").click()
    expect(page.get_by_role("region", name="Steps").get_by_role("switch", name="Zero 1 is on")).to_be_checked()
    bias = notebook.value("plain[3].bias.tolist()")
    assert notebook.value("lab.result.edited_logits[0].tolist()") == bias
