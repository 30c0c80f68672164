"""Steps as the inspector shows them: what, where, which positions, and why not."""

from __future__ import annotations

from collections.abc import Sequence

from ...experiments import AnyStep, Edit, Patch, ScopeError, SiteReport, Token
from ...experiments.steps import Indices, Position, is_slice
from ...experiments.tokens import resolve_positions
from .. import wire
from ..naming import short_site, site_path
from .prompts import alignment

MINUS = "\u2212"


def step_view(
    step: AnyStep,
    base: wire.PromptView,
    source: wire.PromptView,
    report: SiteReport | None = None,
) -> wire.StepView:
    """A step on two prompts.

    Args:
        report: what became of it in the run on screen.
    """
    path = site_path(step.site)
    name = path.operations[-1] if path.operations else short_site(step.site)
    title = f"{type(step).__name__} {name}" + (" input" if step.io == "input" else "")
    if isinstance(step, Patch):
        title += f" from {_origin(step)}"
    positions, taken, error = None, None, ""
    if isinstance(step, Edit):
        try:
            positions = _resolved(step.positions, base, "positions")
            taken = _taken(step, positions, base, source)
        except ScopeError as found:
            error = str(found)
    parts = [
        short_site(path.prefix(len(path.operations) - 1)) if path.operations else "",
        *_scope(step, base, positions, taken, source),
    ]
    return wire.StepView(
        step=step,
        title=title,
        where=" · ".join(part for part in parts if part),
        base_positions=positions,
        source_positions=taken,
        error=error,
        report=report,
    )


def _origin(step: Patch) -> str:
    place = f" {short_site(step.from_site)}" if step.from_site is not None else ""
    return f"{step.from_prompt}{place}"


def _resolved(positions: tuple[Position, ...] | None, prompt: wire.PromptView, where: str) -> tuple[int, ...] | None:
    if positions is None:
        return None
    if prompt.length is None:
        raise ScopeError(f"{where}: the input is not tokens, so it has no positions.")
    return resolve_positions(positions, [token.text for token in prompt.tokens], prompt.length, where)


def _taken(
    step: Edit, positions: tuple[int, ...] | None, base: wire.PromptView, source: wire.PromptView
) -> tuple[int, ...] | None:
    """The positions that a patch takes its values from. Raises ScopeError where they are not known."""
    if not isinstance(step, Patch):
        return None
    origin = base if step.from_prompt == "base" else source
    if step.from_prompt == "source":
        if source.length is None and source.text is None:
            raise ScopeError("There is no source prompt to patch from: set one.")
        if source.error:
            raise ScopeError(f"source: {source.error}")
    if step.from_positions is not None:
        taken = _resolved(step.from_positions, origin, "from_positions")
        if positions is not None and taken is not None and len(taken) != len(positions):
            raise ScopeError(
                f"from_positions: {len(taken)} positions for the {len(positions)} that are patched; there must be one "
                "for each."
            )
        return taken
    if origin.length == base.length or base.length is None:
        return positions
    lengths = f"The prompts have {base.length} and {origin.length} tokens"
    if step.positions is None:
        raise ScopeError(f"{lengths}, so that not every position has a counterpart: choose the positions to patch.")
    if any(isinstance(one, Token) or (isinstance(one, str) and not is_slice(one)) for one in step.positions):
        raise ScopeError(f"{lengths}: choose the source positions that the chosen tokens are taken from.")
    taken = _resolved(step.positions, origin, "positions in the source prompt")
    if taken is not None and positions is not None and len(taken) != len(positions):
        raise ScopeError(f"{lengths}: choose the source positions that belong to positions {list(positions)}.")
    if taken is not None and positions is not None:
        _check_counterparts(positions, taken, base, origin)
    return taken


def _check_counterparts(
    positions: tuple[int, ...], taken: tuple[int, ...], base: wire.PromptView, source: wire.PromptView
) -> None:
    """Raises ScopeError where a number means a token in the source prompt that is not the counterpart of its own."""
    pairs = alignment(base, source).source_positions
    for position, number in zip(positions, taken, strict=True):
        if not pairs or pairs[position] == number:
            continue
        here = f"position {position} “{base.tokens[position].text}”"
        if pairs[position] is None:
            raise ScopeError(
                f"The prompts have {base.length} and {source.length} tokens, and {here} has no counterpart in the "
                "source prompt: choose the source position that it takes its values from."
            )
        raise ScopeError(
            f"The counterpart of {here} is position {pairs[position]} of the source prompt, not {number}: write "
            f"{position - len(base.tokens)}, counted from the end, or choose the source position."
        )


def _scope(
    step: AnyStep,
    base: wire.PromptView,
    positions: tuple[int, ...] | None,
    taken: tuple[int, ...] | None,
    source: wire.PromptView,
) -> list[str]:
    parts = []
    if step.call is not None:
        parts.append(f"call {step.call}")
    if step.element is not None:
        parts.append(f"element {'.'.join(map(str, step.element))}")
    if not isinstance(step, Edit):
        return parts
    if step.positions is not None:
        parts.append(_where(step.positions, positions, base, taken, source))
    elif base.length is not None:
        parts.append("all positions")
    if step.heads is not None:
        parts.append(f"{_plural('head', step.heads)} {_listed(step.heads)}")
    parts.append(f"{_plural('neuron', step.index)} {_listed(step.index)}" if step.index is not None else "all neurons")
    return parts


def _where(
    written: tuple[Position, ...],
    positions: tuple[int, ...] | None,
    base: wire.PromptView,
    taken: tuple[int, ...] | None,
    source: wire.PromptView,
) -> str:
    named = ", ".join(_position(one) for one in written)
    text = f"{'position' if len(written) == 1 else 'positions'} {named}"
    if positions is not None and len(positions) == 1 and isinstance(written[0], int):
        text += f" “{base.tokens[positions[0]].text}”" if base.tokens else ""
    if taken is not None and taken != positions:
        texts = ", ".join(f"{n} “{source.tokens[n].text}”" if n < len(source.tokens) else str(n) for n in taken)
        text += f" ← {texts}"
    return text


def _position(position: Position) -> str:
    if isinstance(position, Token):
        return f"“{position.text}”" + ("" if position.occurrence is None else f" no. {position.occurrence}")
    if isinstance(position, str):
        return position if is_slice(position) else f"“{position}”"
    return str(position).replace("-", MINUS)


def _plural(what: str, entries: Indices) -> str:
    single = len(entries) == 1 if not isinstance(entries, str) else entries.strip().lstrip("-").isdigit()
    return what if single else f"{what}s"


def _listed(entries: Indices) -> str:
    return entries if isinstance(entries, str) else ", ".join(map(str, entries))


def step_views(
    steps: Sequence[AnyStep],
    base: wire.PromptView,
    source: wire.PromptView,
    reports: Sequence[SiteReport] = (),
) -> tuple[wire.StepView, ...]:
    """All steps, each with its report."""
    by_number = {report.step: report for report in reports}
    return tuple(step_view(step, base, source, by_number.get(number)) for number, step in enumerate(steps))
