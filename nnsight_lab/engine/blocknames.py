"""From a block's statements to a function that can run later, elsewhere, with the names of its frame.

The lifted block is a function of one argument, its names. Every name that the block itself does not bind in an inner
scope (a lambda's parameter, a comprehension's variable) becomes an item of that argument: `x` is read as `names["x"]`,
`x = v` assigned as `names["x"] = v`. What the items mean (values of the frame, of this block, of an earlier one) is
decided at run time by `Names`. Positions are those of the file, so that tracebacks point there.

Statements that bind a name in another way than by assignment (`import`, `def`, `class`, `except ... as`, `case`) bind a
local of the lifted function, which is handed on to the names right after.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator
from typing import Any

from .frames import FRAME_READERS

NAMES = "__nnsight_lab_names__"

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def bound_in(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that `nodes` bind in their own scope, however they do it."""
    found: set[str] = set()
    outer: set[str] = set()
    for node in _own(nodes):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(_imported(alias) for alias in node.names)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            outer.update(node.names)
    return found - outer


def _imported(alias: ast.alias) -> str:
    return alias.asname or alias.name.split(".")[0]


def _own(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """`nodes` and what is below them in the same scope. A comprehension's walrus belongs to it, not its variables."""
    for node in nodes:
        yield node
        if isinstance(node, _SCOPES):
            continue
        if isinstance(node, _COMPREHENSIONS):
            for inner in ast.walk(node):
                if isinstance(inner, ast.NamedExpr):
                    yield inner.target
            continue
        yield from _own(ast.iter_child_nodes(node))


def _parameters(arguments: ast.arguments) -> set[str]:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return {argument.arg for argument in every if argument is not None}


class BlockNames(ast.NodeTransformer):
    """Turns a block's names into items of its names object.

    Attributes:
        loads: names that the block reads from outside its inner scopes.
        binds: names that it binds.
        escaping: those of `loads` that functions defined in the block read, which may be called after it.

    Args:
        own: names of the lifted function itself, which stay as they are.
    """

    def __init__(self, own: frozenset[str] = frozenset()) -> None:
        self.loads: set[str] = set()
        self.binds: set[str] = set()
        self.escaping: set[str] = set()
        self._own = own
        self._hidden: list[set[str]] = []  # names of the inner scopes around the node
        self._functions = 0

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The transformed statements; what they bind is handed on to the names."""
        changed: list[ast.stmt] = []
        for statement in body:
            result: Any = self.visit(copy.deepcopy(statement))
            changed += result if isinstance(result, list) else [result]
        return changed

    def _is_hidden(self, name: str) -> bool:
        return name in self._own or any(name in scope for scope in self._hidden)

    def _item(self, name: str, context: ast.expr_context, at: ast.AST) -> ast.expr:
        if isinstance(context, ast.Load):
            self.loads.add(name)
            if self._functions:
                self.escaping.add(name)
        else:
            self.binds.add(name)
        key = ast.Constant(value=name)
        item = ast.Subscript(value=ast.Name(id=NAMES, ctx=ast.Load()), slice=key, ctx=context)
        return ast.fix_missing_locations(ast.copy_location(item, at))

    def _hand_on(self, names: Iterable[str], at: ast.AST) -> list[ast.stmt]:
        return [
            ast.fix_missing_locations(
                ast.copy_location(
                    ast.Assign(
                        targets=[self._item(name, ast.Store(), at)],
                        value=ast.copy_location(ast.Name(id=name, ctx=ast.Load()), at),
                    ),
                    at,
                )
            )
            for name in names
            if not self._is_hidden(name)
        ]

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return node if self._is_hidden(node.id) else self._item(node.id, node.ctx, node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        value = self.visit(node.value)
        name = node.target.id
        if self._is_hidden(name):
            node.value = value
            return node
        self.binds.add(name)
        return self._asked("bind", [ast.Constant(value=name), value], node)

    def _asked(self, method: str, arguments: list[ast.expr], at: ast.AST) -> ast.expr:
        """A call of one of the names object's methods."""
        function = ast.Attribute(value=ast.Name(id=NAMES, ctx=ast.Load()), attr=method, ctx=ast.Load())
        call = ast.Call(func=function, args=arguments, keywords=[])
        return ast.fix_missing_locations(ast.copy_location(call, at))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "super" and not node.args and not self._hidden:
            return self._asked("parent", [], node)
        self.generic_visit(node)
        if name in FRAME_READERS and not self._hidden:
            node.func = self._asked("reader", [node.func], node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if not isinstance(node.target, ast.Name) or self._is_hidden(node.target.id):
            return self.generic_visit(node)
        if node.value is None:  # a bare annotation in a function binds nothing and is not evaluated
            return ast.copy_location(ast.Pass(), node)
        assigned = ast.Assign(targets=[self.visit(node.target)], value=self.visit(node.value))
        return ast.copy_location(assigned, node)

    def _import(self, node: Any) -> list[ast.stmt]:
        return [node, *self._hand_on([_imported(alias) for alias in node.names], node)]

    visit_Import = visit_ImportFrom = _import

    def _declaration(self, node: Any) -> Any:
        if self._hidden:  # a name of the frame is reached by way of the names, so it is no variable any more
            node.names = [name for name in node.names if self._is_hidden(name)]
        else:
            node.names = []
        return node if node.names else ast.copy_location(ast.Pass(), node)

    visit_Global = visit_Nonlocal = _declaration

    def _define(self, node: Any) -> list[ast.stmt]:
        node.decorator_list = [self.visit(part) for part in node.decorator_list]
        if isinstance(node, ast.ClassDef):
            node.bases = [self.visit(part) for part in node.bases]
            node.keywords = [self.visit(part) for part in node.keywords]
            self._inside(bound_in(node.body), lambda: self._each(node.body), function=False)
        else:
            self._signature(node.args)
            node.returns = node.returns and self.visit(node.returns)
            self._inside(_parameters(node.args) | bound_in(node.body), lambda: self._each(node.body))
        return [node, *self._hand_on([node.name], node)]

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _define

    def _signature(self, arguments: ast.arguments) -> None:
        arguments.defaults = [self.visit(part) for part in arguments.defaults]
        arguments.kw_defaults = [part and self.visit(part) for part in arguments.kw_defaults]
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        for argument in every:
            if argument is not None and argument.annotation is not None:
                argument.annotation = self.visit(argument.annotation)

    def _each(self, body: list[ast.stmt]) -> None:
        body[:] = self.statements(body)

    def _inside(self, names: set[str], work: Any, function: bool = True) -> None:
        self._hidden.append(names)
        self._functions += function
        try:
            work()
        finally:
            self._hidden.pop()
            self._functions -= function

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        self._signature(node.args)

        def body() -> None:
            node.body = self.visit(node.body)

        self._inside(_parameters(node.args) | bound_in([node.body]), body)
        return node

    def _comprehension(self, node: Any) -> Any:
        first = node.generators[0]
        first.iter = self.visit(first.iter)
        targets = bound_in([generator.target for generator in node.generators])

        def parts() -> None:
            for generator in node.generators:
                if generator is not first:
                    generator.iter = self.visit(generator.iter)
                generator.target = self.visit(generator.target)
                generator.ifs = [self.visit(condition) for condition in generator.ifs]
            for field in ("elt", "key", "value"):
                if hasattr(node, field):
                    setattr(node, field, self.visit(getattr(node, field)))

        self._inside(targets, parts, function=isinstance(node, ast.GeneratorExp))
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        node.type = node.type and self.visit(node.type)
        body = self.statements(node.body)
        if node.name and not self._is_hidden(node.name):
            # Python unbinds the name at the end of the handler, whatever ended it.
            bind = self._hand_on([node.name], node)
            forget = ast.Expr(value=self._asked("forget", [ast.Constant(value=node.name)], node))
            whole = ast.Try(body=body, handlers=[], orelse=[], finalbody=[ast.copy_location(forget, node)])
            body = [*bind, ast.copy_location(whole, node)]
        node.body = body
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        captured = bound_in([node.pattern])

        def guarded() -> None:
            node.pattern = self.visit(node.pattern)
            node.guard = node.guard and self.visit(node.guard)

        self._inside(captured, guarded, function=False)
        node.body = [*self._hand_on(sorted(captured), node.pattern), *self.statements(node.body)]
        return node

    def visit_TypeAlias(self, node: Any) -> list[ast.stmt]:
        name = node.name.id
        node.value = self.visit(node.value)
        return [node, *self._hand_on([name], node)]
