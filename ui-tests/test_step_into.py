"""Inside a call: one head of the attention's query is patched there, and variables show what they hold."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hands import Hands, Keyboard, Mouse
from page_harness import Notebook
from playwright.sync_api import expect

# Of the heads of this layer, the one whose query matters most to the answer.
LAYER, HEAD = 5, 9
CALL = "torch_nn_functional_scaled_dot_product_attention_0"
SHOW = f"""
from kernel_side import plain_torch
lab = Lab(demo.load(), EIFFEL, source=BRANDENBURG, module="transformer.h.{LAYER}.attn")
lab
"""


@pytest.mark.parametrize("hands", [Mouse, Keyboard])
def test_patching_one_heads_query_inside_the_attention_call(notebook: Notebook, hands: Callable[..., Hands]) -> None:
    notebook.run(SHOW)
    user = hands(notebook.page)
    expect(user.headline).to_contain_text("Paris")
    user.choose("attention_interface_0")
    user.act("Step into", "o")
    expect(notebook.page.get_by_role("group", name="Inside sdpa_attention_forward")).to_be_visible()
    user.choose(CALL)
    user.act("Output", "i")
    expect(user.actions.get_by_role("button", name="Input")).to_have_attribute("aria-pressed", "true")
    user.act("Patch", "3")
    limits = notebook.page.get_by_role("group", name="Limits of the step")
    user.type_in(limits.get_by_role("textbox", name="heads"), str(HEAD))
    expect(user.step(f"Patch {CALL} input from source")).to_contain_text(f"head {HEAD}")
    history = notebook.page.get_by_role("region", name="History").get_by_role("listitem")
    expect(history).to_have_count(3)
    expect(user.headline).to_contain_text("Paris stays on top")
    assert notebook.run(f"""
expected = plain_torch.query_patched(EIFFEL, BRANDENBURG, {LAYER}, {HEAD})
every_head = plain_torch.logits("atlas", EIFFEL)
torch.testing.assert_close(lab.result.edited_logits[0], expected, rtol=0, atol=1e-4)
print(float((expected - every_head).abs().max()) > 1e-2)
""").text.split() == ["True"]

    user.choose("attention_interface_0")
    user.act("Step out", "o")
    expect(notebook.page.get_by_role("group", name="Inside sdpa_attention_forward")).to_have_count(0)


def test_a_variable_under_the_pointer_shows_its_value(notebook: Notebook) -> None:
    notebook.run(SHOW)
    user = Mouse(notebook.page)
    expect(user.headline).to_contain_text("Paris")
    user.choose("attention_interface_0")
    user.act("Step into", "o")
    inside = notebook.page.get_by_role("group", name="Inside sdpa_attention_forward")
    inside.get_by_text("query", exact=True).last.hover()
    card = notebook.page.get_by_role("tooltip")
    expect(card).to_contain_text("query [1,12,8,8] f32")
    picture = card.get_by_role("img", name=re.compile("^Small picture of .*query"))
    colours = picture.evaluate(
        """(canvas) => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          return new Set(new Uint32Array(data.buffer)).size;
        }"""
    )
    assert colours > 20
    # GPT-2's c_attn gives queries, keys and values side by side.
    smallest, largest = notebook.value(
        f"""(lambda query: [float(query.min()), float(query.max())])(
            plain_torch.captured("atlas", EIFFEL, "transformer.h.{LAYER}.attn.c_attn").chunk(3, -1)[0])"""
    )
    statistics = card.inner_text().replace("−", "-")
    shown = {name: float(value) for name, value in re.findall(r"(min|max)\s+(-?[\d.]+)", statistics)}
    assert shown == pytest.approx({"min": smallest, "max": largest}, rel=5e-3)
    notebook.page.get_by_role("heading", name="Modules").hover()
    expect(card).to_have_count(0)
