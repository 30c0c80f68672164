"""Sites by name: `transformer.h.11.mlp.source.self_act_0`.

The dotted path of a module is followed as far as there are children; then `.source.<operation>` as often as it is
written. Names are checked against the model without a run where its source tells them; what an operation calls may be
known from a run only, and is then checked by the engine when it is called.
"""

from __future__ import annotations

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
from ..engine.errors import nearest
from ..engine.instruments import spell
from .errors import UnknownSiteError

_EXTRA = ("op_", "var_", "return_")


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
        where: the field, for messages: "steps[0].site".

    Raises:
        UnknownSiteError: no such module, or `.source` without an operation.
    """
    names = site.split(".") if site else []
    module: nn.Module = model._model
    done: list[str] = []
    while names:
        child = module._modules.get(names[0])
        if child is None:
            break
        done.append(names.pop(0))
        module = child
    path = ".".join(done)
    if not names:
        return SitePath(path)
    if names[0] != "source":
        here = f"{path!r} ({type(module).__name__})" if path else f"the model ({type(module).__name__})"
        raise UnknownSiteError(
            f"{where}: {here} has no submodule {names[0]!r}.{_nearest_module(model, site, names[0], module)}"
        )
    if len(names) % 2 or any(name != "source" for name in names[::2]):
        raise UnknownSiteError(
            f"{where}: {site!r} is not a site: after a module come pairs of .source and an operation's label, as in "
            "transformer.h.0.mlp.source.self_act_0."
        )
    return SitePath(path, tuple(names[1::2]))


def _nearest_module(model: NNsight, site: str, name: str, module: nn.Module) -> str:
    path = next(path for path, candidate in model._model.named_modules() if candidate is module)
    try:
        if name in model.get(path).source(everything=True).listing.labels:
            return f" It is an operation of its forward: {path + '.' if path else ''}source.{name}."
    except SourceUnavailableError:
        pass  # without a source there is no operation of this name either
    children = [key for key, child in module._modules.items() if child is not None]
    return nearest(name, [*children, "source"]) or nearest(site, (path for path, _ in model._model.named_modules()))


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
