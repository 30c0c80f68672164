"""Two ways to work with the Lab's page: `Mouse` points at things, `Keyboard` reaches them by Tab, arrows and shortcuts.

Both have the same methods, so that a test of a flow is written once and holds for both.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from playwright.sync_api import Locator, Page, expect

# Far more than the page has tab stops, so that a walk ends where its goal cannot be reached.
MOST_STOPS = 120


class Hands(ABC):
    def __init__(self, page: Page) -> None:
        self.page = page
        self.lab = page.get_by_role("region", name="nnsight-lab")
        self.results = page.get_by_role("region", name="Results")
        self.headline = self.results.get_by_role("status").first
        self.actions = page.get_by_role("toolbar", name="Actions on the selected value")

    def chip(self, label: str) -> Locator:
        """An operation of the listing, whatever became of it."""
        return self.page.get_by_role("group", name="Operations of").get_by_role(
            "button", name=re.compile(rf"^{label}\b")
        )

    def step(self, title: str) -> Locator:
        """A step's title in the list of steps, pressed where the step is the active one."""
        steps = self.page.get_by_role("region", name="Steps")
        return steps.get_by_role("button", name=re.compile(rf"^{re.escape(title)} "))

    def heatmap(self, label: str) -> Locator:
        return self.results.get_by_role("application", name=re.compile(rf"\b{re.escape(label)}\."))

    @abstractmethod
    def show_module(self, path: str, name: str) -> None:
        """Find a module in the tree by its path and show its listing; `name` is what its row is called."""

    @abstractmethod
    def choose(self, label: str) -> None:
        """Select an operation of the listing."""

    @abstractmethod
    def act(self, name: str, key: str) -> None:
        """Do what a button of the listing's toolbar does."""

    @abstractmethod
    def limit_to_last(self, strip: str) -> None:
        """Limit the active step to the last token of a prompt's strip."""

    @abstractmethod
    def press(self, button: Locator) -> None:
        """Press a button anywhere on the page."""

    @abstractmethod
    def type_in(self, box: Locator, text: str) -> None:
        """Write into a text field and apply it."""

    @abstractmethod
    def open_tab(self, name: str) -> None:
        """Bring a kind of result to the front."""

    @abstractmethod
    def pick(self, group: str, option: str) -> None:
        """Choose one of a group of radio buttons."""

    @abstractmethod
    def look_at_entry(self, heatmap: Locator) -> None:
        """Have the heatmap tell one of its entries."""

    @abstractmethod
    def take(self, cell: Locator) -> None:
        """Make a cell of the sweep's grid the active step."""

    def set_source(self, text: str) -> None:
        self.press(self.lab.get_by_role("button", name="Add source prompt"))
        box = self.lab.get_by_role("textbox", name="Source prompt")
        expect(box).to_be_visible()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")
        expect(self.lab.get_by_role("listbox", name="Source tokens")).to_be_visible()


class Mouse(Hands):
    def show_module(self, path: str, name: str) -> None:
        self.lab.get_by_role("searchbox").fill(path)
        self.lab.get_by_role("tree").get_by_role("treeitem", name=name, exact=True).click()

    def choose(self, label: str) -> None:
        self.chip(label).click()
        expect(self.chip(label)).to_have_attribute("aria-pressed", "true")

    def act(self, name: str, key: str) -> None:
        self.actions.get_by_role("button", name=re.compile(f"^{name}")).click()

    def limit_to_last(self, strip: str) -> None:
        self.lab.get_by_role("listbox", name=strip).get_by_role("option").last.click()

    def press(self, button: Locator) -> None:
        button.click()

    def type_in(self, box: Locator, text: str) -> None:
        box.click()
        box.fill(text)
        box.press("Enter")

    def set_source(self, text: str) -> None:
        self.press(self.lab.get_by_role("button", name="Add source prompt"))
        self.lab.get_by_role("textbox", name="Source prompt").fill(text)
        self.lab.get_by_role("button", name="Apply").click()
        expect(self.lab.get_by_role("listbox", name="Source tokens")).to_be_visible()

    def open_tab(self, name: str) -> None:
        self.results.get_by_role("tab", name=name).click()

    def pick(self, group: str, option: str) -> None:
        self.results.get_by_role("group", name=group).get_by_text(option, exact=True).click()

    def look_at_entry(self, heatmap: Locator) -> None:
        heatmap.scroll_into_view_if_needed()
        heatmap.hover(position={"x": 40, "y": 8})

    def take(self, cell: Locator) -> None:
        cell.click()


class Keyboard(Hands):
    def show_module(self, path: str, name: str) -> None:
        self._tab_to(self.lab.get_by_role("searchbox"))
        self.page.keyboard.type(path)
        wanted = self.lab.get_by_role("tree").get_by_role("treeitem", name=name, exact=True)
        expect(wanted).to_be_visible()
        self._arrow_to(wanted, "ArrowDown")
        self.page.keyboard.press("Enter")

    def choose(self, label: str) -> None:
        self._tab_to(self.page.get_by_role("group", name="Operations of"))
        self.page.keyboard.press("Home")
        self._arrow_to(self.chip(label), "ArrowDown")
        self.page.keyboard.press("Enter")
        expect(self.chip(label)).to_have_attribute("aria-pressed", "true")

    def act(self, name: str, key: str) -> None:
        self._tab_to(self.page.get_by_role("group", name="Operations of"))
        self.page.keyboard.press(key)

    def limit_to_last(self, strip: str) -> None:
        self._tab_to(self.lab.get_by_role("listbox", name=strip))
        self.page.keyboard.press("End")
        self.page.keyboard.press("Enter")

    def press(self, button: Locator) -> None:
        self._tab_to(button)
        self.page.keyboard.press("Enter")

    def type_in(self, box: Locator, text: str) -> None:
        self._tab_to(box)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")

    def open_tab(self, name: str) -> None:
        self._tab_to(self.results.get_by_role("tablist"))
        self.page.keyboard.press("Home")
        self._arrow_to(self.results.get_by_role("tab", name=name), "ArrowRight")

    def pick(self, group: str, option: str) -> None:
        choice = self.results.get_by_role("group", name=group)
        self._tab_to(choice)
        self._arrow_to(choice.get_by_role("radio", name=option, exact=True), "ArrowRight")

    def look_at_entry(self, heatmap: Locator) -> None:
        self._tab_to(heatmap)
        self.page.keyboard.press("ArrowUp")
        self.page.keyboard.press("ArrowLeft")

    def take(self, cell: Locator) -> None:
        self._tab_to(self.results.get_by_role("grid"))
        self.page.keyboard.press("Home")
        self.page.keyboard.press("PageDown")
        row, column = (int(number) for number in (cell.get_attribute("data-cell") or "").split())
        for key, times in (("ArrowUp", row), ("ArrowRight", column)):
            for _ in range(times):
                self.page.keyboard.press(key)
        self.page.keyboard.press("Enter")

    def _tab_to(self, goal: Locator) -> None:
        """Tab until the focus is on the goal or in it."""
        expect(goal).to_be_visible()
        for _ in range(MOST_STOPS):
            if goal.evaluate("goal => goal.contains(document.activeElement)"):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not come to {goal}.")

    def _arrow_to(self, goal: Locator, key: str) -> None:
        """Press an arrow until the focus is on the goal."""
        for _ in range(MOST_STOPS):
            if goal.evaluate("goal => goal === document.activeElement"):
                return
            self.page.keyboard.press(key)
            # The tree moves the focus with the next frame.
            self.page.evaluate("() => new Promise(requestAnimationFrame)")
        raise AssertionError(f"{key} does not come to {goal}.")
