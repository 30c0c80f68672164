"""The Lab's page in a real browser with a real kernel: from a click to what is drawn anew, first paint and frame rate of a
large heatmap, and the size of the bundle.

Times are taken in the page, from the click's own time stamp to the frame after the one in which the new content is
there. The forward's own time, as the Lab's answer tells it, is taken off where it says so. Medians of several runs; the
quickest and the slowest stand beside them. Needs what the browser tests need (`ui-tests/README.md`).
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "ui-tests"))

from page_harness import Notebook, Server, chromium  # noqa: E402
from playwright.sync_api import Browser, Locator, expect  # noqa: E402

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
MOVING_MS = 2000

# `began` is the last click; `after(changed)` resolves with the milliseconds from it to the frame after the one in which
# `changed()` holds.
WATCH = """
window.watch = (() => {
  let began = 0;
  addEventListener("click", (event) => { began = event.timeStamp; }, true);
  const frame = () => new Promise(requestAnimationFrame);
  return {
    async after(changed) {
      began = 0;
      const late = performance.now() + 10_000;
      while (began === 0 || !changed()) {
        if (performance.now() > late) throw new Error("Nothing has been drawn anew in ten seconds.");
        await frame();
      }
      await frame();
      return performance.now() - began;
    },
  };
})();
// The frames in which something is drawn on a canvas, and all frames.
window.frames = (() => {
  let drawn = 0, all = 0, dirty = false;
  const prototype = CanvasRenderingContext2D.prototype;
  for (const name of ["drawImage", "putImageData"]) {
    const plain = prototype[name];
    prototype[name] = function (...args) { dirty = true; return plain.apply(this, args); };
  }
  const count = () => { all += 1; drawn += dirty; dirty = false; requestAnimationFrame(count); };
  requestAnimationFrame(count);
  return { take() { const taken = { drawn, all }; drawn = all = 0; return taken; } };
})();
"""
TABLE_CHANGED = """(table) => {
  const before = table.textContent;
  const results = table.closest("section");
  window.waited = watch.after(() => {
    const now = results.querySelector("table");
    return now !== null && now.textContent !== before && results.querySelector("[data-stale=true]") === null;
  });
}"""
PICTURE_CHANGED = """(panel) => {
  const pixels = (canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let sum = 0;
    for (const word of new Uint32Array(data.buffer)) sum = (Math.imul(sum, 31) + word) | 0;
    return sum;
  };
  const old = panel.querySelector("[role=application] canvas");
  const before = old === null ? null : pixels(old);
  window.waited = watch.after(() => {
    const picture = panel.querySelector("[role=application][aria-busy=false]");
    return picture !== null && picture.querySelector("canvas").width > 0
      && pixels(picture.querySelector("canvas")) !== before;
  });
}"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server.started() as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def notebook(server: Server, browser: Browser) -> Iterator[Notebook]:
    kernel = server.start_kernel()
    notebook = Notebook.opened(browser, server, kernel, width=1600, height=1000)
    notebook.page.evaluate(WATCH)
    yield notebook
    notebook.close()
    server.stop_kernel(kernel)


def show(what: str, values: list[float], unit: str, goal: str) -> None:
    spread = f"{min(values):.0f} to {max(values):.0f}, {len(values)} runs"
    print(f"\n{what:<62} {statistics.median(values):.0f} {unit}  ({spread}; goal {goal})", end="")


def timed(watched: Locator, changed: str, click: Callable[[], Any]) -> float:
    """Milliseconds from a click to the redraw of what is watched."""
    watched.evaluate(changed)
    click()
    return float(watched.page.evaluate("window.waited"))


@pytest.mark.parametrize("shown", ["Answer", "Activation"])
def test_click_to_redraw(notebook: Notebook, shown: str) -> None:
    """Each click limits a zeroed activation to another position, which is a run that has not been done yet."""
    page = notebook.page
    notebook.run("""
from nnsight_lab import Lab, demo
from nnsight_lab.experiments import Zero
lab = Lab(demo.load(), demo.EIFFEL, module="transformer.h.0.mlp")
lab
""")
    results = page.get_by_role("region", name="Results")
    tokens = page.get_by_role("listbox", name="Base tokens").get_by_role("option")
    expect(tokens).to_have_count(8)
    results.get_by_role("tab", name=shown).click()
    panel = results.get_by_role("tabpanel", name=shown)
    beyond, whole = [], []
    for layer in range(ROUNDS):
        site = f"transformer.h.{layer}.mlp.source.self_act_0"
        notebook.run(f"lab.selection = {site!r}; lab.steps = [Zero({site!r})]; lab.run()")
        settled(notebook)
        for position in range(8):
            watched, changed = (panel.get_by_role("table"), TABLE_CHANGED)
            if shown == "Activation":
                watched, changed = panel, PICTURE_CHANGED
            spent = timed(watched, changed, tokens.nth(position).click)
            settled(notebook)
            forward = notebook.value("lab._answer['seconds']") * 1000
            if layer > 0 or position > 1:
                beyond.append(spent - forward)
                whole.append(spent)
    what = "table of the answer" if shown == "Answer" else "heatmap of the activation"
    show(f"click to redrawn {what}, beyond the forwards", beyond, "ms", "<= 150")
    show(f"click to redrawn {what}, as a whole", whole, "ms", "none")


def settled(notebook: Notebook) -> None:
    """Wait until the kernel has nothing to do for the Lab and the page has drawn it."""
    while notebook.value("[lab._status['work'], lab._status['waiting'], lab._status['stale']]") != [None, [], False]:
        time.sleep(0.02)
    notebook.page.wait_for_timeout(150)


# An event in every frame, as a wheel or a mouse gives them; from outside the browser they come more slowly.
MOVE = """async (element, [kind, milliseconds]) => {
  const box = element.getBoundingClientRect();
  const x = box.left + box.width / 2, y = box.top + box.height / 2;
  const zoom = (number) => new WheelEvent("wheel", {
    deltaY: number % 60 < 30 ? -40 : 40, clientX: x, clientY: y, bubbles: true, cancelable: true,
  });
  const pan = (number) => new PointerEvent("pointermove", {
    clientX: x + Math.abs(40 - (number % 80)), clientY: y + Math.abs(20 - (number % 40)), buttons: 1, bubbles: true,
  });
  const make = { zoom, pan }[kind];
  frames.take();
  const began = performance.now();
  for (let number = 0; performance.now() - began < milliseconds; number += 1) {
    element.dispatchEvent(make(number));
    await new Promise(requestAnimationFrame);
  }
  const seconds = (performance.now() - began) / 1000;
  const { drawn, all } = frames.take();
  return { drawn: drawn / seconds, all: all / seconds };
}"""

LARGE = """
import torch
from nnsight_lab import Lab, NNsight
class Large(torch.nn.Module):
    def forward(self, x):
        x = torch.tanh(x)
        x = torch.sin(x)
        x = torch.erf(x)
        x = torch.relu(x)
        x = torch.square(x)
        x = torch.sqrt(x)
        return x
lab = Lab(NNsight(Large()), torch.randn(1024, 3072, generator=torch.Generator().manual_seed(0)))
lab
"""
OPERATIONS = ["torch_tanh_0", "torch_sin_0", "torch_erf_0", "torch_relu_0", "torch_square_0", "torch_sqrt_0"]


def test_large_heatmap(notebook: Notebook) -> None:
    notebook.run(LARGE)
    page = notebook.page
    results = page.get_by_role("region", name="Results")
    expect(page.get_by_role("button", name=OPERATIONS[0])).to_be_visible()
    settled(notebook)
    results.get_by_role("tab", name="Activation").click()
    panel = results.get_by_role("tabpanel")
    whole, beyond = [], []
    for operation in OPERATIONS:
        spent = timed(panel, PICTURE_CHANGED, page.get_by_role("button", name=operation).click)
        settled(notebook)
        forward = notebook.value("lab._answer['seconds']") * 1000
        whole.append(spent)
        beyond.append(spent - forward)
    show("1024 x 3072: click to first paint, beyond the forward", beyond, "ms", "<= 200")
    show("1024 x 3072: click to first paint, as a whole", whole, "ms", "none")

    picture = panel.get_by_role("application")
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    assert box is not None
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*middle)
    page.mouse.move(middle[0] + 2, middle[1])
    for what, event in (("zooming", "zoom"), ("panning", "pan")):
        if what == "panning":
            page.mouse.wheel(0, -480)
            page.mouse.down()
        taken = [picture.evaluate(MOVE, [event, MOVING_MS]) for _ in range(ROUNDS)]
        page.mouse.up()
        show(f"1024 x 3072: {what}, frames drawn anew", [one["drawn"] for one in taken], "a second", ">= 30")


def test_bundle_size() -> None:
    size = (REPOSITORY / "nnsight_lab" / "widgets" / "static" / "lab.js").stat().st_size
    print(f"\n{'bundle lab.js, minified':<62} {size / 1000:.0f} kB  (goal <= 300)", end="")
