"""The core of the Lab in a real browser with a real kernel: choose an operation, zero it, see the answer change."""

from __future__ import annotations

import re

from playwright.sync_api import expect

LAB = """
from nnsight_lab import Lab, demo
lab = Lab(demo.load(), demo.EIFFEL, source=demo.BRANDENBURG, module="transformer.h.11.mlp")
lab
"""
PLAIN = """
import torch
model = demo.load()
hook = model._model.transformer.h[11].mlp.act.register_forward_hook(lambda m, a, out: out * 0)
with torch.no_grad():
    logits = model._model(**model.tokenizer(demo.EIFFEL, return_tensors="pt")).logits[:, -1]
hook.remove()
print(model.tokenizer.decode(logits[0].argmax()), torch.equal(logits, lab.result.edited_logits))
"""


def test_zeroing_an_operation_by_mouse_changes_the_answer_as_plain_torch_says(notebook):
    notebook.run(LAB)
    page = notebook.page
    headline = page.get_by_role("region", name="Results").get_by_role("status")
    expect(headline).to_contain_text("Paris")
    page.get_by_role("button", name="self_act_0").first.click()
    page.get_by_role("button", name=re.compile("^Zero")).click()
    expect(headline).to_contain_text("London")
    assert notebook.run(PLAIN).text.split() == ["London", "True"]


def test_the_same_by_keyboard_and_undone(notebook):
    notebook.run(LAB)
    page = notebook.page
    headline = page.get_by_role("region", name="Results").get_by_role("status")
    expect(headline).to_contain_text("Paris")
    chip = page.get_by_role("button", name="self_c_fc_0").first
    chip.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.press("2")
    expect(headline).to_contain_text("London")
    page.keyboard.press("Control+z")
    expect(headline).not_to_contain_text("London")
