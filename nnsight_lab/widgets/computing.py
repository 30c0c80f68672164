"""The Lab's work as calls of `nnsight_lab.experiments`: a run, a sweep, a lens.

Nothing is computed here that a script could not compute in the same way; `code_of` gives that script.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from ..engine import NNsight
from ..experiments import (
    KL,
    AnyMetric,
    AnyStep,
    Capture,
    Edit,
    ExperimentError,
    LensResult,
    LogitDiff,
    Patch,
    Probability,
    Result,
    Sweep,
    lens,
    run,
)
from ..experiments.observation import observe
from ..experiments.recipe import Prompt
from ..models.origin import origin_of
from .errors import LabError
from .history import Captured
from .state import AnyPrompt, Experiment, Given
from .wire import StartSweep, Target


@dataclass(frozen=True, eq=False)
class Ran:
    """What running an experiment gave: its result, without what was captured for the page, and that.

    Attributes:
        experiment: which was run.
        result: exactly that of its recipe.
        captured: values by target; of targets that hold no tensor there are none.
    """

    experiment: Experiment
    result: Result
    captured: dict[Target, Captured]


def run_experiment(model: NNsight, experiment: Experiment, targets: tuple[Target, ...] = ()) -> Ran:
    """Run an experiment; keep the values of `targets` and of its captures.

    Args:
        targets: values to keep beside; what holds no tensor is left out.

    Raises:
        ExperimentError, TraceError: as `nnsight_lab.experiments.run` does.
    """
    recipe = experiment.recipe()
    extra = tuple(Capture(t.site, t.io, t.element, t.call) for t in targets if t.argument is None)
    given = experiment.given
    try:
        result = run(recipe.with_steps(*recipe.steps, *extra), model, **given)
    except ExperimentError:
        if not extra:
            raise
        # Perhaps it is only the value looked at that holds no tensor; if not, this raises again.
        extra, result = (), run(recipe, model, **given)
    captured = _captured(result)
    return Ran(experiment, _without(result, len(recipe.steps)), captured)


def observe_argument(model: NNsight, experiment: Experiment, target: Target) -> Captured | None:
    """What a parameter of a listed function was bound to, clean and edited; None where it holds no tensor."""
    found = []
    for recipe in (experiment.recipe().with_steps(), experiment.recipe()):
        looked = observe(model, recipe, (), functions=(target.site,), keep=2**40, **experiment.given)
        seen = looked.arguments[target.site].get(target.argument or "")
        if seen is None or not seen.tensors:
            return None
        tensor = seen.kept.get(seen.tensors[0].element if target.element is None else target.element)
        if tensor is None:
            return None
        found.append(tensor)
    return Captured(*found)


def _captured(result: Result) -> dict[Target, Captured]:
    """The captured values by target; of several calls that one target means, the last."""
    found = {}
    for action in result.plan.actions:
        step = result.recipe.steps[action.step]
        if isinstance(step, Capture):
            key = result.plan.key(action)
            target = Target(step.site, step.io, None, step.call, step.element)
            found[target] = Captured(result.clean_activations[key], result.activations[key])
    return found


def _without(result: Result, count: int) -> Result:
    """The result of the first `count` steps alone, when the others are captures."""
    if len(result.recipe.steps) == count:
        return result
    actions = tuple(action for action in result.plan.actions if action.step < count)
    keys = {result.plan.key(a) for a in actions if isinstance(result.recipe.steps[a.step], Capture)}
    return dataclasses.replace(
        result,
        recipe=msgspec.structs.replace(result.recipe, steps=result.recipe.steps[:count]),
        plan=msgspec.structs.replace(result.plan, actions=actions),
        sites=result.sites[:count],
        activations={key: value for key, value in result.activations.items() if key in keys},
        clean_activations={key: value for key, value in result.clean_activations.items() if key in keys},
    )


# Sweeps


def check_sweep(experiment: Experiment, asked: StartSweep) -> None:
    """Raises LabError where there is no step to sweep, no prompt, or a patch without a source prompt."""
    plan_sweep(experiment, active_edit(experiment) if asked.step is None else asked.step, asked, KL())


def plan_sweep(experiment: Experiment, step: AnyStep, asked: StartSweep, metric: AnyMetric) -> Sweep:
    """The sweep of `step` that a page asks for.

    Raises:
        LabError: there is no prompt, or a patch without a source prompt.
        RecipeError: a field that is not valid.
    """
    base = _prompt(experiment.base, "base")
    source = None
    if isinstance(step, Patch) and step.from_prompt == "source":
        source = _prompt(experiment.source, "source")
    elif experiment.source is not None and not isinstance(experiment.source, Given):
        source = experiment.source
    step = msgspec.structs.replace(step, enabled=True)
    return Sweep(
        step=step,
        base=base,
        source=source,
        metric=metric,
        sites=(asked.sites or over_layers(step.site),),
        positions="each" if asked.positions == "each" else None,
        heads="each" if asked.heads else None,
    )


def active_edit(experiment: Experiment) -> AnyStep:
    """The active step, if it is an edit. Raises LabError."""
    active = experiment.active
    if active is None or not isinstance(experiment.steps[active], Edit):
        raise LabError("There is no edit to sweep: add one (zero, scale or patch) and make it the active step.")
    return experiment.steps[active]


def over_layers(site: str) -> str:
    """The site of every layer: its first number in a list becomes `*`.

    >>> over_layers("transformer.h.11.mlp.source.self_act_0")
    'transformer.h.*.mlp.source.self_act_0'
    """
    names = site.split(".")
    end = names.index("source") if "source" in names else len(names)
    number = next((i for i, name in enumerate(names[:end]) if name.isdigit()), None)
    if number is None:
        return site
    return ".".join(["*" if i == number else name for i, name in enumerate(names)])


def default_metric(model: NNsight, experiment: Experiment, step: AnyStep) -> AnyMetric:
    """What a sweep of `step` is judged by when nobody has said.

    Of a patch the source prompt's top answer against the base's, where they differ; else the top answer after the step
    against the one before it, where they differ; else the probability of the one before it.

    Raises:
        LabError: the model's output is no logits.
    """
    base = Experiment(base=experiment.base)
    clean = _top_answer(run_experiment(model, base).result)
    if isinstance(step, Patch) and experiment.source is not None:
        wanted = _top_answer(run_experiment(model, Experiment(base=experiment.source)).result)
        if wanted != clean:
            return LogitDiff(wanted, clean)
    alone = Experiment(base=experiment.base, source=experiment.source, steps=(step,))
    edited = _top_answer(run_experiment(model, alone).result)
    return Probability(clean) if edited == clean else LogitDiff(edited, clean)


def _top_answer(result: Result) -> int:
    if not result.rows:
        raise LabError("metric: the model's output is no logits, so there is no answer to judge a sweep by.")
    return int(result.edited_logits[0].argmax())


def _prompt(prompt: AnyPrompt | None, field: str) -> Prompt:
    if prompt is None:
        reason = "the step patches from a source prompt" if field == "source" else "there is nothing to run"
        raise LabError(f"{field}: {reason}: set lab.{field}.")
    if isinstance(prompt, Given):
        raise LabError(f"{field}: sweeps and lenses need one prompt of tokens; this input is of another kind.")
    return prompt


def run_lens(model: NNsight, experiment: Experiment, stream: Any, progress: Callable[[int, int], Any]) -> LensResult:
    """The logit lens of the base prompt. Raises as `nnsight_lab.experiments.lens` does."""
    return lens(model, _prompt(experiment.base, "base"), stream=stream, progress=progress)


def lens_code(model: NNsight, experiment: Experiment, stream: str) -> str:
    """A script that computes a lens."""
    line = origin_of(model) or "...  # the wrapped model that the lens was run on"
    lines = ["import torch", "import nnsight_lab", "from nnsight_lab.experiments import lens", "", f"model = {line}"]
    prompt = _prompt(experiment.base, "base")
    lines += ["", f"print(lens(model, {prompt!r}, stream={stream!r}))"]
    return "\n".join(lines) + "\n"
