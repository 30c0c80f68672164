"""The Labs that are open in this process, in the order in which they were opened."""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING

from ..engine import NNsight
from .errors import LabError

if TYPE_CHECKING:
    from .lab import Lab

_LABS: weakref.WeakValueDictionary[int, Lab] = weakref.WeakValueDictionary()
_COUNT = itertools.count()


def note_opened(lab: Lab) -> None:
    """Remember a Lab, weakly."""
    _LABS[next(_COUNT)] = lab


def open_labs() -> list[Lab]:
    """The Labs that are not closed, the newest last."""
    return [lab for _, lab in sorted(_LABS.items()) if not lab._session.closed]


def labs_on(model: NNsight) -> list[Lab]:
    """Those on a model."""
    return [lab for lab in open_labs() if lab._session.model is model]


def newest_lab() -> Lab:
    """The Lab that was opened last. Raises LabError where none is open."""
    labs = open_labs()
    if not labs:
        raise LabError("No Lab is open in this kernel: end a cell with `model.lab(prompt)`.")
    return labs[-1]
