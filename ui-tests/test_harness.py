"""The test page itself, with a widget as small as can be: what it promises to the tests of the Lab."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from page_harness import CellFailed, Notebook
from playwright.sync_api import expect

COUNTER = '''
import anywidget, traitlets
class Counter(anywidget.AnyWidget):
    _esm = """
    export default { render({ model, el }) {
      const button = document.createElement("button");
      const draw = () => { button.textContent = `count is ${model.get("count")}`; };
      button.onclick = () => model.send({ add: 1 });
      model.on("change:count", draw);
      draw();
      el.append(button);
    } };
    """
    count = traitlets.Int(0).tag(sync=True)
    def __init__(self):
        super().__init__()
        self.on_msg(lambda _, content, buffers: setattr(self, "count", self.count + content["add"]))
counter = Counter()
counter
'''


@pytest.fixture
def notebook(open_notebook: Callable[..., Notebook], kernel: str) -> Notebook:
    return open_notebook(kernel)


def test_a_widget_talks_with_the_kernel_both_ways(notebook: Notebook) -> None:
    notebook.run(COUNTER)
    notebook.page.get_by_role("button", name="count is 0").click()
    expect(notebook.page.get_by_role("button", name="count is 1")).to_be_visible()
    assert notebook.value("counter.count") == 1
    notebook.run("counter.count = 7")
    expect(notebook.page.get_by_role("button", name="count is 7")).to_be_visible()


def test_two_views_of_one_widget_show_the_same(notebook: Notebook) -> None:
    (widget,) = notebook.run(COUNTER).shown
    notebook.show_again(widget)
    notebook.page.get_by_role("button").last.click()
    expect(notebook.page.get_by_role("button", name="count is 1")).to_have_count(2)


def test_a_reloaded_page_shows_its_widgets_again_and_they_are_live(notebook: Notebook) -> None:
    notebook.run(COUNTER)
    notebook.run("counter.count = 3")
    notebook.reload()
    notebook.page.get_by_role("button", name="count is 3").click()
    expect(notebook.page.get_by_role("button", name="count is 4")).to_be_visible()


def test_saved_widgets_are_shown_without_a_kernel(notebook: Notebook, open_notebook: Callable[..., Notebook]) -> None:
    notebook.run(COUNTER)
    notebook.run("counter.count = 5")
    reader = open_notebook(None)
    reader.open_saved(notebook.saved())
    expect(reader.page.get_by_role("button", name="count is 5")).to_be_visible()


def test_an_error_of_a_cell_is_told(notebook: Notebook) -> None:
    with pytest.raises(CellFailed, match="ZeroDivisionError: division by zero"):
        notebook.run("1 / 0")


def test_a_cell_can_run_on_while_the_page_is_used(notebook: Notebook) -> None:
    notebook.start("import time; time.sleep(0.3); print('done')")
    assert notebook.page.evaluate("harness.status()") in ("busy", "unknown", "idle")
    assert notebook.finish().text == "done\n"


def test_a_view_in_a_notebook_that_is_only_read_is_marked(
    notebook: Notebook, open_notebook: Callable[..., Notebook]
) -> None:
    notebook.run(COUNTER)
    dead = ".jupyter-widgets-disconnected"
    expect(notebook.page.locator(dead)).to_have_count(0)
    reader = open_notebook(None)
    reader.open_saved(notebook.saved())
    expect(reader.page.locator(dead)).to_have_count(1)


def test_views_learn_that_the_kernel_died(open_notebook: Callable[..., Notebook], own_kernel: str) -> None:
    notebook = open_notebook(own_kernel)
    notebook.run(
        COUNTER.replace(
            "draw();",
            """draw();
            model.on("comm_live_update", function () { button.textContent = `live: ${this.model.comm_live}`; });""",
        )
    )
    notebook.start("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    expect(notebook.page.get_by_role("button", name="live: false")).to_be_visible(timeout=15_000)
