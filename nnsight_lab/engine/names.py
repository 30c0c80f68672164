"""The names of a lifted block: what `x` means when the block runs after the code around it has gone on.

Blocks run interleaved, but their names behave as if they had run one after the other where they stand. A block reads,
in this order, what it bound itself, what the nearest earlier block bound (waiting for it where it has not got there
yet), and the value that the name had when the block was met: in a loop over prompts each block has its own `prompt`.
A name that something else has changed in the frame meanwhile (a function called by a block, by `nonlocal`) is read from
the frame. What a block binds is written to the frame at once; when all have ended the last block's value stands there.
"""

from __future__ import annotations

import builtins
import copy
import ctypes
import inspect
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from .frames import reading_frame
from .lifting import Block

_MISSING: Any = object()
_WRITES_THROUGH = sys.version_info >= (3, 13)


class FrameNames:
    """The variables of one frame: its locals, else its globals, else the builtins."""

    __slots__ = ("_fast", "_frame", "_globals", "_local", "known")

    def __init__(self, frame: FrameType) -> None:
        code = frame.f_code
        self._frame: FrameType | None = frame
        self._globals = frame.f_globals
        self._fast = bool(code.co_flags & inspect.CO_OPTIMIZED)
        self._local = frozenset({*code.co_varnames, *code.co_cellvars, *code.co_freevars})
        self.known: dict[str, Any] = {}  # what the frame held when the blocks began, and what they wrote since

    @property
    def frame(self) -> FrameType | None:
        return self._frame

    def _has(self, name: str) -> bool:
        return name in self._local if self._fast else True

    def get(self, name: str) -> Any:
        """The value of `name` in the frame, or `_MISSING`."""
        frame = self._frame
        if frame is not None and self._has(name):
            found = frame.f_locals.get(name, _MISSING)
            if found is not _MISSING or self._fast:
                return found
        return self._globals.get(name, getattr(builtins, name, _MISSING))

    def set(self, name: str, value: Any) -> None:
        """Bind `name` in the frame; `_MISSING` unbinds it."""
        self.known[name] = value
        frame = self._frame
        if frame is None:
            return
        space: Any = frame.f_locals if self._has(name) else self._globals
        if value is not _MISSING:
            space[name] = value
        elif name in space:
            if self._fast and _WRITES_THROUGH and space is not self._globals:
                space[name] = None  # a frame's variable cannot be unbound from outside; it holds nothing any more
            else:
                del space[name]
        if self._fast and not _WRITES_THROUGH and space is not self._globals:
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(1))

    def release(self) -> None:
        self._frame = None
        self.known.clear()


class Names:
    """What one lifted block's names are.

    Args:
        block: the block.
        frame: the variables of the frame it was lifted from, shared by all its blocks.
        earlier: the names of the blocks of the same frame that stand before it.
        wait: called to let others go on until a condition holds.
        invoker: what the `with` statement's `as` binds.
    """

    __slots__ = ("_before", "_block", "_earlier", "_frame", "_late", "_own", "_wait", "ended", "invoker")

    def __init__(
        self,
        block: Block,
        frame: FrameNames,
        earlier: list[Names],
        wait: Callable[[str, Callable[[], bool]], None],
        invoker: Any,
    ) -> None:
        self._block = block
        self._frame = frame
        self._earlier = [names for names in reversed(earlier) if names._block.binds & block.loads]
        self._wait: Callable[[str, Callable[[], bool]], None] | None = wait
        self._own: dict[str, Any] = {}
        self._before = {name: frame.get(name) for name in block.loads}
        self._late: dict[str, Any] | None = None
        self.invoker = invoker
        self.ended = False

    @property
    def frame(self) -> FrameNames:
        """The variables of the frame that the block was lifted from."""
        return self._frame

    def begin(self) -> None:
        """Take what the frame holds now for what it is expected to hold."""
        for name in self._block.loads:
            self._frame.known.setdefault(name, self._frame.get(name))

    def __getitem__(self, name: str) -> Any:
        value = self._find(name)
        if value is _MISSING:
            raise NameError(f"name {name!r} is not defined", name=name)
        return value

    def _find(self, name: str) -> Any:
        if self._late is not None:
            return self._late[name] if name in self._late else self._frame.get(name)
        now, known = self._frame.get(name), self._frame.known.get(name, _MISSING)
        if now is not known:
            return now
        if name in self._own:
            return self._own[name]
        for other in self._earlier:
            if name not in other._block.binds:
                continue
            if name not in other._own and not other.ended and self._wait is not None:
                self._wait(name, lambda other=other: other.ended or name in other._own)  # type: ignore[misc]
            if name in other._own:
                return other._own[name]
        return self._before.get(name, now)

    def __setitem__(self, name: str, value: Any) -> None:
        self._own[name] = value
        self._frame.set(name, value)

    def __delitem__(self, name: str) -> None:
        self[name]
        self[name] = _MISSING

    def bind(self, name: str, value: Any) -> Any:
        """`(name := value)`."""
        self[name] = value
        return value

    def forget(self, name: str) -> None:
        """Unbind a name that may be unbound already."""
        self[name] = _MISSING

    def reader(self, callee: Any) -> Any:
        """`locals`, `eval` and the like, looking at the frame that the block was lifted from."""
        frame = self._frame.frame
        return callee if frame is None else reading_frame(callee, frame)

    def parent(self) -> Any:
        """`super()` without arguments."""
        frame = self._frame.frame
        if frame is None:
            raise RuntimeError("super(): the method has ended")
        return super(self["__class__"], self[frame.f_code.co_varnames[0]])

    def write_back(self) -> None:
        """Leave in the frame what this block bound last."""
        for name, value in self._own.items():
            self._frame.set(name, value)

    def release(self) -> None:
        """End the block: keep only what functions defined in it may still read."""
        if self._late is None:
            self._late = {}
            local = self._frame.frame is not None and self._frame.frame.f_locals is not self._frame.frame.f_globals
            for name in self._block.escaping if local else ():
                value = self._own.get(name, _MISSING)
                for other in self._earlier if value is _MISSING else ():
                    value = other._own.get(name, _MISSING) if value is _MISSING else value
                value = self._before.get(name, _MISSING) if value is _MISSING else value
                if value is not _MISSING:
                    self._late[name] = value
            self._wait = None
            self._own = {}
            self._before = {}
            self._earlier = []
            self.invoker = None


class KeptNames:
    """What the names of a block mean that runs once and again, later: what they meant where it stands.

    What the block binds is its own, and gone when it has run.

    Args:
        block: the block.
        frame: the frame that it was lifted from; not kept.
        target: what the `with` statement's `as` binds.
    """

    __slots__ = ("_globals", "_kept", "_own", "_self", "invoker")

    def __init__(self, block: Block, frame: FrameType, target: Any) -> None:
        held = frame.f_locals if frame.f_locals is not frame.f_globals else {}
        code = frame.f_code
        names = FrameNames(frame)
        found = {name: names.get(name) for name in block.loads} | dict(held)
        self._kept = {name: value for name, value in found.items() if value is not _MISSING}
        self._self = code.co_varnames[0] if code.co_argcount else ""
        self._globals = frame.f_globals
        self._own: dict[str, Any] = {}
        self.invoker = target

    def begun(self) -> KeptNames:
        """The names for one more run of the block."""
        made = copy.copy(self)
        made._own = {}
        return made

    def __getitem__(self, name: str) -> Any:
        for space in (self._own, self._kept, self._globals):
            if name in space:
                value = space[name]
                if value is _MISSING:
                    break
                return value
        else:
            if hasattr(builtins, name):
                return getattr(builtins, name)
        raise NameError(f"name {name!r} is not defined", name=name)

    def __setitem__(self, name: str, value: Any) -> None:
        self._own[name] = value

    def __delitem__(self, name: str) -> None:
        self[name]
        self[name] = _MISSING

    def bind(self, name: str, value: Any) -> Any:
        """`(name := value)`."""
        self[name] = value
        return value

    def forget(self, name: str) -> None:
        """Unbind a name that may be unbound already."""
        self[name] = _MISSING

    def reader(self, callee: Any) -> Any:
        """`locals`, `eval` and the like, looking at what is kept."""
        if callee is locals:
            return lambda: {**self._kept, **self._own}
        if callee in (eval, exec):
            return lambda text, *spaces: callee(text, *(spaces or (self._globals, {**self._kept, **self._own})))
        return callee

    def parent(self) -> Any:
        """`super()` without arguments."""
        return super(self["__class__"], self[self._self])
