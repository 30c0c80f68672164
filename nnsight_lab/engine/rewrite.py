"""From a function to its observed twin, once per code object.

`rewritten` compiles the gated tree and keeps the result beside the code object it was made from: all layers of a
model share one. `Rewritten.bind` makes the twin of one function: the same globals (looked up live), defaults and
closure cells, and gates of its own. Redefining a class gives new code objects and so new twins.
"""

from __future__ import annotations

import copy
import dataclasses
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType
from typing import Any

from .errors import SourceUnavailableError
from .everything import EverythingWalker, Tools
from .functions import copy_function
from .labels import GATES, TOOLS, Walker
from .listing import Listing, Operation
from .sourcetext import compile_function, read_function

Gates = Sequence[Callable[..., Any]]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Rewritten:
    """The observed twin of one code object, and its listing."""

    listing: Listing
    code: CodeType
    positions: dict[str, int]
    spans: tuple[tuple[int, int, int, int], ...]  # of each operation in the file: first and last line, columns in bytes

    @property
    def codes(self) -> frozenset[CodeType]:
        """The code object and those of its comprehensions, lambdas and nested functions."""
        return frozenset(_nested(self.code))

    def bind(self, function: FunctionType, gates: Gates) -> FunctionType:
        """The twin of `function`, in which operation i is carried out by `gates[i](callee, *args, **kwargs)`."""
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        cells[GATES] = CellType(gates)
        cells[TOOLS] = _TOOLS_CELL
        return copy_function(function, self.code, tuple(cells[name] for name in self.code.co_freevars))


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


_TOOLS_CELL = CellType(Tools)
_cache: dict[tuple[int, bool], tuple[weakref.ref[CodeType], Rewritten]] = {}
_lock = threading.RLock()


def rewritten(function: FunctionType, everything: bool = False) -> Rewritten:
    """The twin of `function`'s code, compiled at first use.

    Raises:
        SourceUnavailableError: the function has no source, its file has changed since import, or it was defined by
            an observed function, which lists it.
    """
    code = function.__code__
    key = (id(code), everything)
    with _lock:
        found = _cache.get(key)
        if found is not None and found[0]() is code:
            return found[1]
        made = _rewrite(function, everything)
        _cache[key] = (weakref.ref(code, lambda _: _cache.pop(key, None)), made)
        return made


def _rewrite(function: FunctionType, everything: bool) -> Rewritten:
    if GATES in function.__code__.co_freevars:
        raise SourceUnavailableError(
            f"{function.__qualname__} is defined inside the function that is observed: its operations are listed "
            "there, so use their labels in the outer .source."
        )
    text = read_function(function)
    walker = EverythingWalker(text.first_line) if everything else Walker(text.first_line)
    node = copy.deepcopy(text.node)
    walker.walk(node)
    code = compile_function(node, function.__code__, (GATES, TOOLS), text.class_name)
    operations = tuple(_in_rows(operation, text.lines) for operation in walker.operations)
    listing = Listing(
        name=function.__qualname__,
        filename=function.__code__.co_filename,
        first_line=text.first_line,
        rows=_dedented(text.lines),
        operations=operations,
        everything=everything,
    )
    start = text.first_line + 1
    spans = tuple((o.line + start, o.end_line + start, o.column, o.end_column) for o in walker.operations)
    return Rewritten(listing, code, {operation.label: operation.index for operation in operations}, spans)


def _in_rows(operation: Operation, lines: tuple[str, ...]) -> Operation:
    """The operation with columns in characters of the listed rows; the parser counts bytes of the file's lines."""

    def column(line: int, offset: int) -> int:
        text = lines[line + 1]
        return max(0, len(text.encode()[:offset].decode(errors="replace")) - _indent(text, lines))

    return dataclasses.replace(
        operation,
        column=column(operation.line, operation.column),
        end_column=column(operation.end_line, operation.end_column),
    )


def _indent(line: str, lines: tuple[str, ...]) -> int:
    width = len(lines[0]) - len(lines[0].lstrip())
    return min(width, len(line) - len(line.lstrip()))


def _dedented(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Rows without the `def` line's indentation; lines indented less (inside strings) lose what they have."""
    return (*(line[_indent(line, lines) :] for line in lines), "")
