"""Recognising an operation when the function around it has changed."""

from __future__ import annotations

from msgspec import Struct


class Fingerprint(Struct, frozen=True, forbid_unknown_fields=True):
    """What one operation looked like in the function that a recipe was made on.

    Attributes:
        function: qualified name of the function.
        digest: SHA-256 of its syntax tree, names of local variables, annotations, docstring and layout left out.
        label: of the operation.
        kind: "call", "operator", "name" or "return".
        index: the operation's place in evaluation order.
        callee: what is called, local variables written as `_`: `self.act`, `_.update`.
        expression: digest of the expression, local variables left out.
        statement: digest of the statement around it, local variables left out.
        branch: the conditions, loops and `with` blocks around it, as text, local variables left out.
        before, after: `callee` of the two operations before and after it.
        twins: how many operations of the function had the same callee; the same callee and expression; the same of
            everything from `kind` to `after` but `index`.
    """

    function: str
    digest: str
    label: str
    kind: str
    index: int
    callee: str
    expression: str
    statement: str
    branch: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    twins: tuple[int, int, int]
