"""Running a recipe: a clean run, a run of the source prompt where a patch needs it, the edited run, and the comparison.

The clean run visits every site that the recipe names: it shows which run, in which order and with which shapes, and
its captures are kept. From that the plan is made, and the edited run carries it out in one forward, with an edit at
each site when the forward gets there. Nothing is trained, so no gradients are kept.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from ..engine import NNsight
from .answers import answers_of, metric_name, space_notes
from .binding import Binding, bind
from .edits import apply_edit, scramble
from .errors import ExperimentError
from .inputs import Inputs, ready
from .metrics import AnyMetric, TopK, kl_divergence, measure
from .models import load_model
from .outputs import output_mode, read_output, token_rows
from .passes import Handler, Pass, Place, forward_pass
from .plan import Action, Plan
from .planning import Planner, elements_by_place, place_of, source_place
from .reach import reaching
from .recipe import Recipe
from .reports import site_reports
from .result import MetricValue, Result, Timing, TokenRow
from .scope import HeadShape
from .sitechange import SiteChange, change_at
from .sites import SitePath
from .steps import Capture, Patch
from .survey import Survey, longer_shapes, survey
from .tokens import answer_reader
from .values import pick, put


def run(
    recipe: Recipe,
    model: NNsight | None = None,
    *,
    base: Any = None,
    source: Any = None,
    full_logits: bool = False,
    reach: bool = True,
) -> Result:
    """Run a recipe and compare.

    Args:
        model: the wrapped model; None loads the one that the recipe names.
        base, source: inputs in place of the recipe's prompts: anything that `model.trace` takes as first argument.
        full_logits: keep the logits of every position, not the last alone.
        reach: find out for edits without a visible effect whether they reach the output; costs up to two forwards
            for each edit.

    Raises:
        RecipeError, UnknownSiteError: the recipe is not valid, or names a site that the model does not have.
        MovedOperationError: a function has changed and an operation cannot be found again for certain.
        ScopeError: positions, heads or indices that do not fit.
        ExperimentError: there is no prompt or no model.
    """
    recipe.validate()
    model, model_line = load_model(recipe, model)
    return Execution(model, recipe, base, source).result(full_logits, reach, model_line)


class Execution:
    """The state of one run of a recipe."""

    def __init__(self, model: NNsight, recipe: Recipe, base: Any, source: Any) -> None:
        self.model = model
        self.base = ready(model, recipe.base if base is None else base, "base")
        self.written = recipe
        self.binding: Binding = bind(recipe, model, self.base)
        self.recipe = recipe = self.binding.recipe
        patches = [s for s in recipe.steps if s.enabled and isinstance(s, Patch) and s.from_prompt == "source"]
        self.source: Inputs | None = None
        if patches or source is not None or recipe.source is not None:
            self.source = ready(model, recipe.source if source is None else source, "source")
        self.needs_source = bool(patches)
        self.changes: dict[int, SiteChange] = {}

    def result(self, full_logits: bool, reach: bool, model_line: str) -> Result:
        clean = self._clean()
        if self._callee_changed():
            clean = self._clean()
        source = self._source()
        plan = self._plan(clean, source, model_line)
        mode, element = plan.output, plan.output_element
        self.taken = self._taken_values(plan, clean, source)
        clean_logits = read_output(clean.run.output, mode, element)
        edits = self._effective(plan)
        notes = list(self.binding.notes)
        captured: dict[str, Tensor] = {}
        edited = clean.run
        if edits:
            edited = self._edited(plan, captured)
        else:
            captured = self._captures(plan, clean)
            if self.recipe.edits:
                notes.append("No enabled edit was carried out, so the clean run stands for the edited one.")
        edited_logits = read_output(edited.output, mode, element)
        start = time.perf_counter()
        reached: dict[int, bool] | None = None
        if reach and edits:

            def scrambled(step: int, seed: int) -> Tensor:
                return read_output(self._edited(plan, {}, (step, seed)).output, mode, element)

            reached = reaching(edits, clean_logits, edited_logits, scrambled)
        reach_seconds = time.perf_counter() - start if edits else 0.0
        clean_logits, edited_logits = clean_logits.cpu().clone(), edited_logits.cpu().clone()
        rows, kl, metric, about_answers = self._compare(mode, clean_logits, edited_logits)
        full = mode == "logits" and full_logits
        return Result(
            recipe=self.recipe,
            tokens=self.base.tokens,
            source_tokens=self.source.tokens if self.source else (),
            clean_logits=clean_logits,
            edited_logits=edited_logits,
            rows=rows,
            kl=kl,
            metric=metric,
            sites=site_reports(self.recipe, plan, clean.run, clean_logits, edited_logits, reached, self.changes),
            plan=plan,
            activations={key: value.cpu() for key, value in captured.items()},
            clean_activations={key: value.cpu() for key, value in self._captures(plan, clean).items()},
            full_clean_logits=pick(clean.run.output, element).detach().cpu().clone() if full else None,
            full_edited_logits=pick(edited.output, element).detach().cpu().clone() if full else None,
            notes=(*notes, *about_answers),
            timing=Timing(
                clean.run.seconds,
                source.run.seconds if source else 0.0,
                edited.seconds if edits else 0.0,
                reach_seconds,
            ),
            versions=_versions(),
        )

    def _plan(self, clean: Survey, source: Survey | None, model_line: str = "") -> Plan:
        mode, element = output_mode(clean.run.output, self.recipe.metric)
        return Plan(
            visits=clean.visits,
            source_visits=source.visits if source else (),
            actions=self._planner(clean, source).actions(),
            model_line=model_line,
            tokenizer=getattr(self.model, "tokenizer", None) is not None,
            output=mode,
            output_element=element,
        )

    # The runs

    def _callee_changed(self) -> bool:
        """Whether the clean run called another function than the one known before, as after a switch of the attention
        implementation; the binding is then made anew, so that labels are not taken for those of the other function."""
        again = bind(self.written, self.model, self.base)
        if again.recipe.fingerprints == self.binding.recipe.fingerprints:
            return False
        self.binding, self.recipe = again, again.recipe
        return True

    def _clean(self) -> Survey:
        keep = {place_of(step) for step in self.recipe.steps if step.enabled and isinstance(step, Capture)}
        keep |= {source_place(s) for s in self.recipe.steps if isinstance(s, Patch) and s.from_prompt == "base"}
        return survey(self.model, self.base, elements_by_place(self.recipe, "base"), self.binding.paths, keep)

    def _source(self) -> Survey | None:
        if not self.needs_source or self.source is None:
            return None
        wanted = elements_by_place(self.recipe, "source")
        found = survey(self.model, self.source, wanted, self.binding.paths, list(wanted))
        for place, reason in found.run.reasons.items():
            raise ExperimentError(f"{place} cannot be patched from the source prompt: {reason}")
        return found

    def _planner(self, clean: Survey, source: Survey | None) -> Planner:
        recipe, paths = self.recipe, self.binding.paths
        longer = longer_shapes(self.model, self.base, elements_by_place(recipe, "base"), paths)
        source_longer = longer
        if self.source is not None:
            source_longer = longer_shapes(self.model, self.source, elements_by_place(recipe, "source"), paths)
        return Planner(
            recipe,
            self.base,
            self.source,
            clean.visits,
            source.visits if source else (),
            _heads(self.model),
            longer,
            source_longer,
        )

    def _taken_values(self, plan: Plan, clean: Survey, source: Survey | None) -> dict[Action, Tensor]:
        taken = {}
        for action in plan.actions:
            step = self.recipe.steps[action.step]
            if isinstance(step, Patch) and action.source is not None:
                origin = clean if step.from_prompt == "base" else source
                assert origin is not None  # a patch from the source prompt made the source run necessary
                taken[action] = origin.values[action.source]
        return taken

    def observed(self, watching: Mapping[Place, tuple[SitePath, Handler]]) -> Pass:
        """The edited run, or the clean one where there is no edit, with handlers that see what goes on from a place."""
        if not self.recipe.edits:
            return forward_pass(self.model, self.base.args, self.base.kwargs, watching)
        clean = self._clean()
        source = self._source()
        plan = self._plan(clean, source)
        self.taken = self._taken_values(plan, clean, source)
        return self._edited(plan, {}, watching=watching)

    def _edited(
        self,
        plan: Plan,
        captured: dict[str, Tensor],
        scrambling: tuple[int, int] | None = None,
        watching: Mapping[Place, tuple[SitePath, Handler]] = MappingProxyType({}),
    ) -> Pass:
        """One forward with every action carried out; captures go to `captured`.

        Args:
            scrambling: number of a step and a seed: random numbers stand in the place of that step's edit.
            watching: further handlers by place, which act after the edits.
        """
        by_call: dict[tuple[Place, int], list[Action]] = {}
        for action in plan.actions:
            visit = plan.visits[action.visit]
            by_call.setdefault((Place(visit.site, visit.io), visit.call), []).append(action)

        def handler(place: Place) -> Handler:
            def carry_out(value: Any, call: int) -> Any:
                for action in by_call.get((place, call), ()):
                    value = self._carry_out(plan, action, value, captured, scrambling)
                return value

            return carry_out

        places = dict.fromkeys(place for place, _ in by_call)
        handlers = {place: (self.binding.paths[place.site], handler(place)) for place in places}
        for place, (path, watch) in watching.items():
            edit = handlers[place][1] if place in handlers else None
            handlers[place] = (path, watch if edit is None else _one_after_another(edit, watch))
        return forward_pass(self.model, self.base.args, self.base.kwargs, handlers)

    def _carry_out(
        self, plan: Plan, action: Action, value: Any, captured: dict[str, Tensor], scrambling: tuple[int, int] | None
    ) -> Any:
        step, visit = self.recipe.steps[action.step], plan.visits[action.visit]
        tensor = pick(value, visit.element)
        if isinstance(step, Capture):
            captured[plan.key(action)] = tensor.detach().clone()
            return value
        where = f"steps[{action.step}] at {step.site}"
        new = apply_edit(step, action, tensor, self.taken.get(action), where)
        if scrambling is None:
            change = change_at(tensor, new, action.selection)
            self.changes[action.step] = self.changes.get(action.step, SiteChange()) + change
        elif scrambling[0] == action.step:
            new = scramble(action, new, scrambling[1])
        return put(value, visit.element, new)

    # What comes out

    def _effective(self, plan: Plan) -> list[int]:
        return list(dict.fromkeys(a.step for a in plan.actions if not isinstance(self.recipe.steps[a.step], Capture)))

    def _captures(self, plan: Plan, clean: Survey) -> dict[str, Tensor]:
        return {
            plan.key(action): clean.values[action.visit]
            for action in plan.actions
            if isinstance(self.recipe.steps[action.step], Capture)
        }

    def _compare(
        self, mode: str, clean: Tensor, edited: Tensor
    ) -> tuple[tuple[TokenRow, ...], float | None, MetricValue | None, tuple[str, ...]]:
        if mode == "tensor":
            return (), None, None, ()
        metric: AnyMetric | None = self.recipe.metric
        tokenizer = getattr(self.model, "tokenizer", None)
        names = getattr(_config(self.model), "id2label", None) if mode == "classes" else None
        k = metric.k if isinstance(metric, TopK) else TopK().k
        rows = token_rows(clean[0], edited[0], k, tokenizer, names)
        kl = kl_divergence(clean[0], edited[0])
        if metric is None or isinstance(metric, TopK):
            return rows, kl, None, ()
        answer_id = answer_reader(tokenizer, clean.shape[-1])
        values = (measure(metric, logits[0], clean[0], answer_id) for logits in (clean, edited))
        notes = space_notes(answers_of(metric), tokenizer, answer_id, (clean[0], edited[0]))
        return rows, kl, MetricValue(metric_name(metric, tokenizer, answer_id), *values), notes


def _one_after_another(first: Handler, second: Handler) -> Handler:
    return lambda value, call: second(first(value, call), call)


def _config(model: NNsight) -> Any:
    return getattr(model._model, "config", None)


def _heads(model: NNsight) -> HeadShape | None:
    return HeadShape.of(_config(model))


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {"torch": str(torch.__version__)}
    for package in ("transformers", "nnsight-lab"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
