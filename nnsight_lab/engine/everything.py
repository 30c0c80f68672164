"""The further sites of `source(everything=True)`: operators, bound names and returned values.

They get names of their own (`op_add_0`, `var_x_0`, `return_0`; where a function is called `op_add`, the numbers after
those of its calls), so that turning them on renames no call. Each passes a gate like a call's: `a + b` becomes
`gates[3](add, a, b)`, `return x` becomes `return gates[4](identity, x)`. Parts are evaluated once and in the original
order; an augmented assignment to `a[i]` holds `a` and `i` in names that are deleted after it.

A name bound by unpacking, `for`, `with` or a chained assignment is passed through its site right after: `x =
gates[5](identity, x)`. In a comprehension a clause does the same: `for x in xs for x in (gates[5](identity, x),)`.
Names bound by `import`, `except ... as`, `match` patterns and `def` are no sites. Nor are those that a class body
binds by unpacking and the like: a class may refuse to have a name bound twice, as enumerations do.
"""

from __future__ import annotations

import ast
import copy
import itertools
import operator
from collections import Counter
from collections.abc import Iterator
from typing import Any

from .labels import Walker, located, tool
from .listing import CALL, NAME, OPERATOR, RETURN
from .sourcetext import FunctionNode

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.MatMult: "matmul", ast.Div: "truediv",
    ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow", ast.LShift: "lshift", ast.RShift: "rshift",
    ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
}  # fmt: skip


class _Index:
    def __getitem__(self, key: Any) -> Any:
        return key


class Tools:
    """What the rewritten code calls by itself: `add`, `iadd`, ... for operators, `index`, `identity`, `chain`."""

    chain = itertools.chain
    index = _Index()

    @staticmethod
    def identity(value: Any) -> Any:
        return value


for _name in _OPERATORS.values():
    _function = f"{_name}_" if _name in ("and", "or") else _name
    setattr(Tools, _name, getattr(operator, _function))
    setattr(Tools, f"i{_name}", getattr(operator, f"i{_function}".removesuffix("_")))


def _names(target: ast.expr) -> Iterator[ast.Name]:
    if isinstance(target, ast.Name):
        yield target
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _names(element)
    elif isinstance(target, ast.Starred):
        yield from _names(target.value)


class EverythingWalker(Walker):
    """A walker that takes operators, bound names and returned values for sites as well."""

    def __init__(self, first_line: int) -> None:
        super().__init__(first_line)
        self._temporaries = 0
        self._in_class = False
        self._further = Counter[str]()

    def walk(self, node: FunctionNode) -> None:
        calls = Walker(self.first_line)
        calls.walk(copy.deepcopy(node))
        self._further.update(calls._counts)
        super().walk(node)

    def _number(self, stem: str, kind: str) -> int:
        if kind == CALL:
            return super()._number(stem, kind)
        number = self._further[stem]
        self._further[stem] += 1
        return number

    def _observed(self, stem: str, kind: str, value: ast.expr, at: ast.AST) -> ast.expr:
        """`value` passing through a site of its own."""
        index = self._add(stem, kind, at)
        return located(ast.Call(func=self._gate(index), args=[tool("identity"), value], keywords=[]), at)

    def _bound(self, name: ast.Name, value: ast.expr) -> ast.expr:
        return self._observed(f"var_{name.id}", NAME, value, name)

    def _rebind(self, *targets: ast.expr) -> list[ast.stmt]:
        """Statements that pass each name bound by `targets` through a site of its own."""
        if self._in_class:
            return []
        return [
            located(
                ast.Assign(
                    targets=[ast.Name(id=name.id, ctx=ast.Store())],
                    value=self._bound(name, ast.Name(id=name.id, ctx=ast.Load())),
                ),
                name,
            )
            for target in targets
            for name in _names(target)
        ]

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        outer, self._in_class = self._in_class, True
        try:
            return super().visit_ClassDef(node)
        finally:
            self._in_class = outer

    def visit_FunctionDef(self, node: FunctionNode) -> ast.stmt:
        outer, self._in_class = self._in_class, False
        try:
            return super().visit_FunctionDef(node)
        finally:
            self._in_class = outer

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        name = _OPERATORS[type(node.op)]
        index = self._add(f"op_{name}", OPERATOR, node)
        call = ast.Call(func=self._gate(index), args=[tool(name), node.left, node.right], keywords=[])
        return located(call, node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        node.value = self._bound(node.target, self.visit(node.value))
        return node

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        if node.value is not None:
            at = node.value
            value = self.visit(node.value)
            index = self._add("return", RETURN, node)
            through = ast.Call(func=self._gate(index), args=[tool("identity"), value], keywords=[])
            node.value = located(through, at)
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        super().visit_Assign(node)
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            node.value = self._bound(node.targets[0], node.value)
            return node
        return [node, *self._rebind(*node.targets)]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        super().visit_AnnAssign(node)
        if isinstance(node.target, ast.Name) and node.value is not None:
            node.value = self._bound(node.target, node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        name = _OPERATORS[type(node.op)]
        index = self._add(f"op_{name}", OPERATOR, node)
        before: list[ast.stmt] = []
        held: list[ast.expr] = []
        load, store = self._twice(node.target, before, held)
        operate = ast.Call(func=self._gate(index), args=[tool(f"i{name}"), load, node.value], keywords=[])
        after: list[ast.stmt] = [ast.Assign(targets=[store], value=operate)]
        if held:
            after.append(ast.Delete(targets=held))
        return [located(statement, node) for statement in (*before, *after)]

    def _twice(self, target: ast.expr, before: list[ast.stmt], held: list[ast.expr]) -> tuple[ast.expr, ast.expr]:
        """An expression to load and one to store `target`, whose parts are evaluated once, in `before`."""
        if isinstance(target, ast.Name):
            return ast.Name(id=target.id, ctx=ast.Load()), target
        if isinstance(target, ast.Attribute):
            owner = self._hold(target.value, before, held)
            return (
                ast.Attribute(value=ast.Name(id=owner, ctx=ast.Load()), attr=target.attr, ctx=ast.Load()),
                ast.Attribute(value=ast.Name(id=owner, ctx=ast.Load()), attr=target.attr, ctx=ast.Store()),
            )
        if not isinstance(target, ast.Subscript):
            raise TypeError(f"an augmented assignment to {type(target).__name__} is not Python")
        owner = self._hold(target.value, before, held)
        key = ast.Subscript(value=tool("index"), slice=target.slice, ctx=ast.Load())
        index = self._hold(key, before, held)
        load, store = (
            ast.Subscript(
                value=ast.Name(id=owner, ctx=ast.Load()), slice=ast.Name(id=index, ctx=ast.Load()), ctx=context
            )
            for context in (ast.Load(), ast.Store())
        )
        return load, store

    def _hold(self, value: ast.expr, before: list[ast.stmt], held: list[ast.expr]) -> str:
        """Evaluate `value` in `before` under a name of its own, which is returned."""
        name = f"__nnsight_lab_{self._temporaries}__"
        self._temporaries += 1
        before.append(ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=value))
        held.append(ast.Name(id=name, ctx=ast.Del()))
        return name

    def visit_For(self, node: Any) -> ast.stmt:
        node.iter = self.visit(node.iter)
        node.target = self.visit(node.target)
        node.body = [*self._rebind(node.target), *self._statements(node.body)]
        node.orelse = self._statements(node.orelse)
        return node

    visit_AsyncFor = visit_For

    def visit_With(self, node: Any) -> ast.stmt:
        node.items = [self.visit(item) for item in node.items]
        targets = [item.optional_vars for item in node.items if item.optional_vars is not None]
        node.body = [*self._rebind(*targets), *self._statements(node.body)]
        return node

    visit_AsyncWith = visit_With

    def _generator(self, node: ast.comprehension) -> list[ast.comprehension]:
        node.iter = self.visit(node.iter)
        node.target = self.visit(node.target)
        clauses = [node]
        for name in _names(node.target):
            value = self._bound(name, ast.Name(id=name.id, ctx=ast.Load()))
            once = ast.Tuple(elts=[value], ctx=ast.Load())
            target = ast.Name(id=name.id, ctx=ast.Store())
            clauses.append(
                ast.comprehension(target=located(target, name), iter=located(once, name), ifs=[], is_async=0)
            )
        conditions, node.ifs = node.ifs, []
        clauses[-1].ifs = [self.visit(condition) for condition in conditions]
        return clauses
