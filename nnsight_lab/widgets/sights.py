"""What is known of a Lab's model and prompts, as the page is shown it: drawn once, and kept until it changes.

The state is drawn at every change and every step of progress, so that nothing here may cost more than a look-up
where nothing has changed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from ..engine import NNsight, TraceError
from ..experiments import SiteReport
from ..experiments.inputs import ready
from ..experiments.observation import Observation, Seen, observe
from ..experiments.passes import Place, reveal_callee
from ..experiments.scope import HeadShape
from ..experiments.sites import callee_listing, parse_site
from . import views, wire
from .loading import needs_loading
from .state import AnyPrompt, Experiment, Given

# Prompts and listings that are kept drawn.
_KEPT = 32


class Key(NamedTuple):
    """What an observation depends on."""

    module: str
    opened: tuple[str, ...]
    run: Hashable


class Sights:
    """The drawn views of one Lab."""

    def __init__(self, model: NNsight) -> None:
        self._model = model
        self._prompts: dict[Any, wire.PromptView] = {}
        self._facts: tuple[bool, wire.ModelFacts] | None = None
        self._modules: Any = None
        self._observed: tuple[Key, Observation] | None = None
        self._listing: tuple[Any, wire.ListingView] | None = None
        config = getattr(model._model, "config", None)
        heads = HeadShape.of(config)
        self.heads: tuple[int, ...] = heads.counts if heads is not None else ()
        self.vocabulary: int = getattr(config, "vocab_size", None) or 0

    @property
    def model(self) -> wire.ModelFacts:
        loaded = not needs_loading(self._model)
        if self._facts is None or self._facts[0] != loaded:
            self._facts = loaded, views.model_facts(self._model)
        return self._facts[1]

    def modules(self) -> Any:
        """Names, kind names and columns of the tree; made anew for every question, as modules may be exchanged."""
        return views.module_columns(self._model)

    # Prompts and steps

    def prompt(self, prompt: AnyPrompt | None) -> wire.PromptView:
        key = (type(prompt), prompt)
        found = self._prompts.get(key)
        if found is None:
            found = views.prompt_view(self._model, prompt)
            if isinstance(prompt, Given) and needs_loading(self._model):
                return found
            self._prompts[key] = found
            while len(self._prompts) > _KEPT:
                del self._prompts[next(iter(self._prompts))]
        return found

    def tokens(self, experiment: Experiment) -> tuple[str, ...]:
        """Texts of the base prompt's tokens."""
        return tuple(token.text for token in self.prompt(experiment.base).tokens)

    def alignment(self, experiment: Experiment) -> wire.Alignment:
        return views.alignment(self.prompt(experiment.base), self.prompt(experiment.source))

    def steps(self, experiment: Experiment, reports: Sequence[SiteReport]) -> tuple[wire.StepView, ...]:
        base, source = self.prompt(experiment.base), self.prompt(experiment.source)
        return views.step_views(experiment.steps, base, source, reports)

    # Listings

    def listing(self, module: str, opened: tuple[str, ...]) -> wire.ListingView:
        """The listing, with what the latest observation of it showed, though its run may be an older one."""
        observation = None
        if self._observed is not None and self._observed[0].module == module:
            observation = self._observed[1]
        key = (module, opened, observation)
        if self._listing is None or self._listing[0] != key:
            self._listing = key, views.listing_view(self._model, module, opened, observation)
        return self._listing[1]

    def observation(self, module: str, opened: tuple[str, ...], experiment: Experiment) -> Observation:
        """What the experiment's forward shows of a listing; from the latest look where that was of the same."""
        key = Key(module, opened, (experiment.base, experiment.enabled, experiment.patches and experiment.source))
        known = self._observed
        if known is not None and known[0] == key:
            return known[1]
        self._reveal(opened, experiment)
        sites, functions = views.sites_of(self._model, module, opened)
        found = self._observe(experiment, sites, functions)
        self._observed = key, found
        return found

    def _reveal(self, opened: tuple[str, ...], experiment: Experiment) -> None:
        """Find out what the operations call that are stepped into, where only a run can tell."""
        inputs = None
        for site in sorted(opened, key=len):
            path = parse_site(self._model, site, "site")
            if callee_listing(self._model, path, "site") is not None:
                continue
            if inputs is None:
                inputs = ready(self._model, _value(experiment.base), "base")
            try:
                reveal_callee(self._model, inputs.args, inputs.kwargs, path)
            except TraceError:
                continue  # without source: its block in the listing says so

    def _observe(self, experiment: Experiment, sites: Sequence[Any], functions: Sequence[str]) -> Observation:
        return observe(self._model, experiment.recipe(), sites, functions=functions, **experiment.given)

    def seen(self, target: wire.Target, state: Any) -> tuple[Seen | None, int, str]:
        """A value in the present experiment's forward: itself, how often it was computed, and why it was not."""
        looked = self.observation(state.module, state.opened, state.experiment)
        if target.argument is not None:
            arguments = looked.arguments.get(target.site)
            if not arguments:
                arguments = self._observe(state.experiment, (), (target.site,)).arguments[target.site]
            found = arguments.get(target.argument)
            reason = "" if found else f"The parameter {target.argument} was not given, so it has its default."
            return found, int(bool(found)), reason
        place = Place(target.site, target.io)
        sighting = looked.sightings.get(place)
        if sighting is None or target.call is not None or _dropped(sighting.seen):
            sighting = self._observe_one(place, target, state.experiment)
        seen = sighting.seen if target.call is None else sighting.by_call.get(target.call)
        return seen, sighting.calls, sighting.reason

    def _observe_one(self, place: Place, target: wire.Target, experiment: Experiment) -> Any:
        calls = () if target.call is None else (target.call,)
        found = observe(self._model, experiment.recipe(), (place,), keep=2**40, calls=calls, **experiment.given)
        return found.sightings[place]


def _dropped(seen: Seen | None) -> bool:
    """Whether the budget had no room for a tensor of the value."""
    return seen is not None and len(seen.kept) < len(seen.tensors)


def _value(prompt: AnyPrompt | None) -> Any:
    return prompt.value if isinstance(prompt, Given) else prompt
