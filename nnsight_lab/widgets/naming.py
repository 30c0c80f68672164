"""What a run in the history is called: by what changed, and by what came out."""

from __future__ import annotations

import math

from ..experiments import AnyStep, Edit, LensResult, Patch, Result, SweepResult, Token
from ..experiments.sites import SitePath
from .state import AnyPrompt, Experiment, Given

_LONGEST_PROMPT = 24


def title_of(experiment: Experiment, before: Experiment | None) -> str:
    """What a run of `experiment` is called after one of `before`.

    >>> from nnsight_lab.experiments import Zero
    >>> edit = Zero("transformer.h.11.mlp.source.self_act_0", positions=-1)
    >>> title_of(Experiment(steps=(edit,)), None)
    'zero h.11 self_act_0 @ -1'
    """
    edits = _edits(experiment)
    if before is not None and _edits(before) == edits:
        changed = [
            f"{field} {_short_prompt(getattr(experiment, field))}"
            for field in ("base", "source")
            if getattr(experiment, field) != getattr(before, field)
        ]
        if changed:
            return ", ".join(changed)
    if not edits:
        return "clean"
    if len(edits) == 1:
        return step_name(edits[0])
    if before is not None:
        known = _edits(before)
        new = [edit for edit in edits if edit not in known]
        gone = [edit for edit in known if edit not in edits]
        if len(new) == 1:
            return f"+ {step_name(new[0])}"
        if len(gone) == 1 and not new:
            return f"without {step_name(gone[0])}"
    more = f" + {len(edits) - 2} more" if len(edits) > 2 else ""
    return " + ".join(step_name(edit) for edit in edits[:2]) + more


def _edits(experiment: Experiment) -> tuple[AnyStep, ...]:
    return tuple(step for step in experiment.enabled if isinstance(step, Edit))


def step_name(step: AnyStep) -> str:
    """A step in a few words: `patch h.5 @ Tower`."""
    words = [type(step).__name__.lower(), short_site(step.site)]
    if step.io == "input":
        words.append("input")
    if isinstance(step, Patch) and step.from_site is not None:
        words.append(f"from {short_site(step.from_site)}")
    if isinstance(step, Edit):
        if step.heads is not None:
            words.append(f"head {_listed(step.heads)}")
        if step.index is not None:
            words.append(f"[{_listed(step.index)}]")
        if step.positions is not None:
            words.append(f"@ {', '.join(_position(position) for position in step.positions)}")
    return " ".join(words)


def site_path(site: str) -> SitePath:
    """A site taken apart, without looking at a model.

    >>> site_path("h.11.mlp.source.self_act_0")
    SitePath(module='h.11.mlp', operations=('self_act_0',))
    >>> site_path("source.self_transformer_0")
    SitePath(module='', operations=('self_transformer_0',))
    """
    module, *operations = f".{site}".split(".source.")
    return SitePath(module.removeprefix("."), tuple(operations))


def short_site(site: str) -> str:
    """A site from its layer on: `h.11 self_act_0` of `transformer.h.11.mlp.source.self_act_0`."""
    path = site_path(site)
    operations = path.operations
    names = path.module.split(".") if path.module else []
    number = next((i for i, name in enumerate(names) if name.isdigit() or name == "*"), None)
    if number is not None:
        layer = ".".join(names[max(number - 1, 0) : number + 1])
        rest = names[number + 1 :]
        short = layer if operations else ".".join([layer, *rest])
    else:
        short = names[-1] if names else "" if operations else "model"
    return f"{short} {operations[-1]}".lstrip() if operations else short


def _listed(entries: tuple[int, ...] | str) -> str:
    return entries if isinstance(entries, str) else ",".join(map(str, entries))


def _position(position: int | str | Token) -> str:
    return position.text.strip() if isinstance(position, Token) else str(position).strip()


def _short_prompt(prompt: AnyPrompt | None) -> str:
    if prompt is None:
        return "removed"
    if isinstance(prompt, Given):
        return "given"
    if isinstance(prompt, tuple):
        return f"{len(prompt)} token ids"
    return f"“{prompt}”" if len(prompt) <= _LONGEST_PROMPT else f"“{prompt[:_LONGEST_PROMPT]}…”"


def run_detail(result: Result) -> str:
    """The likeliest answer of the edited run: `London 0.41`."""
    top = next((row for row in result.rows if row.edited_rank == 0), None)
    if top is None:
        return f"largest change {result.max_difference:.3g}" if result.has_edits else ""
    if not math.isfinite(top.edited_probability):
        return "not finite"
    return f"{top.token.strip() or repr(top.token)} {top.edited_probability:.2f}"


def grid_detail(result: SweepResult | LensResult, seconds: float) -> str:
    """Size and duration, or how far it came: `12 × 8, 0.9 s`."""
    shape = result.shape if isinstance(result, SweepResult) else tuple(result.top.shape)
    size = " × ".join(map(str, shape))
    if isinstance(result, SweepResult) and not result.complete:
        return f"{size}, {int(result.done.sum())} of {result.done.numel()} cells"
    return f"{size}, {seconds:.1f} s"
