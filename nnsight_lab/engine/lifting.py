"""Taking the body of a `with` statement out of its frame, to run it later.

Two halves. `find_block` locates the statement whose entry a frame is executing (the instruction's position in the file
names it exactly, also within a one-liner) and compiles its body as a function of its own, once per place. `Skip` lets
the frame pass over the body: the frame is traced, instruction by instruction, and an exception raised at the body's
first one, which the statement's own `__exit__` swallows. A trace function that was active (a debugger, coverage) is put
back at once.
"""

from __future__ import annotations

import ast
import dis
import itertools
import linecache
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from .blocknames import NAMES, BlockNames
from .errors import InvokeError
from .sourcetext import class_around, future_flags

_LIFTED = "__nnsight_lab_block__"
_INVOKER = "invoker"
_LEAVING = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Block:
    """A `with` statement's body as a function.

    Attributes:
        code: the function's code; it takes one argument, the names (see `blocknames`).
        loads, binds: the names it reads and binds.
        escaping: names that functions defined in it read.
        line: where the statement stands.
        target: where what its `as` binds stands: first and last line, first and last column.
    """

    code: CodeType
    loads: frozenset[str]
    binds: frozenset[str]
    escaping: frozenset[str]
    line: int
    target: tuple[int | None, ...] | None


_blocks: dict[tuple[int, int], tuple[weakref.ref[CodeType], Block | None]] = {}
_lock = threading.RLock()


def find_block(frame: FrameType) -> Block | None:
    """The body of the `with` statement that `frame` is entering; None where its source cannot be found.

    Raises:
        InvokeError: the body has a statement that would leave it (`return`, `yield`, `break`).
    """
    code = frame.f_code
    key = (id(code), frame.f_lasti)
    with _lock:
        known = _blocks.get(key)
        if known is not None and known[0]() is code:
            return known[1]
        block = _read_block(frame)
        _blocks[key] = (weakref.ref(code, lambda _: _blocks.pop(key, None)), block)
        return block


def _read_block(frame: FrameType) -> Block | None:
    code = frame.f_code
    lines = linecache.getlines(code.co_filename, frame.f_globals)
    if not lines:
        return None
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None  # not the text that is running
    found = _statement(tree, frame)
    if found is None:
        return None
    node, item = found
    block = _compile(node, item, code)
    return block if _is_part_of(block.code, code) else None


def _statement(tree: ast.AST, frame: FrameType) -> tuple[ast.With, int] | None:
    """The `with` statement being entered, and which of its items."""
    places = [tuple(position) for position in frame.f_code.co_positions()]
    place = places[frame.f_lasti // 2]
    line, _, column, _ = place
    if line is None or column is None:
        return None
    for node in ast.walk(tree):
        if not isinstance(node, ast.With):
            continue
        if _place(node) == place:  # up to Python 3.12 the position is the whole statement's
            entries = _entries(frame.f_code, places, place)
            return node, entries.index(frame.f_lasti) % len(node.items)
        for index, item in enumerate(node.items):
            if _place(item.context_expr) == place:
                return node, index
    return None


def _place(node: ast.stmt | ast.expr) -> tuple[int | None, ...]:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def _entries(code: CodeType, places: list[tuple[int | None, ...]], place: tuple[int | None, ...]) -> list[int]:
    """The instructions at `place` that enter a context, in order."""
    return [
        instruction.offset
        for instruction in dis.get_instructions(code)
        if instruction.opname == "BEFORE_WITH" and places[instruction.offset // 2] == place
    ]


def _leaving(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Statements and expressions that would end the block or suspend its function."""

    def look(node: ast.AST, in_loop: bool) -> Iterator[ast.AST]:
        if isinstance(node, _LEAVING) or (isinstance(node, (ast.Break, ast.Continue)) and not in_loop):
            yield node
        elif not isinstance(node, _SCOPES):
            loops = isinstance(node, (ast.For, ast.While))
            for name, value in ast.iter_fields(node):
                inside = in_loop or (loops and name == "body")
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        yield from look(child, inside)

    for statement in body:
        yield from look(statement, False)


def _compile(node: ast.With, item: int, original: CodeType) -> Block:
    for leaving in _leaving(node.body):
        word = type(leaving).__name__.lower()
        line = getattr(leaving, "lineno", node.lineno)
        raise InvokeError(
            f"{original.co_filename}, line {line}: `{word}` cannot leave this block, because it is taken out of its "
            "place and runs later. Assign what you need to a name and use it afterwards."
        )
    body: list[ast.stmt] = list(node.body)
    if item + 1 < len(node.items):
        body = [ast.copy_location(ast.With(items=node.items[item + 1 :], body=body), node)]
    target = node.items[item].optional_vars
    place = None if target is None else _place(target)
    if target is not None:
        taken = ast.Attribute(value=ast.Name(id=NAMES, ctx=ast.Load()), attr=_INVOKER, ctx=ast.Load())
        body.insert(0, ast.copy_location(ast.Assign(targets=[target], value=taken), target))
    for statement in body:
        ast.fix_missing_locations(statement)
    walker = BlockNames(own=frozenset({NAMES}))
    arguments = ast.arguments(posonlyargs=[], args=[ast.arg(arg=NAMES)], kwonlyargs=[], kw_defaults=[], defaults=[])
    function = ast.FunctionDef(
        name=_LIFTED, args=arguments, body=walker.statements(body), decorator_list=[], returns=None
    )
    holder: ast.stmt = function
    class_name = class_around(original)
    if class_name is not None:  # private names are mangled by the class they stand in
        holder = ast.ClassDef(name=class_name, bases=[], keywords=[], body=[function], decorator_list=[])
    for added in (function, holder):
        if "type_params" in added._fields:
            added.type_params = []  # type: ignore[attr-defined,union-attr,unused-ignore]
        ast.copy_location(added, node)
    module = ast.fix_missing_locations(ast.Module(body=[holder], type_ignores=[]))
    code = compile(module, original.co_filename, "exec", flags=future_flags(original), dont_inherit=True)
    for name in ([class_name] if class_name else []) + [_LIFTED]:
        code = next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)
    code = code.replace(co_name=original.co_name, co_qualname=original.co_qualname)
    return Block(code, frozenset(walker.loads), frozenset(walker.binds), frozenset(walker.escaping), node.lineno, place)


def _is_part_of(block: CodeType, original: CodeType) -> bool:
    """Whether the names of the block are those of the code that is running: else the file is another by now."""
    own, running = _names(block), _names(original)
    return {name for name in own if not name.startswith("__nnsight_lab")} - _ADDED <= running


_ADDED = frozenset({"bind", "parent", "reader", "forget", _INVOKER, "AssertionError"})


def _names(code: CodeType) -> set[str]:
    found = {*code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
        elif isinstance(constant, str) and constant.isidentifier():
            found.add(constant)
    return found


class SkipBlock(BaseException):
    """Raised at the first instruction of a block that has been lifted; its `with` statement swallows it."""


class Skip:
    """Makes a frame pass over the body of the `with` statement that it is entering.

    Args:
        frame: the frame.
        binding: where the target of the statement's `as` stands, when it is to be bound all the same.
    """

    __slots__ = ("_binding", "_frame", "_global", "_lines", "_local", "_opcodes", "error")

    def __init__(self, frame: FrameType, binding: tuple[int | None, ...] | None = None) -> None:
        self._binding = binding
        self._frame: FrameType | None = frame
        self._global = sys.gettrace()
        self._local: Callable[..., Any] | None = frame.f_trace
        self._lines, self._opcodes = frame.f_trace_lines, frame.f_trace_opcodes
        self.error = SkipBlock()
        frame.f_trace_opcodes = True
        frame.f_trace = self._step
        sys.settrace(_ignore)

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode" and not self._binds(frame):
            raise self.error  # which also ends the tracing of frame and thread, until `swallow`
        return self._step

    def _binds(self, frame: FrameType) -> bool:
        """Whether the next instruction is part of binding the target."""
        if self._binding is None:
            return False
        places = frame.f_code.co_positions()
        line, end_line, column, end_column = next(itertools.islice(places, frame.f_lasti // 2, None))
        first, last, left, right = self._binding
        start, end = (line or 0, column or 0), (end_line or 0, end_column or 0)
        return (first or 0, left or 0) <= start and end <= (last or 0, right or 0)

    def swallow(self, error: BaseException | None) -> bool:
        """Put back what traced the frame and the thread before; whether `error` is the one that skipped the block."""
        skipped = error is self.error
        self.error.__traceback__ = None  # it holds the frame, and by way of `_step` this object
        frame, self._frame = self._frame, None
        if frame is not None:
            frame.f_trace_lines, frame.f_trace_opcodes = self._lines, self._opcodes
            frame.f_trace = self._local
            sys.settrace(self._global)
            self._global = self._local = None
        return skipped


def _ignore(frame: FrameType, event: str, argument: Any) -> None:
    return None
