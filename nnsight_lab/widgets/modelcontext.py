"""What actions may say about the model, checked against the model: `actions.Context` for one Lab."""

from __future__ import annotations

from typing import Any

import msgspec
from torch import Tensor

from ..engine import NNsight
from ..engine.envoy import Envoy
from ..engine.errors import nearest
from ..engine.source import OperationSite, Source
from ..experiments import AnyStep, Capture, Edit, Patch, SweepResult, UnknownSiteError
from ..experiments.grid import cell_step
from ..experiments.sites import SitePath, callee_listing, parse_site
from .errors import LabError
from .history import History
from .state import AnyPrompt, Experiment, Given
from .wire import Target


class ModelContext:
    """Checks sites, steps and prompts on a model, and finds runs in a history."""

    def __init__(self, model: NNsight, history: History) -> None:
        self._model = model
        self._history = history

    @property
    def takes_text(self) -> bool:
        """Whether the model has a tokenizer."""
        return getattr(self._model, "tokenizer", None) is not None

    # Sites

    def module(self, path: str) -> str:
        site = parse_site(self._model, path, "module")
        if site.operations:
            raise UnknownSiteError(f"module: {site} is an operation; its module is {site.module!r}.")
        return site.module

    def target(self, target: Target) -> Target:
        path = self._site(target.site, "selection")
        if target.argument is not None:
            self._callee(path)
        return msgspec.structs.replace(target, site=str(path))

    def step(self, step: AnyStep) -> AnyStep:
        changes = {"site": str(self._site(step.site, "site"))}
        if isinstance(step, Patch) and step.from_site is not None:
            changes["from_site"] = str(self._site(step.from_site, "from_site"))
        return msgspec.structs.replace(step, **changes)

    def callee(self, site: str) -> str:
        path = self._site(site, "site")
        if not path.operations:
            raise LabError(f"{site!r} is a module: show its listing instead of stepping into it.")
        self._callee(path)
        return str(path)

    def _site(self, site: str, where: str) -> SitePath:
        """A site whose operations are looked up in the listings, as far as they are known without a run."""
        path = parse_site(self._model, site, where)
        for depth, label in enumerate(path.operations):
            listing = callee_listing(self._model, SitePath(path.module, path.operations[:depth]), where)
            if listing is None:
                break
            if label not in listing.labels:
                raise UnknownSiteError(
                    f"{where}: {listing.name} has no operation {label!r}.{nearest(label, listing.labels)}"
                )
        return path

    def _callee(self, path: SitePath) -> None:
        """Raises where what the site calls has no source; a callee that only a run can tell passes."""
        callee_listing(self._model, path, "site")

    # Prompts

    def prompt(self, text: str, field: str) -> AnyPrompt:
        if not self.takes_text:
            raise LabError(f"{field}: this model has no tokenizer, so it takes no text: set lab.{field} from Python.")
        return text

    def prompt_of(self, value: Any) -> AnyPrompt | None:
        """A prompt as Python code gives it: text, token ids, or anything else that `model.trace` takes."""
        if value is None or isinstance(value, (str, Given)):
            return value
        ids = value
        if isinstance(value, Tensor) and self.takes_text and not value.is_floating_point() and _one_row(value):
            ids = value.reshape(-1).tolist()
        if isinstance(ids, int) and not isinstance(ids, bool):
            return (ids,)
        if isinstance(ids, (list, tuple)) and ids and all(type(number) is int for number in ids):
            return tuple(ids)
        return Given(value)

    # The history

    def experiment(self, run: str) -> Experiment:
        return self._history[run].experiment

    def kind(self, run: str) -> str:
        return self._history[run].kind

    def cell(self, run: str, cell: tuple[int, ...]) -> tuple[AnyStep, frozenset[str]]:
        result = self._history[run].result
        if not isinstance(result, SweepResult):
            raise LabError(f"Run {run} is no sweep: it has no cells.")
        if len(cell) != len(result.axes) or not all(
            0 <= number < len(axis) for number, axis in zip(cell, result.axes, strict=False)
        ):
            shape = " x ".join(str(len(axis)) for axis in result.axes)
            raise LabError(f"The sweep has {shape} cells; {list(cell)} is none of them.")
        return cell_step(result.sweep.step, result.axes, cell), frozenset(result.axis("site").entries)


def target_of_site(site: Any) -> Target | None:
    """A selection as Python code gives it: a target, a site as text, or the module or operation itself.

    Raises:
        LabError: it is none of these.
    """
    if site is None or isinstance(site, Target):
        return site
    if isinstance(site, (Capture, Edit)):
        return Target(site.site, site.io, None, site.call, site.element)
    if isinstance(site, Envoy):
        return Target(site._dotted)
    if isinstance(site, OperationSite):
        return Target(site._address, call=site._index)
    if isinstance(site, Source):
        raise LabError("selection: a listing has many operations; choose one, model.transformer.h[0].mlp.source.act_0.")
    if isinstance(site, str):
        return Target(site)
    raise LabError(f"selection: a site such as 'transformer.h.0.mlp.source.act_0', not {type(site).__name__}.")


def _one_row(ids: Tensor) -> bool:
    return ids.dim() < 2 or (ids.dim() == 2 and ids.shape[0] == 1)
