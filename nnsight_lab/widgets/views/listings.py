"""Listings as the page shows them: the engine's rows and operations, coloured, with what a forward showed."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any

from torch import Tensor, nn

from ...engine import CalleeIsModuleError, CalleeUnknownError, Listing, NNsight, SourceUnavailableError, TraceError
from ...engine.source import OperationSite
from ...experiments.observation import Observation, Seen, Sighting
from ...experiments.passes import Place
from ...experiments.sites import SitePath, parse_site
from .. import wire
from ..naming import site_path
from .highlighting import highlighted
from .variables import variables_of


def listing_view(
    model: NNsight, module: str, opened: Sequence[str] = (), observation: Observation | None = None
) -> wire.ListingView:
    """The listing of a module's forward, and of what is stepped into.

    Args:
        opened: operations whose callees are shown, each after the listing that it stands in.
        observation: of the sites of these listings (see `sites_of`); without it nothing is said of values and runs.
    """
    sites = (module, *(site for site in _outer_first(opened) if _belongs(site, module, opened)))
    return wire.ListingView(module, tuple(_block(model, site, observation) for site in sites))


def sites_of(model: NNsight, module: str, opened: Sequence[str] = ()) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What an observation of a listing has to look at: the sites of its operations, and the functions listed."""
    sites: list[str] = []
    functions = []
    for site in (module, *(one for one in _outer_first(opened) if _belongs(one, module, opened))):
        source = _source(model, site)
        try:
            labels = source.listing.labels
        except TraceError:
            continue
        functions.append(site)
        sites += [_inside(site, label) for label in labels]
    return tuple(sites), tuple(functions)


def _outer_first(opened: Sequence[str]) -> list[str]:
    return sorted(opened, key=lambda site: site.count(".source."))


def _belongs(site: str, module: str, opened: Sequence[str]) -> bool:
    """Whether a listing that is stepped into stands in the one of `module`, and all between are open as well."""
    path = site_path(site)
    return path.module == module and all(path.prefix(depth) in opened for depth in range(1, len(path.operations)))


def _inside(site: str, label: str) -> str:
    return f"{site}.source.{label}" if site else f"source.{label}"


def _source(model: NNsight, site: str) -> Any:
    """The source of everything of a module or of what an operation calls. Raises TraceError."""
    path = parse_site(model, site, "listing")
    return _found(model, path).source(everything=True)


def _found(model: NNsight, path: SitePath) -> Any:
    found: Any = model.get(path.module)
    for label in path.operations:
        found = OperationSite(found.source(everything=True), label)
    return found


def _block(model: NNsight, site: str, observation: Observation | None) -> wire.ListingBlock:
    try:
        source = _source(model, site)
        listing: Listing = source.listing
    except (SourceUnavailableError, CalleeUnknownError, TraceError) as error:
        return wire.ListingBlock(site, site.rpartition(".")[2] or "model", error=str(error))
    sighted = {label: _sighting(observation, _inside(site, label)) for label in listing.labels}

    def ran(label: str) -> bool | None:
        sighting = sighted[label]
        return None if sighting is None else sighting.calls > 0

    rows = listing.rows[:-1] if listing.rows and not listing.rows[-1] else listing.rows
    return wire.ListingBlock(
        site=site,
        title=listing.name,
        filename=listing.filename,
        first_line=listing.first_line,
        rows=highlighted(tuple(rows)),
        operations=tuple(
            _operation(model, source, site, operation, sighted[operation.label]) for operation in listing.operations
        ),
        variables=variables_of(listing, site, lambda label: _inside(site, label), ran),
        calls=_calls(site, sighted, observation),
    )


def _sighting(observation: Observation | None, site: str) -> Sighting | None:
    return None if observation is None else observation.sightings.get(Place(site, "output"))


def _calls(site: str, sighted: dict[str, Sighting | None], observation: Observation | None) -> int | None:
    """How often the function ran: no operation outside a loop runs oftener."""
    if observation is None or all(sighting is None for sighting in sighted.values()):
        return None
    counts = [sighting.calls for sighting in sighted.values() if sighting is not None and sighting.calls]
    return min(counts, default=1 if observation.arguments.get(site) else 0)


def _operation(model: NNsight, source: Any, site: str, operation: Any, sighting: Sighting | None) -> wire.OperationView:
    seen = sighting.seen if sighting is not None else None
    module, steps = _callee(model, source, operation, sighting)
    return wire.OperationView(
        label=operation.label,
        kind=operation.kind,
        line=operation.line,
        column=operation.column,
        end_line=operation.end_line,
        end_column=operation.end_column,
        site=_inside(site, operation.label),
        calls=sighting.calls if sighting is not None else None,
        reason=why_not_reached(sighting.reason) if sighting is not None else "",
        summary=seen.summary if seen is not None else "",
        tensors=tensor_facts(seen) if seen is not None else (),
        module=module,
        can_step_into=steps,
    )


def why_not_reached(reason: str) -> str:
    """The engine's reason without the address, which the page shows beside it."""
    _, found, rest = reason.partition(".output was never reached: ")
    return rest if found else reason


def tensor_facts(seen: Seen) -> tuple[wire.TensorFacts, ...]:
    return tuple(wire.TensorFacts(tensor.element, tensor.shape, tensor.dtype) for tensor in seen.tensors)


def _callee(model: NNsight, source: Any, operation: Any, sighting: Sighting | None) -> tuple[str, bool]:
    """The path of the module that an operation calls, and whether what it calls can be stepped into."""
    if operation.kind != "call":
        return "", False
    found = OperationSite(source, operation.label)
    try:
        found.source.listing  # noqa: B018
    except CalleeIsModuleError:
        callee = found._static_callee()
        return (_path_of(model, callee), False) if isinstance(callee, nn.Module) else ("", False)
    except CalleeUnknownError:
        # What it calls is told by the run that steps into it, if it is called at all. Tensors' own methods are C.
        name = operation.callee_name or ""
        method = getattr(Tensor, name, None) if operation.callee != name else None
        in_c = method is not None and not isinstance(method, FunctionType)
        return "", not in_c and (sighting is None or sighting.calls > 0)
    except TraceError:
        return "", False
    return "", True


def _path_of(model: NNsight, module: nn.Module) -> str:
    return next((path for path, other in model._model.named_modules() if other is module), "")
