"""Sites by their address as text: `transformer.h.5`, `model.transformer.h[5].mlp.source.self_act_0`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .errors import UnknownNameError
from .sites import Site
from .source import CalleeSource, OperationSite

if TYPE_CHECKING:
    from .envoy import Envoy

_INDEXED = re.compile(r"""\[(?:(\d+)|'([^']+)'|"([^"]+)")\]|\.child\((?:'([^']+)'|"([^"]+)")\)""")


def site_at(root: Envoy, address: str) -> Any:
    """The wrapped module or operation at an address, with or without the wrapper's own name in front.

    Raises:
        UnknownNameError: there is none; the nearest names are given.
    """
    dotted = _INDEXED.sub(lambda found: "." + next(part for part in found.groups() if part), address).strip(".")
    path, *labels = f".{dotted}".split(".source.")
    site: Any = _module_at(root, path.removeprefix("."))
    for label in labels:
        site = site.source[label]
    return site


def _module_at(root: Envoy, path: str) -> Envoy:
    try:
        return root.get(path)
    except UnknownNameError:
        label, _, rest = path.partition(".")
        if label != root._instruments.label:
            raise
        return root.get(rest)


def operations_of(site: Site) -> tuple[Envoy, tuple[str, ...]]:
    """The module that a site is or lies in, and the labels that lead from it to the site, from outside in."""
    labels: list[str] = []
    while isinstance(site, OperationSite):
        labels.append(site._label)
        source: Any = site._source
        site = source._operation if isinstance(source, CalleeSource) else source._owner
    envoy: Any = site
    return envoy, tuple(reversed(labels))
