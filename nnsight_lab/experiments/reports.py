"""What became of each step, in one of six outcomes and a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace
from torch import Tensor

from .passes import Pass
from .plan import Plan, Visit
from .planning import matches, place_of
from .reach import rounding_level
from .recipe import Recipe
from .result import Outcome, SiteReport
from .sitechange import SiteChange
from .steps import AnyStep, Capture


def site_reports(
    recipe: Recipe,
    plan: Plan,
    clean: Pass,
    clean_logits: Tensor,
    edited_logits: Tensor,
    reached: dict[int, bool] | None,
    changes: Mapping[int, SiteChange],
) -> tuple[SiteReport, ...]:
    """One report for each step of the recipe.

    Args:
        clean: the clean run, which knows what was never reached and why.
        reached: by step, whether the output depends on the edited entries; None where that was not looked into.
        changes: by step, what the edit did to the value at its site.
    """
    # Outputs can be large, so they are compared only where an edit asks what it did.
    effect: tuple[Outcome, str] | None = None
    carried_out = {action.step for action in plan.actions}
    reports = []
    for number, step in enumerate(recipe.steps):
        place = place_of(step)
        visits = [visit for visit in plan.visits if matches(visit, place, step.element)]
        outcome: Outcome
        if not step.enabled:
            outcome, message = "disabled", "The step is switched off."
        elif not visits:
            outcome, message = "never ran", clean.reasons.get(place, f"{place} was never reached.")
        elif number not in carried_out:
            times = "1 call" if len(visits) == 1 else f"{len(visits)} calls"
            outcome = "never ran"
            message = f"Call {step.call} of {place} was meant (they count from 0), but the forward made {times}."
        elif isinstance(step, Capture):
            outcome, message = "captured", "The value was kept."
        elif reached is not None and not reached[number]:
            outcome, message = "no downstream effect", _NO_EFFECT
        else:
            effect = effect or _effect(clean_logits, edited_logits, len(recipe.edits) > 1, reached is not None)
            outcome, message = effect
        reports.append(_report(number, step, visits, outcome, message, changes.get(number)))
    return tuple(reports)


_NO_EFFECT = (
    "The output that is read does not depend on the edited entries: replacing them by large random numbers "
    "left every bit of it as it was."
)


def _effect(clean: Tensor, edited: Tensor, several: bool, known: bool) -> tuple[Outcome, str]:
    """The outcome of edits that reach the output."""
    if clean.shape != edited.shape:
        return "changed", f"The output changed its shape from {list(clean.shape)} to {list(edited.shape)}."
    difference = (edited.double() - clean.double()).abs()
    both_infinite = (clean == edited) | (clean.isnan() & edited.isnan())
    largest = float(difference.masked_fill(both_infinite, 0.0).max()) if difference.numel() else 0.0
    level = rounding_level(clean)
    reach = "The output depends on the edited entries. " if known else "Whether they reach it was not looked into. "
    if largest <= level:
        return (
            "effect zero to rounding",
            f"{reach}The edits changed no number of the output by more than {largest:.2g} "
            f"(rounding of {str(clean.dtype).removeprefix('torch.')} goes up to {level:.2g}).",
        )
    cause = "All edits together changed the output" if several else "The edit changed the output"
    return "changed", f"{cause} by up to {largest:.4g}."


def _report(
    number: int, step: AnyStep, visits: list[Visit], outcome: Outcome, message: str, change: SiteChange | None
) -> SiteReport:
    kind = type(step).__name__.lower()
    if not visits:
        return SiteReport(number, kind, step.site, step.io, outcome, message)
    first = visits[0]
    found = SiteReport(
        number, kind, step.site, step.io, outcome, message, first.shape, first.dtype, first.device, len(visits)
    )
    if change is None:
        return found
    return replace(found, entries=change.entries, change=change.largest, relative_change=change.relative)
