"""A listing as a notebook keeps it: `application/vnd.nnsight-lab.source+json`, to be read with or without a kernel."""

from __future__ import annotations

from typing import Any

import msgspec

from ..engine import NNsight
from . import views, wire

MIME = "application/vnd.nnsight-lab.source+json"
# In bytes of JSON. The first listing is always there; callees and other modules as far as they fit.
BUDGET = 64_000


def source_bundle(model: NNsight, module: str, lab: str) -> dict[str, Any]:
    """The listing of a module's forward, with those of the functions and modules that it calls, as far as they fit.

    Args:
        lab: the line of Python that opens the Lab here.
    """
    first = views.listing_view(model, module)
    room = BUDGET - _size(first)
    operations = [operation for block in first.blocks for operation in block.operations]
    blocks = list(first.blocks)
    for operation in operations:
        if operation.can_step_into:
            inner = views.listing_view(model, module, (operation.site,)).blocks[1:]
            if not any(block.error for block in inner) and (size := _size(inner)) <= room:
                blocks += inner
                room -= size
    listings = {module: msgspec.structs.replace(first, blocks=tuple(blocks))}
    for operation in operations:
        if operation.module and operation.module not in listings:
            called = views.listing_view(model, operation.module)
            if (size := _size(called)) <= room:
                listings[operation.module] = called
                room -= size
    bundle = wire.SourceBundle(model._instruments.label, module, listings, lab)
    data: dict[str, Any] = msgspec.to_builtins(bundle)
    return data


def _size(data: Any) -> int:
    return len(msgspec.json.encode(data))
