"""`tracer.cache(...)`: the values of many sites, kept while the model runs.

The body does not pause for any of them. A cache leaves a recorder at the point of each site, which the model's side
calls on the way out of every visit, after the body's edits. So a cache sees every call of a module that is called
several times, and every step of a generation, whatever else the body reads and in which order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import torch
from torch import nn
from torch.utils import _pytree as pytree

from .addresses import operations_of, site_at
from .envoy import Envoy
from .errors import CacheLookupError, UnknownNameError
from .points import Arguments
from .sites import Site
from .source import OperationSite, Source

_Key = tuple[nn.Module, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Visit:
    """One call of a site.

    Attributes:
        address: the site.
        output: what the call returned, as the model went on with it.
        arguments: (positional arguments, keyword arguments), or None where inputs are not kept.
    """

    address: str
    output: Any
    arguments: Arguments | None = None

    @property
    def inputs(self) -> Arguments:
        """The call's arguments. Raises CacheLookupError where they were not asked for."""
        if self.arguments is None:
            raise CacheLookupError(
                f"The inputs of {self.address} were not kept: tracer.cache(..., include_inputs=True) keeps them."
            )
        return self.arguments

    @property
    def input(self) -> Any:
        """The first argument: positional, else the first keyword's. Raises as `inputs`, and for a call without any."""
        args, kwargs = self.inputs
        for value in (*args, *kwargs.values()):
            return value
        raise CacheLookupError(f"{self.address} was called without arguments, so it has no .input.")


class Visits(Sequence[Visit]):
    """All calls of one site, in order: a sequence of `Visit`. With one call, `.output` and the rest are that call's."""

    __slots__ = ("_address", "_visits")

    def __init__(self, address: str) -> None:
        self._address = address
        self._visits: list[Visit] = []

    @overload
    def __getitem__(self, index: int) -> Visit: ...
    @overload
    def __getitem__(self, index: slice) -> list[Visit]: ...
    def __getitem__(self, index: int | slice) -> Visit | list[Visit]:
        try:
            return self._visits[index]
        except IndexError:
            raise IndexError(
                f"{self._address} was visited {_times(len(self))}: there is no visit {index!r} (they count from 0)."
            ) from None

    def __len__(self) -> int:
        return len(self._visits)

    def _only(self, attribute: str) -> Visit:
        if len(self) != 1:
            raise CacheLookupError(
                f"{self._address} was visited {_times(len(self))}, so .{attribute} is not one value: take "
                f"[i].{attribute} for visit i, or loop over the visits."
            )
        return self._visits[0]

    @property
    def output(self) -> Any:
        """The output of the only visit. Raises CacheLookupError when there are several."""
        return self._only("output").output

    @property
    def inputs(self) -> Arguments:
        """The arguments of the only visit. Raises CacheLookupError when there are several, or when none are kept."""
        return self._only("inputs").inputs

    @property
    def input(self) -> Any:
        """The first argument of the only visit. Raises as `inputs`."""
        return self._only("input").input

    def __repr__(self) -> str:
        return f"<{self._address}, visited {_times(len(self))}>"


class Cache(Mapping[str, Visits]):
    """What a trace's sites held. Made by `tracer.cache`, filled while the model runs, there when the block is over.

    A mapping from the addresses of the sites visited, in the order of their first visit, to their `Visits`. An address
    is `transformer.h.5` or `transformer.h.5.mlp.source.self_act_0`; a key may also be written as code
    (`model.transformer.h[5]`), or be the wrapped module or operation itself.
    """

    def __init__(self, root: Envoy, keep: Callable[[Any], Any] | None, include_inputs: bool) -> None:
        self._root = root
        self._keep = keep
        self._include_inputs = include_inputs
        self._found: dict[_Key, tuple[str, Visits]] = {}

    def _record(self, site: Site) -> None:
        _, point, _ = site._locate("output")
        key, name = _identity(site), _name(site)
        address, keep, include, found = point.address, self._keep, self._include_inputs, self._found

        def record(args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
            arguments = (args, kwargs) if include else None
            if keep is not None:
                value, arguments = keep(value), keep(arguments)
            entry = found.get(key)
            if entry is None:
                entry = found[key] = (name, Visits(address))
            entry[1]._visits.append(Visit(address, value, arguments))

        point.recorders = (*point.recorders, record)

    def __getitem__(self, key: str | Site) -> Visits:
        site = key if isinstance(key, Site) else site_at(self._root, key)
        entry = self._found.get(_identity(site))
        if entry is None:
            raise CacheLookupError(
                f"{key!r} is not in the cache: it was not among the sites asked for, or the model did not call it "
                "after the cache was made. list(cache) names what is there."
            )
        return entry[1]

    def __contains__(self, key: object) -> bool:
        try:
            self[key]  # type: ignore[index]
        except (KeyError, UnknownNameError):
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._found.values())

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return f"<cache of {len(self)} sites>"


def make_cache(
    root: Envoy, modules: Any, sources: Any, include_inputs: bool, keep: Callable[[Any], Any] | None
) -> Cache:
    """A cache with its recorders in place. See `Tracer.cache`."""
    operations: list[Any] = []
    for given in _listed(sources):
        operations += given if isinstance(given, Source) else [given]
    wanted = [_checked(root, given, OperationSite, "sources") for given in operations]
    if modules is None and sources is None:
        wanted += [envoy for _, envoy in root.named_modules()]
    wanted += [_checked(root, given, Envoy, "modules") for given in _listed(modules)]
    cache = Cache(root, keep, include_inputs)
    for site in {_identity(site): site for site in wanted}.values():
        cache._record(site)
    return cache


def _listed(given: Any) -> Iterable[Any]:
    return () if given is None else (given,) if isinstance(given, (str, Site, Source)) else given


def _checked(root: Envoy, given: Any, kind: type[Site], where: str) -> Site:
    """`given` as a site of `root`'s tree, of the kind that belongs into the argument `where`."""
    site = site_at(root, given) if isinstance(given, str) else given
    if not isinstance(site, kind):
        wanted = "operations (model.x.source.label)" if kind is OperationSite else "wrapped modules (model.x)"
        raise TypeError(f"tracer.cache({where}=...) takes {wanted} or their addresses, not {given!r:.80}.")
    if _root_of(site) is not root:
        raise CacheLookupError(f"{_name(site)} belongs to another model than the one that is traced.")
    if isinstance(site, OperationSite) and site._index is not None:
        raise TypeError(f"{site!r}: a cache keeps every call of an operation; leave the [{site._index}] out.")
    return site


def keeper(detach: bool, device: Any, dtype: torch.dtype | None) -> Callable[[Any], Any] | None:
    """What is done to a value before it is kept, or None when the model's own objects are."""
    if not detach and device is None and dtype is None:
        return None

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if detach:
            tensor = tensor.detach()
        wanted = dtype if dtype is not None and tensor.is_floating_point() else None
        return tensor.to(device=device, dtype=wanted)

    return lambda value: pytree.tree_map_only(torch.Tensor, change, value)


def _root_of(site: Site) -> Envoy:
    return operations_of(site)[0]._root


def _identity(site: Site) -> _Key:
    """What two addresses of one site have in common: aliases of a module are the same site."""
    envoy, labels = operations_of(site)
    return envoy._module, labels


def _name(site: Site) -> str:
    envoy, labels = operations_of(site)
    return ".".join([*([envoy._dotted] if envoy._dotted else []), *(f"source.{label}" for label in labels)])


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
