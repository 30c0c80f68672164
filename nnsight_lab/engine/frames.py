"""Builtins that look at the frame which calls them: `locals()`, `vars()`, `dir()`, `globals()`, `eval`, `exec`.

Behind a gate they must see the frame of the forward that names them, not one of the engine's, and not the names that
the rewriting brought into it. `reading_frame` gives a stand-in that does what the builtin does, in a given frame. The
dictionary that `locals()` gives is always a snapshot, as it is from Python 3.13 on.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

FRAME_READERS = frozenset({"locals", "vars", "dir", "globals", "eval", "exec"})

_SNAPSHOTS = sys.version_info >= (3, 13)  # since then each look at a function's locals is a copy of its own


def _locals(frame: FrameType) -> dict[str, Any]:
    return {name: value for name, value in frame.f_locals.items() if not name.startswith("__nnsight_lab_")}


def _evaluating(run: Callable[..., Any], frame: FrameType) -> Callable[..., Any]:
    def evaluate(source: Any, globals: Any = None, locals: Any = None, **options: Any) -> Any:
        if globals is None:
            globals = frame.f_globals
            if locals is None:
                locals = dict(frame.f_locals) if _SNAPSHOTS else frame.f_locals
        return run(source, globals, globals if locals is None else locals, **options)

    return evaluate


def reading_frame(callee: Any, frame: FrameType) -> Any:
    """What does `callee`'s work as if called from `frame`; `callee` itself when it looks at no frame."""
    if callee is builtins.locals:
        return lambda: _locals(frame)
    if callee is builtins.globals:
        return lambda: frame.f_globals
    if callee is builtins.vars:
        return lambda *args: vars(*args) if args else _locals(frame)
    if callee is builtins.dir:
        return lambda *args: dir(*args) if args else sorted(_locals(frame))
    if callee is builtins.eval or callee is builtins.exec:
        return _evaluating(callee, frame)
    return callee
