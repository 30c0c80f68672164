"""Recognising an operation when the function around it has changed.

Labels are made of variables' names and of counting, so a new version of a library moves them. A recipe therefore keeps
a fingerprint beside each label. Where the function has changed, the operation is found again by its structure if
exactly one operation fits and fitted then; in every other case the recipe stops and lists the candidates.
"""

from __future__ import annotations

import difflib

from msgspec import Struct

from ..engine import Listing, Operation
from ..engine.listing import CALL, RETURN
from .errors import MovedOperationError
from .syntax import Look, look_at


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
        before, after: callees of the two calls before and after it.
        twins: how many operations of the function had the same callee; the same callee and expression; the same
            statement, branch, `before` and `after` as well. 1 means that it was the only one.
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


def take_fingerprint(listing: Listing, label: str) -> Fingerprint:
    """The fingerprint of the operation `label`.

    Args:
        listing: of its function, with everything listed.

    Raises:
        KeyError: the function has no such operation.
    """
    index = listing[label].index
    looks = look_at(listing).operations
    look = looks[index]
    before, after = _neighbours(looks, index)
    return Fingerprint(
        function=listing.name,
        digest=look_at(listing).digest,
        label=label,
        kind=look.kind,
        index=index,
        callee=look.callee,
        expression=look.expression,
        statement=look.statement,
        branch=look.branch,
        before=before,
        after=after,
        twins=_twins(looks, look, before, after),
    )


def find_again(fingerprint: Fingerprint, listing: Listing, site: str) -> str:
    """The label that the fingerprint's operation has in `listing`.

    Where the function is the same but for names, layout and annotations, the operation is the one at the same place in
    evaluation order. Otherwise three descriptions are tried: everything about it; its callee and expression; its
    callee. Each must have fitted one operation alone when the fingerprint was taken and must fit one alone now. The
    last two do not tell one computation from another where the callee is a method of a local variable, a function of
    no owner or an operator, so there the surroundings have to speak for it as well.

    Args:
        listing: of the present function, with everything listed.
        site: for messages.

    Raises:
        MovedOperationError: none, or more than one, can be the operation.
    """
    found = look_at(listing)
    operations, looks = listing.operations, found.operations
    if found.digest == fingerprint.digest and fingerprint.index < len(operations):
        return operations[fingerprint.index].label
    alike = [i for i, look in enumerate(looks) if (look.kind, look.callee) == (fingerprint.kind, fingerprint.callee)]
    same_expression = [i for i in alike if looks[i].expression == fingerprint.expression]
    same_all = [i for i in same_expression if _same_surroundings(looks, i, fingerprint)]
    stems = {_stem(operations[i].label) for i in alike}
    for matching, twins in zip((same_all, same_expression, alike), reversed(fingerprint.twins), strict=True):
        if len(matching) == 1 and twins == 1:
            index = matching[0]
            label, stem = operations[index].label, _stem(fingerprint.label)
            # The old name is in use at another operation like it: the two may have changed places.
            if _stem(label) != stem and stem in stems:
                break
            if matching is same_all or _tells_itself(fingerprint) or _corroborated(looks, index, fingerprint):
                return label
    candidates = tuple(operations[i].label for i in _by_likeness(operations, looks, fingerprint))
    many = "several operations of it are alike" if len(alike) > 1 else "none of its operations is the same"
    listed = ", ".join(candidates[:5]) or "none of its kind"
    raise MovedOperationError(
        f"{site}: the recipe was made on another version of {fingerprint.function}, and {fingerprint.label} "
        f"({fingerprint.callee or fingerprint.kind}) cannot be found again for certain: {many}. "
        f"Candidates: {listed}. Put the right label into the recipe and remove its fingerprint.",
        site,
        candidates,
    )


def _stem(label: str) -> str:
    return label.rpartition("_")[0]


def _tells_itself(fingerprint: Fingerprint) -> bool:
    """Whether the callee alone says which computation it is: a part of the module, or the function's one `return`."""
    return fingerprint.callee.startswith(("self.", "cls.")) or fingerprint.kind == RETURN


def _corroborated(looks: tuple[Look, ...], index: int, fingerprint: Fingerprint) -> bool:
    """Whether the operation stands in the same statement, or on the same branch beside one of the same neighbours."""
    look = looks[index]
    before, after = _neighbours(looks, index)
    beside = (bool(before) and before == fingerprint.before) or (bool(after) and after == fingerprint.after)
    return look.statement == fingerprint.statement or (look.branch == fingerprint.branch and beside)


def _neighbours(looks: tuple[Look, ...], index: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Callees of the two calls before and the two after; what is not a call may come and go with a temporary name."""
    before = [look.callee for look in looks[:index] if look.kind == CALL][-2:]
    after = [look.callee for look in looks[index + 1 :] if look.kind == CALL][:2]
    return tuple(before), tuple(after)


def _twins(
    looks: tuple[Look, ...], look: Look, before: tuple[str, ...], after: tuple[str, ...]
) -> tuple[int, int, int]:
    alike = [i for i, other in enumerate(looks) if (other.kind, other.callee) == (look.kind, look.callee)]
    same_expression = [i for i in alike if looks[i].expression == look.expression]
    same_all = [i for i in same_expression if looks[i] == look and _neighbours(looks, i) == (before, after)]
    return len(alike), len(same_expression), len(same_all)


def _same_surroundings(looks: tuple[Look, ...], index: int, fingerprint: Fingerprint) -> bool:
    look = looks[index]
    return (look.statement, look.branch) == (fingerprint.statement, fingerprint.branch) and _neighbours(
        looks, index
    ) == (fingerprint.before, fingerprint.after)


def _by_likeness(operations: tuple[Operation, ...], looks: tuple[Look, ...], fingerprint: Fingerprint) -> list[int]:
    """Operations of the same kind, the likeliest first; without any likeness none."""

    def likeness(index: int) -> float:
        look = looks[index]
        names = difflib.SequenceMatcher(None, look.callee, fingerprint.callee).ratio()
        return (
            2 * (look.callee == fingerprint.callee)
            + (look.expression == fingerprint.expression)
            + (look.statement == fingerprint.statement)
            + (look.branch == fingerprint.branch) / 2
            + (operations[index].label == fingerprint.label) / 2
            + names
        )

    kind = [i for i, look in enumerate(looks) if look.kind == fingerprint.kind]
    return sorted((i for i in kind if likeness(i) >= 0.8), key=likeness, reverse=True)
