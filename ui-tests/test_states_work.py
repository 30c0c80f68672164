"""What the page shows of the kernel's work: loading, running, queued, cancelled, failed, gone, and met again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from page_harness import Notebook, shot
from playwright.sync_api import Locator, expect

GONE = "No kernel: this is the last state, to be read only."


def status(notebook: Notebook, text: str | re.Pattern[str]) -> Locator:
    """The status line, as long as it says this."""
    return notebook.page.get_by_role("status").filter(has_text=text)


def headline(notebook: Notebook) -> Locator:
    return notebook.page.get_by_role("region", name="Results").get_by_role("status").first


@pytest.fixture
def gate(notebook: Notebook, tmp_path: Path) -> Iterator[Path]:
    """A file that a model waits for; it is there at the end, so that the kernel is free again."""
    path = tmp_path / "gate"
    yield path
    path.touch()


def test_a_model_that_is_not_loaded_yet_shows_how_far_it_is(notebook: Notebook, gate: Path) -> None:
    notebook.run(f"""
from kernel_side.odd_models import late_language_model
model = late_language_model({str(gate)!r})
Lab(model, EIFFEL, module="transformer.h.11.mlp")
""")
    page = notebook.page
    expect(status(notebook, "Loading the model 3 of 12 files")).to_contain_text("not loaded")
    bar = page.get_by_role("progressbar", name="Loading the model")
    assert (bar.get_attribute("value"), bar.get_attribute("max")) == ("3", "12")
    expect(page.get_by_role("tree").get_by_role("treeitem", name="lm_head Linear")).to_be_visible()
    expect(page.get_by_role("button", name="self_act_0")).to_be_visible()
    shot(notebook, "not-loaded")
    gate.touch()
    expect(headline(notebook)).to_contain_text("Paris")
    expect(status(notebook, "Loading")).to_have_count(0)
    expect(status(notebook, "not loaded")).to_have_count(0)


def test_loading_that_is_cancelled_can_be_begun_again(notebook: Notebook, gate: Path) -> None:
    notebook.run(f"""
from kernel_side.odd_models import late_language_model
model = late_language_model({str(gate)!r})
Lab(model, EIFFEL)
""")
    page = notebook.page
    expect(status(notebook, "Loading the model")).to_be_visible()
    page.get_by_role("button", name="Cancel", exact=True).click()
    gate.touch()
    expect(status(notebook, "Loading the model")).to_have_count(0)
    expect(status(notebook, "not loaded")).to_be_visible()
    shot(notebook, "loading-cancelled")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(headline(notebook)).to_contain_text("Paris")


def test_a_run_under_way_is_shown_and_survives_a_reload_of_the_page(notebook: Notebook, gate: Path) -> None:
    notebook.run(f"""
from kernel_side.odd_models import Gated
lab = Lab(NNsight(Gated({str(gate)!r})), torch.ones(2, 8))
lab
""")
    page = notebook.page
    expect(page.get_by_role("progressbar", name="Running")).to_be_visible()
    expect(page.get_by_role("tabpanel", name="Answer")).to_contain_text("The first run is under way.")
    shot(notebook, "running")
    notebook.reload()
    expect(page.get_by_role("progressbar", name="Running")).to_be_visible()
    shot(notebook, "reloaded-mid-run")
    gate.touch()
    expect(page.get_by_role("progressbar", name="Running")).to_have_count(0)
    expect(page.get_by_role("tabpanel", name="Answer")).to_contain_text("forwards")
    page.get_by_role("button", name="torch_relu_0").click()
    page.get_by_role("button", name=re.compile("^Zero")).click()
    expect(page.get_by_role("switch", name="Zero torch_relu_0 is on")).to_be_checked()
    expect(page.get_by_role("region", name="Listing")).to_contain_text("return torch.relu(y)")
    expect(page.get_by_role("region", name="History")).to_contain_text("zero torch_relu_0")
    assert notebook.value("[type(step).__name__ for step in lab.steps]") == ["Zero"]


def test_a_click_while_a_cell_of_the_users_runs_is_kept_and_done_afterwards(notebook: Notebook, gate: Path) -> None:
    notebook.run('lab = Lab(demo.load(), EIFFEL, module="transformer.h.11.mlp"); lab')
    expect(headline(notebook)).to_contain_text("Paris")
    page = notebook.page
    page.get_by_role("button", name="self_act_0").click()
    expect(page.get_by_role("button", name="self_act_0")).to_have_attribute("aria-pressed", "true")
    notebook.start(f"from kernel_side.odd_models import wait_for; wait_for({str(gate)!r})")
    page.get_by_role("button", name=re.compile("^Zero")).click()
    expect(status(notebook, "A cell of yours is running; your click is kept and done afterwards.")).to_be_visible()
    shot(notebook, "queued")
    gate.touch()
    notebook.finish()
    expect(headline(notebook)).to_contain_text("London")
    expect(status(notebook, "A cell of yours is running")).to_have_count(0)


def test_a_cancelled_sweep_keeps_the_cells_it_has(notebook: Notebook, gate: Path) -> None:
    notebook.run("""
from kernel_side.odd_models import held_language_model
model = held_language_model()
lab = Lab(model, EIFFEL, module="transformer.h.11.mlp")
lab
""")
    page = notebook.page
    page.get_by_role("button", name="self_act_0").click()
    page.get_by_role("button", name=re.compile("^Zero")).click()
    expect(headline(notebook)).to_contain_text("London")
    notebook.run(f"model._model.lm_head.hold({str(gate)!r}, free=1)")
    page.get_by_role("button", name=re.compile("^Sweep")).click()
    grid = page.get_by_role("grid")
    expect(grid).to_have_attribute("aria-busy", "true")
    expect(status(notebook, re.compile("Sweeping [1-9][0-9]* of 96 cells"))).to_be_visible()
    expect(page.get_by_role("region", name="History")).to_contain_text("36 of 96 cells")
    shot(notebook, "sweeping")
    page.get_by_role("form", name="Sweep").get_by_role("button", name="Cancel").click()
    gate.touch()
    expect(grid).to_have_attribute("aria-busy", "false")
    expect(page.get_by_role("region", name="History")).to_contain_text("not complete")
    done = notebook.value("int(lab.sweep_result.done.sum())")
    assert 0 < done < 96
    expect(page.get_by_role("tabpanel", name="Sweep")).to_contain_text(f"{done} of 96 cells")
    expect(page.get_by_role("gridcell").and_(page.locator("[data-missing=true]"))).to_have_count(96 - done)
    expect(page.get_by_role("form", name="Sweep").get_by_role("button", name="Start sweep")).to_be_enabled()
    shot(notebook, "sweep-cancelled")


def test_a_failed_run_tells_why_shows_its_traceback_on_demand_and_can_be_done_again(notebook: Notebook) -> None:
    notebook.run("""
from kernel_side.odd_models import Failing
plain = Failing()
lab = Lab(NNsight(plain), torch.ones(2, 4))
lab
""")
    page = notebook.page
    failed = status(notebook, "the scaling table of this device is not loaded")
    expect(failed).to_be_visible()
    traceback = failed.locator("pre")
    expect(traceback).not_to_be_visible()
    shot(notebook, "failed")
    failed.get_by_text("Details").click()
    expect(traceback).to_be_in_viewport(ratio=1)
    expect(traceback).to_contain_text(re.compile("odd_models.py.*, in forward"))
    expect(traceback).to_contain_text("RuntimeError: the scaling table of this device is not loaded")
    expect(traceback).not_to_contain_text("nnsight_lab/experiments")
    shot(notebook, "failed-traceback")
    notebook.run("plain.failing = False")
    page.get_by_role("button", name="Retry").click()
    expect(failed).to_have_count(0)
    expect(page.get_by_role("tabpanel", name="Answer")).to_contain_text("forwards")


def test_a_failure_can_be_dismissed(notebook: Notebook) -> None:
    notebook.run("from kernel_side.odd_models import Failing\nLab(NNsight(Failing()), torch.ones(2, 4))")
    failed = status(notebook, "the scaling table of this device is not loaded")
    expect(failed).to_be_visible()
    notebook.page.get_by_role("button", name="Dismiss").click()
    expect(failed).to_have_count(0)
    expect(notebook.page.get_by_role("tabpanel", name="Answer")).to_contain_text("Nothing has been run yet.")


def test_a_kernel_that_dies_leaves_the_last_state_to_be_read(open_notebook, own_kernel) -> None:
    notebook = open_notebook(own_kernel)
    notebook.run('from nnsight_lab import Lab, demo\nLab(demo.load(), demo.EIFFEL, module="transformer.h.11.mlp")')
    expect(headline(notebook)).to_contain_text("Paris")
    page = notebook.page
    page.get_by_role("button", name="self_act_0").click()
    page.get_by_role("tab", name="Activation").click()
    picture = page.get_by_role("application", name=re.compile("self_act_0, after"))
    expect(picture).to_have_attribute("aria-busy", "false")
    notebook.start("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    expect(status(notebook, GONE)).to_be_visible()
    expect(headline(notebook)).to_contain_text("Paris")
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    expect(page.get_by_role("button", name=re.compile("^Zero"))).to_be_disabled()
    expect(page.get_by_role("button", name="Edit base prompt")).to_be_disabled()
    expect(picture).to_be_visible()
    shot(notebook, "kernel-dead")
