"""Sites by name: `transformer.h.11.mlp.source.self_act_0`.

The path of a module is followed as far as there are children; then `.source.<operation>` as often as it is written.
Names are checked against the model without a run where its source tells them; what an operation calls may be
known from a run only, and is then checked by the engine when it is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from torch import nn

from ..engine import (
    CalleeUnknownError,
    Listing,
    NNsight,
    OperationSite,
    SourceUnavailableError,
    UnknownNameError,
)
from ..engine.instruments import spell
from .addresses import first_miss, follow, is_pattern, modules_called, readings, suggestion
from .errors import UnknownSiteError

_EXTRA = ("op_", "var_", "return_")
# What is read off a site in a trace, and what a step calls it.
_VALUES = {"output": "output", "input": "input", "inputs": "input"}


class SitePath(Struct, frozen=True):
    """A site taken apart: the dotted path of its module and the operations inside, from outside in."""

    module: str
    operations: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.prefix(len(self.operations))

    def prefix(self, depth: int) -> str:
        """The site of the first `depth` operations, as text."""
        parts = [self.module] if self.module else []
        return ".".join([*parts, *(f"source.{label}" for label in self.operations[:depth])])


def parse_site(model: NNsight, site: str, where: str) -> SitePath:
    """Take a site apart and check its module.

    Args:
        site: as recipes write it, `transformer.h.5.mlp`, or as listings and code do, `model.transformer.h[5].mlp`.
        where: the field, for messages: "steps[0].site".

    Raises:
        UnknownSiteError: no such module, `.source` without an operation, or `.output` or `.input` at the end.
    """
    meanings = readings(model._model, model._instruments.label, site) if site else ((),)
    found = [(names, *follow(model._model, names)) for names in meanings]
    fitting = [
        SitePath(".".join(done), names[len(done) + 1 :: 2]) for names, done, _ in found if _is_site(names[len(done) :])
    ]
    for path in fitting:
        # A model with a child called like its wrapper: the operation tells which of the two is meant.
        if len(fitting) == 1 or not path.operations or _lists(model, path):
            return path
    if fitting:
        return fitting[0]
    names, done, module = max(found, key=lambda reading: len(reading[1]))
    raise UnknownSiteError(f"{where}: {_wrong(model, site, done, module, names[len(done) :])}")


def _is_site(rest: Sequence[str]) -> bool:
    """Whether what follows a module is nothing, or pairs of `source` and a label."""
    return len(rest) % 2 == 0 and all(name == "source" for name in rest[::2])


def _lists(model: NNsight, path: SitePath) -> bool:
    try:
        return path.operations[0] in model.get(path.module).source(everything=True).listing.labels
    except SourceUnavailableError:
        return False


def _wrong(model: NNsight, site: str, done: Sequence[str], module: nn.Module, rest: Sequence[str]) -> str:
    """Why a site is none, and what to write."""
    if rest[-1] in _VALUES and _is_site(rest[:-1]):
        place = SitePath(".".join(done), tuple(rest[1:-1:2]))
        return f'{site!r} is not a site but a value of one: write {str(place)!r}, and io="{_VALUES[rest[-1]]}".'
    if is_pattern(rest[0]):
        return f"{site!r} is a pattern: a step has one site. Make a step for each, or sweep over them."
    if rest[0] != "source":
        return _no_submodule(model, done, module, rest[0])
    if len(rest) > 2 and rest[2].isdigit():
        return f"{site!r} is not a site: one call of an operation is chosen by the step, call={rest[2]}."
    return (
        f"{site!r} is not a site: after a module come pairs of .source and an operation's label, as in "
        "transformer.h.0.mlp.source.self_act_0."
    )


def _no_submodule(model: NNsight, done: Sequence[str], module: nn.Module, name: str) -> str:
    path = ".".join(done)
    here = f"{path!r} ({type(module).__name__})" if path else f"the model ({type(module).__name__})"
    operation = SitePath(path, (name,))
    hint = f" It is an operation of its forward: {operation}." if _lists(model, operation) else suggestion(module, name)
    return f"{here} has no submodule {name!r}.{hint}"


def expand_modules(model: NNsight, pattern: str, where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The dotted paths of the modules that a pattern means, in the model's order, and the operations in each.

    Raises:
        UnknownSiteError: it means none; the submodules of the last one found are named.
    """
    cuts = []
    for names in readings(model._model, model._instruments.label, pattern):
        end = names.index("source") if "source" in names else len(names)
        cuts.append((names[:end], names[end:]))
    for names, rest in cuts:
        found = tuple(".".join(path) for path in modules_called(model._model, names))
        if found and _is_site(rest):
            return found, rest[1::2]
    names, rest = max(cuts, key=lambda cut: _depth(model, cut[0]))
    if (*names, *rest)[-1] in _VALUES:
        value = pattern.rpartition(".")
        raise UnknownSiteError(
            f'{where}: {pattern!r} names values, not sites: write {value[0]!r}, and io="{_VALUES[value[2]]}".'
        )
    if not _is_site(rest):
        raise UnknownSiteError(f"{where}: {_wrong(model, pattern, (), model._model, rest)}")
    raise UnknownSiteError(f"{where}: {_no_submodule(model, *first_miss(model._model, names))}")


def _depth(model: NNsight, names: Sequence[str]) -> int:
    """How many of the names lead on."""
    leads = any(True for _ in modules_called(model._model, names))
    return len(names) if leads else len(first_miss(model._model, names)[0])


def source_of(envoy_or_operation: Any, label: str) -> Any:
    """The source on which `label` can be found: the listing of calls, or the one of everything."""
    source = envoy_or_operation.source
    try:
        known = label in source.listing.labels
    except CalleeUnknownError:
        known = not label.startswith(_EXTRA)
    return source if known else source(everything=True)


def site_code(model: NNsight, path: SitePath) -> str:
    """The code that reaches a site, with `model` for the model: `model.transformer.h[0].mlp.source.self_act_0`."""
    code = spell(model._model, path.module, "model")
    found: Any = model.get(path.module)
    for label in path.operations:
        source = source_of(found, label)
        everything = "(everything=True)" if source._everything else ""
        code += f".source{everything}.{label}"
        found = OperationSite(source, label)
    return code


def locate(model: NNsight, path: SitePath, where: str) -> Any:
    """The engine's site object. To be called inside a trace, before the model has started.

    Raises:
        UnknownSiteError: an operation that the function does not have; the nearest labels are given.
    """
    found: Any = model.get(path.module)
    for label in path.operations:
        try:
            found = source_of(found, label)[label]
        except (UnknownNameError, SourceUnavailableError) as error:
            raise UnknownSiteError(f"{where}: {error}") from error
    return found


def callee_listing(model: NNsight, path: SitePath, where: str) -> Listing | None:
    """The listing, of everything, of what a site calls: a module's forward, or the function an operation calls.

    Nothing is marked as observed. None where the callee is known from a run only and there has been none.

    Raises:
        UnknownSiteError: there is no source to list.
    """
    found: Any = model.get(path.module)
    try:
        for label in path.operations:
            found = OperationSite(found.source(everything=True), label)
        return found.source(everything=True).listing
    except CalleeUnknownError:
        return None
    except (UnknownNameError, SourceUnavailableError) as error:
        raise UnknownSiteError(f"{where}: {error}") from error
