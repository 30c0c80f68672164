"""Listings as text and as HTML that needs no kernel.

The text form is the field's: with W the width of the longest label, an operation's row is ` label ->  n code`, further
operations that start on the same row follow as ` label ->  + ...`, and every other row keeps the code's column.
"""

from __future__ import annotations

from collections import defaultdict
from html import escape

from .listing import Listing, Operation

CONTEXT_ROWS = 5


def _by_line(listing: Listing) -> dict[int, list[Operation]]:
    grouped: dict[int, list[Operation]] = defaultdict(list)
    for operation in listing.operations:
        grouped[operation.line].append(operation)
    return grouped


def render_text(listing: Listing) -> str:
    """The listing as monospaced text, one line a row."""
    width = max((len(label) for label in listing.labels), default=0)
    grouped = _by_line(listing)
    lines = []
    for line, row in enumerate(listing.rows, start=-1):
        number = f"{line:3d}" if line >= 0 else "  *"
        first, *further = grouped.get(line, [None])
        gutter = " " * (width + 4) if first is None else f" {first.label:{width}} ->"
        lines.append(f"{gutter}{number} {row}")
        indent = row[: len(row) - len(row.lstrip())]
        lines += [f" {operation.label:{width}} ->  + {indent}..." for operation in further if operation is not None]
    return "\n".join(lines)


def render_operation(listing: Listing, operation: Operation, rows: int = CONTEXT_ROWS) -> str:
    """The operation's row between `-->` and `<--`, inside `rows` rows of context on either side."""
    first = max(-1, operation.line - rows)
    last = min(len(listing.rows) - 2, operation.line + rows)
    lines = [
        f"{operation.label} in {listing.name} ({listing.filename}:{listing.first_line + 1 + operation.line})",
        "",
    ]
    for line in range(first, last + 1):
        number = f"{line:3d}" if line >= 0 else "  *"
        row = listing.rows[line + 1]
        lines.append(f"--> {number} {row} <--" if line == operation.line else f"    {number} {row}".rstrip())
    return "\n".join(lines)


_STYLE = (
    ".nnsl-src{font:12.5px/1.5 var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace);"
    "border-collapse:collapse;color:inherit;background:transparent}"
    ".nnsl-src td{padding:0 6px;border:0;text-align:left;vertical-align:top;white-space:pre;background:transparent}"
    ".nnsl-src td:first-child{text-align:right;white-space:normal}"
    ".nnsl-src .n{opacity:.6;text-align:right;user-select:none}"
    ".nnsl-src .op{border:1px solid currentColor;border-radius:9px;padding:0 7px;margin-left:3px;white-space:pre;"
    "font-size:11.5px;opacity:.85}"
    ".nnsl-src tr.hit{background:rgba(120,140,200,.18)}"
)


def lab_line(root: str, **selected: str) -> str:
    """The line of code that opens the Lab where `selected` says: `model.lab(module="transformer.h[0].mlp")`.

    Args:
        root: the wrapper's name.
        selected: an argument of `Lab`, with an address that begins with the wrapper's name.
    """
    [(name, address)] = selected.items()
    site = address.removeprefix(root).removeprefix(".")
    quote = "'" if '"' in site else '"'
    return f"{root}.lab({name}={quote}{site}{quote})" if site else f"{root}.lab()"


def render_lab_line(line: str) -> str:
    """A row under a listing or tree, as HTML: how to open it in the Lab."""
    return (
        f'<div class="nnsl-open" style="opacity:.75;margin-top:4px">Open in the Lab: <code>{escape(line)}</code></div>'
    )


def render_html(listing: Listing, marked: Operation | None = None) -> str:
    """The listing as a table with inline style, coloured by whatever it is shown in."""
    grouped = _by_line(listing)
    rows = []
    for line, row in enumerate(listing.rows, start=-1):
        if line == len(listing.rows) - 2 and not row:
            continue
        chips = " ".join(f'<span class="op">{escape(o.label)}</span>' for o in grouped.get(line, ()))
        hit = ' class="hit"' if marked is not None and marked.line == line else ""
        number = line if line >= 0 else "*"
        rows.append(f'<tr{hit}><td>{chips}</td><td class="n">{number}</td><td>{escape(row)}</td></tr>')
    title = escape(f"{listing.name}, operations and source")
    return f'<style>{_STYLE}</style><table class="nnsl-src" aria-label="{title}"><tbody>{"".join(rows)}</tbody></table>'
