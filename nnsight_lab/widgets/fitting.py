"""Keeping the synced traits within the size that a saved notebook can bear.

Every kind has a share. What is longer is cut at its least needed end, and says so in the place of what was cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from .wire import Answer, CodeView, History, ListingBlock, ListingView, Snapshot, Span, View

# Bytes of JSON: of all traits together, and of each kind.
BUDGET_BYTES = 400_000
SHARES = {"_view": 70_000, "_listing": 125_000, "_answer": 70_000, "_history": 40_000, "_code": 40_000}
_SNAPSHOT_SHARE = BUDGET_BYTES - sum(SHARES.values()) - 2_000  # the status has the rest
SHARES["_snapshot"] = _SNAPSHOT_SHARE

_Item = TypeVar("_Item")


def size(data: Any) -> int:
    """Bytes of JSON."""
    return len(msgspec.json.encode(data))


def fit_listing(view: ListingView) -> ListingView:
    """The listing with rows cut off the end of its longest block until it fits."""
    blocks = list(view.blocks)
    while size(blocks) > SHARES["_listing"] and any(len(block.rows) > 1 for block in blocks):
        number = max(range(len(blocks)), key=lambda n: len(blocks[n].rows))
        blocks[number] = _cut(blocks[number], max(1, len(blocks[number].rows) // 2))
    return msgspec.structs.replace(view, blocks=tuple(blocks))


def _cut(block: ListingBlock, rows: int) -> ListingBlock:
    """The first rows of a block, and what is on them."""
    last = rows - 2
    note = (Span("comment", "# the rest is too long to be shown here: print(model....source) shows it"),)
    return msgspec.structs.replace(
        block,
        rows=(*block.rows[:rows], note),
        operations=tuple(operation for operation in block.operations if operation.line <= last),
        variables=tuple(variable for variable in block.variables if variable.line <= last),
    )


def fit_history(history: History) -> History:
    """The history with its latest entries."""
    entries = _last_that_fit(history.entries, SHARES["_history"])
    return history if len(entries) == len(history.entries) else History(entries)


def fit_answer(answer: Answer) -> Answer:
    """The answer with the first rows of its table."""
    if size(answer) <= SHARES["_answer"]:
        return answer
    note = "The answer is too long to be shown whole: lab.result has it all."
    bare = msgspec.structs.replace(answer, rows=(), captured=(), notes=(*answer.notes[:20], note))
    room = SHARES["_answer"] - size(bare)
    rows = _first_that_fit(answer.rows, room * 2 // 3)
    captured = _first_that_fit(answer.captured, room // 3)
    return msgspec.structs.replace(bare, rows=rows, captured=captured)


def fit_code(view: CodeView) -> CodeView:
    if size(view) <= SHARES["_code"]:
        return view
    return CodeView("", "The code is too long to be shown here: print(lab.code()) shows it.")


def fit_view(view: View) -> View:
    """The view with prompts whose tokens fit: of a longer one only the text and the length are shown."""
    if size(view) <= SHARES["_view"]:
        return view
    for field in ("source", "base"):
        prompt = getattr(view, field)
        cut = msgspec.structs.replace(prompt, tokens=prompt.tokens[:200], text=None)
        view = msgspec.structs.replace(view, **{field: cut})
    return view


def fit_snapshot(view: Snapshot) -> Snapshot | None:
    """The picture, or None where it is too long."""
    return view if size(view) <= SHARES["_snapshot"] else None


def _first_that_fit(items: Sequence[_Item], room: int) -> tuple[_Item, ...]:
    kept: list[_Item] = []
    for item in items:
        room -= size(item) + 1
        if room < 0:
            break
        kept.append(item)
    return tuple(kept)


def _last_that_fit(items: Sequence[_Item], room: int) -> tuple[_Item, ...]:
    return _first_that_fit(items[::-1], room)[::-1]


FIT: dict[str, Callable[[Any], Any]] = {
    "_view": fit_view,
    "_listing": fit_listing,
    "_answer": fit_answer,
    "_history": fit_history,
    "_code": fit_code,
    "_snapshot": fit_snapshot,
}
