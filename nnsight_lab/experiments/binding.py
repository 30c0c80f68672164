"""A recipe on a model: its sites taken apart, checked, and found again where the source has changed.

An operation is checked on the listing of its function. Of a site that steps into an operation whose callee no name
tells (`attention_interface(...)`), the function is known from a run only; then the prompt is run once to find out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from ..engine import Listing, NNsight, TraceError
from ..engine.errors import nearest
from .errors import UnknownSiteError
from .fingerprint import Fingerprint, find_again, take_fingerprint
from .inputs import Inputs
from .passes import reveal_callee
from .recipe import Recipe
from .sites import SitePath, callee_listing, parse_site
from .steps import AnyStep, Patch


@dataclass(frozen=True)
class Binding:
    """A recipe whose sites are those of a model.

    Attributes:
        recipe: with present labels and fingerprints.
        paths: its sites, taken apart.
        notes: which labels have moved, and which could not be checked.
    """

    recipe: Recipe
    paths: Mapping[str, SitePath]
    notes: tuple[str, ...] = ()


def bind(recipe: Recipe, model: NNsight, inputs: Inputs | None = None) -> Binding:
    """Put a recipe on `model`.

    Args:
        inputs: the base prompt, for finding out what an operation calls; without it such sites stay unchecked.

    Raises:
        UnknownSiteError: a site that the model does not have.
        MovedOperationError: an operation that cannot be found again for certain.
    """
    binder = _Binder(model, inputs, recipe.fingerprints)
    steps = tuple(binder.step(number, step) for number, step in enumerate(recipe.steps))
    bound = msgspec.structs.replace(recipe, steps=steps, fingerprints=binder.fingerprints)
    return Binding(bound, binder.paths, tuple(dict.fromkeys(binder.notes)))


@dataclass
class _Binder:
    model: NNsight
    inputs: Inputs | None
    known: Mapping[str, Fingerprint]
    paths: dict[str, SitePath] = field(default_factory=dict)
    fingerprints: dict[str, Fingerprint] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def step(self, number: int, step: AnyStep) -> AnyStep:
        changes = {"site": self._site(step.site, f"steps[{number}].site")}
        if isinstance(step, Patch) and step.from_site is not None:
            changes["from_site"] = self._site(step.from_site, f"steps[{number}].from_site")
        return step if all(getattr(step, key) == value for key, value in changes.items()) else _with(step, changes)

    def _site(self, site: str, where: str) -> str:
        """The site with present labels."""
        written = parse_site(self.model, site, where)
        present: tuple[str, ...] = ()
        for depth, label in enumerate(written.operations):
            path = SitePath(written.module, present)
            listing = self._listing(path, where)
            if listing is None:
                self.notes.append(f"{site} is not checked: what {path} calls is known from a run only.")
                present = (*present, *written.operations[depth:])
                break
            fingerprint = self.known.get(written.prefix(depth + 1))
            if fingerprint is not None:
                found = find_again(fingerprint, listing, f"{where} {site}")
                if found != label:
                    self.notes.append(f"{label} of {fingerprint.function} is called {found} in the present source.")
                label = found
            elif label not in listing.labels:
                raise UnknownSiteError(
                    f"{where}: {listing.name} has no operation {label!r}.{nearest(label, listing.labels)} "
                    f"print(model.get({written.module!r}).source) shows the operations of the module."
                )
            present = (*present, label)
            self.fingerprints[str(SitePath(written.module, present))] = take_fingerprint(listing, label)
        path = SitePath(written.module, present)
        self.paths[str(path)] = path
        return str(path)

    def _listing(self, path: SitePath, where: str) -> Listing | None:
        """The listing of the function that `path` calls, or None where it cannot be known."""
        listing = callee_listing(self.model, path, where)
        if listing is None and self.inputs is not None:
            try:
                reveal_callee(self.model, self.inputs.args, self.inputs.kwargs, path)
            except TraceError as error:
                raise UnknownSiteError(f"{where}: {error}") from error
            listing = callee_listing(self.model, path, where)
        return listing


def _with(step: AnyStep, changes: Mapping[str, str]) -> AnyStep:
    return msgspec.structs.replace(step, **changes)
