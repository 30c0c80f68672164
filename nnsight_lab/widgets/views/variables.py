"""Names in a listing whose values can be shown, and which value each name has where it stands.

A name that the function binds has at each place the value of the latest binding before it that ran; without one it is
a parameter. A binding counts from the end of its statement on, so that in `x = f(x)` the second `x` is the earlier
one. "Before" is the order of the text, which is the order of execution but in loops: there a name read above its
binding has the value of the pass before, and is shown with the latest.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...engine import Listing
from ...engine.listing import NAME
from .. import wire

Function = ast.FunctionDef | ast.AsyncFunctionDef
# A row of the listing (0 is the `def` row) and a column in characters.
Spot = tuple[int, int]
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True)
class _Occurrence:
    """A name in the text; `counts_from` is where a binding takes effect, None for a name that is read."""

    text: str
    spot: Spot
    counts_from: Spot | None


def variables_of(
    listing: Listing, site: str, site_of: Callable[[str], str], ran: Callable[[str], bool | None]
) -> tuple[wire.Variable, ...]:
    """Every name in the listing with the value that it has there.

    Args:
        site: of the listing: a module's path, or the operation stepped into.
        site_of: the full site of a label.
        ran: whether the labelled binding ran; None where no run has told.
    """
    function = _parse(listing)
    if function is None:
        return ()
    parameters = {argument.arg for argument in _arguments(function)}
    labels = {(o.line + 1, o.column): o.label for o in listing.operations if o.kind == NAME}
    occurrences = list(_occurrences(function, listing))
    bindings: dict[str, list[tuple[Spot, str]]] = {}
    for occurrence in occurrences:
        label = labels.get(occurrence.spot)
        if occurrence.counts_from is not None and label is not None:
            bindings.setdefault(occurrence.text, []).append((occurrence.counts_from, label))

    def target(occurrence: _Occurrence) -> wire.Target | None:
        if occurrence.counts_from is not None and occurrence.spot in labels:
            return wire.Target(site_of(labels[occurrence.spot]))
        own = bindings.get(occurrence.text, [])
        before = [label for counts, label in own if counts <= occurrence.spot and ran(label) is not False]
        if before:
            return wire.Target(site_of(before[-1]))
        if occurrence.text in parameters:
            return wire.Target(site, argument=occurrence.text)
        after = [label for counts, label in own if counts > occurrence.spot and ran(label)]
        return wire.Target(site_of(after[-1])) if after else None

    found = []
    for occurrence in sorted(occurrences, key=lambda one: one.spot):
        value = target(occurrence) if occurrence.text != "self" else None
        if value is not None:
            row, column = occurrence.spot
            end = column + len(occurrence.text)
            found.append(wire.Variable(row - 1, column, end, occurrence.text, value))
    return tuple(found)


def _parse(listing: Listing) -> Function | None:
    try:
        module = ast.parse("\n".join(listing.rows))
    except SyntaxError:  # a lambda that was cut out of an expression
        return None
    first = module.body[0] if module.body else None
    return first if isinstance(first, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


def _arguments(function: Function) -> list[ast.arg]:
    arguments = function.args
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _occurrences(function: Function, listing: Listing) -> Iterator[_Occurrence]:
    """The names of the function's own scope: those in nested functions mean other frames."""

    def spot(line: int, column: int) -> Spot:
        # `ast` counts columns in bytes.
        return line - 1, len(listing.rows[line - 1].encode()[:column].decode(errors="ignore"))

    for argument in _arguments(function):
        yield _Occurrence(argument.arg, spot(argument.lineno, argument.col_offset), None)

    def visit(node: ast.AST, effect: ast.AST | None) -> Iterator[_Occurrence]:
        if isinstance(node, _SCOPES):
            return
        if isinstance(node, ast.Name):
            counts = None
            if isinstance(node.ctx, ast.Store):
                end = effect if effect is not None else node
                counts = spot(end.end_lineno or node.lineno, end.end_col_offset or 0)  # type: ignore[attr-defined]
            yield _Occurrence(node.id, spot(node.lineno, node.col_offset), counts)
            return
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from visit(child, _effect(node, name, effect))

    for statement in function.body:
        yield from visit(statement, None)


def _effect(node: ast.AST, field: str, effect: ast.AST | None) -> ast.AST | None:
    """After what a name that is bound below `node.field` has its new value; None is after the name itself."""
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) and field in ("targets", "target"):
        return node
    if isinstance(node, (ast.For, ast.AsyncFor)) and field == "target":
        return node.iter
    if isinstance(node, (ast.Tuple, ast.List, ast.Starred)):
        return effect
    return None
