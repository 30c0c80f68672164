"""A run's answer: the table, and in words what changed."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...experiments import Result, SiteReport, TokenRow
from .. import wire
from ..history import Captured
from ..naming import short_site

_NOT_FINITE = "The output has NaN or infinity at the last position, so there is no likeliest token."


def answer_view(run: str, result: Result, captured: Mapping[wire.Target, Captured] | None = None) -> wire.Answer:
    """What a run gave.

    Args:
        captured: the values that pictures can be asked of.
    """
    # JSON has no NaN and no infinity. A masked token has no place in the table; where NaN has spread, nothing has.
    rows = tuple(filter(_is_finite, result.rows))
    return wire.Answer(
        run=run,
        headline=headline(result) if rows or not result.rows else _NOT_FINITE,
        rows=rows,
        kl=_finite(result.kl),
        max_difference=_finite(result.max_difference),
        edited=result.has_edits,
        reports=result.sites,
        captured=tuple(_captured(target, value) for target, value in (captured or {}).items()),
        seconds=result.timing.total,
        notes=result.notes,
    )


def _is_finite(row: TokenRow) -> bool:
    numbers = (row.clean_logit, row.edited_logit, row.clean_probability, row.edited_probability)
    return all(map(math.isfinite, numbers))


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _captured(target: wire.Target, value: Captured) -> wire.CapturedView:
    tensor = value.edited
    facts = wire.TensorFacts(target.element or (), tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
    return wire.CapturedView(target, label_of(target), (facts,))


def label_of(target: wire.Target) -> str:
    """A value in a few words: `h.11 self_act_0 input`."""
    label = short_site(target.site)
    if target.argument is not None:
        return f"{label} {target.argument}"
    if target.io == "input":
        label += " input"
    if target.call is not None:
        label += f" call {target.call}"
    if target.element:
        label += f" [{'.'.join(map(str, target.element))}]"
    return label


def headline(result: Result) -> str:
    """What the edits did to the answer, or the one reason why they did nothing."""
    before = _first(result, edited=False)
    if not result.has_edits:
        why = _why_nothing(result)
        return why or (_said(before, edited=False) if before is not None else "The model ran.")
    nothing = _nothing(result)
    if nothing:
        return nothing
    after = _first(result, edited=True)
    if before is None or after is None:
        return f"The output changed by up to {result.max_difference:.3g}."
    if before.token_id == after.token_id:
        probabilities = f"{_share(before.clean_probability)} → {_share(before.edited_probability)}"
        return f"{_shown(before.token)} stays on top, {probabilities}"
    return f"{_said(before, edited=False)} → {_said(after, edited=True)}"


def _first(result: Result, edited: bool) -> TokenRow | None:
    return next((row for row in result.rows if (row.edited_rank if edited else row.clean_rank) == 0), None)


def _edit_reports(result: Result) -> list[SiteReport]:
    edits = set(result.recipe.edits)
    return [report for report in result.sites if report.step in edits]


def _why_nothing(result: Result) -> str:
    """Why no edit was carried out, where edits were meant."""
    reports = _edit_reports(result)
    if not reports:
        return ""
    return "The operation never ran." if len(reports) == 1 else "None of the edited operations ran."


def _nothing(result: Result) -> str:
    """Which way of having no effect it is, where no edit has one."""
    outcomes = {report.outcome for report in _edit_reports(result)}
    if outcomes <= {"never ran", "no downstream effect"} and "no downstream effect" in outcomes:
        return "No downstream effect: the output does not depend on what was edited."
    if outcomes <= {"never ran", "no downstream effect", "effect zero to rounding"}:
        return "The effect is zero to rounding."
    return ""


def _said(row: TokenRow, edited: bool) -> str:
    return f"{_shown(row.token)} {_share(row.edited_probability if edited else row.clean_probability)}"


def _share(probability: float) -> str:
    return f"{probability:.2f}" if not probability < 0.01 or probability == 0 else f"{probability:.0e}"


def _shown(token: str) -> str:
    return token.replace(" ", "\u2423")
