"""Finding a function's own text.

The text comes from `inspect` (files, notebooks and anything registered with `linecache`); the syntax tree keeps the
positions of the original file. Before it is used, the unchanged tree is compiled and compared with the running
function: a file that was edited after import must not be listed, let alone run, as if it were the function.
"""

from __future__ import annotations
import __future__

import ast
import dis
import inspect
import re
import tokenize
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, TypeVar

from .errors import SourceUnavailableError

_FUTURE_FLAGS = 0
for _name in __future__.all_feature_names:
    if _name not in ("nested_scopes", "generators"):  # always on; their bits mean other things in co_flags
        _FUTURE_FLAGS |= getattr(__future__, _name).compiler_flag

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

_Scope = TypeVar("_Scope", bound=ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


@dataclass(frozen=True, slots=True)
class FunctionText:
    """A function's syntax tree (with original line numbers and columns) and lines."""

    node: FunctionNode
    lines: tuple[str, ...]
    first_line: int
    class_name: str | None


def read_function(function: FunctionType) -> FunctionText:
    """The text of `function`.

    Raises:
        SourceUnavailableError: there is no text, it is a lambda, or the file has changed since it was imported.
    """
    code = function.__code__
    name = f"{function.__module__}.{function.__qualname__}"
    if code.co_name == "<lambda>":
        raise SourceUnavailableError(
            f"{name} is a lambda; give it a name with `def` to list and address its operations."
        )
    changed = SourceUnavailableError(
        f"{code.co_filename} no longer holds the {name} that is running: the file has changed since it was imported. "
        "Restart Python (or reload the module) to list it."
    )
    try:
        lines, start = inspect.getsourcelines(code)
    except (SyntaxError, tokenize.TokenError) as error:
        raise changed from error
    except (OSError, TypeError, IndexError) as error:
        raise SourceUnavailableError(
            f"The source of {name} cannot be found ({error}). Code made by `exec` has none unless its text is "
            "registered with `linecache`; define the function in a file or a notebook cell."
        ) from error
    start = max(start, 1)
    text = "".join(lines)
    indented = text[:1].isspace()
    try:
        tree = ast.parse(("if 1:\n" if indented else "") + text)
    except SyntaxError as error:
        raise changed from error
    body = tree.body[0].body if isinstance(tree.body[0], ast.If) and indented else tree.body
    node = body[0]
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.name != code.co_name:
        raise changed
    ast.increment_lineno(node, start - 1 - (1 if indented else 0))
    class_name = class_around(code)
    if not _matches(compile_function(node, code, (), class_name), code):
        raise changed
    skipped = node.lineno - start
    return FunctionText(node, tuple(line.rstrip("\n") for line in lines[skipped:]), node.lineno, class_name)


def class_around(code: CodeType) -> str | None:
    """The class whose body the function stands in, however deeply nested: private names are mangled by it."""
    outer = code.co_qualname.split(".")[:-1]
    while outer and outer[-1] == "<locals>":
        outer = outer[:-2]
    return outer[-1] if outer else None


def future_flags(code: CodeType) -> int:
    """The `from __future__` features that `code` was compiled with, as `compile` takes them."""
    return code.co_flags & _FUTURE_FLAGS


def compile_function(
    node: FunctionNode, original: CodeType, extra: tuple[str, ...], class_name: str | None
) -> CodeType:
    """Compile `node` as it stands in `original`'s place, with `extra` names as further free variables.

    The function is compiled inside a factory whose parameters are its free variables, and inside a class of the same
    name, so that private names are mangled as they were. The names of class and function themselves stay global
    (or free) as they were. Only the inner code object is used.
    """
    inner = _bare(node)
    body: list[ast.stmt] = [inner]
    if class_name is not None:
        holder = ast.ClassDef(name=class_name, bases=[], keywords=[], body=[inner], decorator_list=[])
        body = [_without_type_parameters(holder)]
    free = list(dict.fromkeys((*original.co_freevars, *extra)))
    outside = class_name or node.name
    if outside not in free:
        body.insert(0, ast.Global(names=[outside]))
    arguments = ast.arguments(
        posonlyargs=[], args=[ast.arg(arg=name) for name in free], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    factory = _without_type_parameters(
        ast.FunctionDef(name="factory", args=arguments, body=body, decorator_list=[], returns=None)
    )
    module = ast.Module(body=[factory], type_ignores=[])
    for added in (factory, *body):
        ast.copy_location(added, node)
    ast.fix_missing_locations(module)
    flags = future_flags(original)
    code = compile(module, original.co_filename, "exec", flags=flags, dont_inherit=True)
    for name in ("factory", *([class_name] if class_name else []), node.name):
        code = next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)
    return _requalified(code, code.co_qualname, original.co_qualname)


def _requalified(code: CodeType, old: str, new: str) -> CodeType:
    """`code` and all that it defines under the qualified name `new`; a class body holds its own as a constant."""
    name = new + code.co_qualname.removeprefix(old)
    constants = tuple(
        _requalified(constant, old, new)
        if isinstance(constant, CodeType)
        else name
        if constant == code.co_qualname
        else constant
        for constant in code.co_consts
    )
    return code.replace(co_qualname=name, co_consts=constants)


def _without_type_parameters(scope: _Scope) -> _Scope:
    """Python 3.12's type parameters live in a scope of their own; a body that uses them has them as free variables."""
    if "type_params" in scope._fields:
        scope.type_params = []  # type: ignore[attr-defined,union-attr,unused-ignore]
    return scope


def _bare(node: FunctionNode) -> FunctionNode:
    """The definition without what is evaluated outside its body: decorators, defaults, annotations.

    Each decorator leaves a constant in its place, because the code's first line, from which its line table counts,
    is that of the first decorator.
    """
    old = node.args

    def plain(argument: ast.arg) -> ast.arg:
        return ast.copy_location(ast.arg(arg=argument.arg), argument)

    args = ast.arguments(
        posonlyargs=[plain(a) for a in old.posonlyargs],
        args=[plain(a) for a in old.args],
        vararg=old.vararg and plain(old.vararg),
        kwonlyargs=[plain(a) for a in old.kwonlyargs],
        kw_defaults=[None] * len(old.kwonlyargs),
        kwarg=old.kwarg and plain(old.kwarg),
        defaults=[],
    )
    decorators: list[ast.expr] = [ast.copy_location(ast.Constant(value=None), d) for d in node.decorator_list]
    kind = type(node)
    bare = kind(name=node.name, args=args, body=node.body, decorator_list=decorators, returns=None)
    return ast.copy_location(_without_type_parameters(bare), node)


def _matches(compiled: CodeType, running: CodeType) -> bool:
    count = running.co_argcount + running.co_kwonlyargcount
    if compiled.co_varnames[:count] != running.co_varnames[:count]:
        return False
    if _shape(compiled) == _shape(running):
        return True
    # Test runners rewrite `assert`, tools add instructions: then the source's own names must all be in use.
    rewritten = any(name.startswith("@") for name in (*running.co_names, *running.co_varnames))
    return rewritten and set(compiled.co_names) <= set(running.co_names) | {"AssertionError"}


# How a method call is compiled depends on whether the module imported the object's name, so it tells nothing.
_NULL = re.compile(r"^NULL(\|self)? \+ | \+ NULL(\|self)?$")
_INCIDENTAL = frozenset({"PUSH_NULL", "PRECALL", "CACHE", "EXTENDED_ARG", "RESUME", "NOP"})


def _shape(code: CodeType) -> list[Any]:
    """The instructions with their names, constants and operators, free of incidental differences."""
    return [
        (instruction.opname.replace("LOAD_METHOD", "LOAD_ATTR"), _operand(instruction))
        for instruction in dis.get_instructions(code)
        if instruction.opname not in _INCIDENTAL
    ]


def _operand(instruction: dis.Instruction) -> Any:
    if isinstance(instruction.argval, CodeType):
        return _shape(instruction.argval)
    if isinstance(instruction.argval, frozenset):  # its printed order depends on how it was built
        return sorted(map(repr, instruction.argval))
    if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs:
        return ""
    return _NULL.sub("", instruction.argrepr)
