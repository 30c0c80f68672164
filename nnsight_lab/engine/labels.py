"""The label rule, and the rewriting that goes with it.

One walk over a function's syntax tree does both, so that a label and the site it names cannot part: it visits
expressions in the order in which Python evaluates them, gives every call its label, and (on a copy of the tree) puts
a gate in front of the callee: `self.act(x)` becomes `gate(1, self.act)(x)`. The gate returns the callee itself, or
something that observes the call.

The rule: a call is named by its dotted callee joined by `_`; of a callee that does not start at a name only the
attributes after the last call or subscript's base are kept; subscripts are dropped; anything else is `call`. `_N` counts
the name in evaluation order. Zero-argument `super()` is no operation, nor is anything in decorators, defaults and
annotations, which run when the function is defined.

With `everything`, operators, bound names and returned values are sites too, under names that no call can have
taken (`op_add_0`, `var_x_0`, `return_0`): the numbering of calls is the same with and without them.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import Any

from .listing import CALL, NAME, OPERATOR, RETURN, Operation
from .sourcetext import FunctionNode

GATE = "__nnsight_lab_gate__"
TOOLS = "__nnsight_lab_tools__"

# Builtins that look at the frame which calls them: their call stays in the function's own frame.
FRAME_READERS = frozenset({"locals", "vars", "dir", "eval", "exec"})

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.MatMult: "matmul", ast.Div: "truediv",
    ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow", ast.LShift: "lshift", ast.RShift: "rshift",
    ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
}  # fmt: skip


def callee_name(func: ast.expr) -> str:
    """The label's stem for a call of `func`."""
    parts: list[str] = []
    while True:
        if isinstance(func, ast.Attribute):
            parts.append(func.attr)
            func = func.value
        elif isinstance(func, ast.Subscript):
            func = func.value
        elif isinstance(func, ast.Name):
            parts.append(func.id)
            break
        else:
            break
    return "_".join(reversed(parts)) or "call"


def _is_bare_super(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and not node.keywords


class Walker(ast.NodeTransformer):
    """Walks one function in evaluation order; collects its operations and rewrites the tree in place.

    Args:
        first_line: the `def` line's number in the file.
        everything: also list operators, bound names and returned values.
    """

    def __init__(self, first_line: int, everything: bool) -> None:
        self.first_line = first_line
        self.everything = everything
        self.operations: list[Operation] = []
        self._counts: Counter[str] = Counter()
        self._temporaries = 0
        self._outer_line: int | None = None

    def walk(self, node: FunctionNode) -> None:
        node.body = self._statements(node.body)

    # Sites

    def _add(self, stem: str, kind: str, node: ast.AST, callee: str = "") -> int:
        label = f"{stem}_{self._counts[stem]}"
        self._counts[stem] += 1
        at: Any = node
        line = at.lineno if self._outer_line is None else self._outer_line
        index = len(self.operations)
        self.operations.append(
            Operation(
                label=label,
                line=line - self.first_line - 1,
                kind=kind,
                index=index,
                column=at.col_offset,
                end_line=(at.end_lineno or line) - self.first_line - 1,
                end_column=at.end_col_offset or 0,
                callee=callee,
            )  # fmt: skip
        )
        return index

    def _gate(self, index: int, callee: ast.expr, at: ast.AST) -> ast.expr:
        gate = ast.Call(
            func=ast.Name(id=GATE, ctx=ast.Load()), args=[ast.Constant(value=index), callee], keywords=[]
        )
        return _located(gate, at)

    def _tool(self, name: str) -> ast.expr:
        return ast.Attribute(value=ast.Name(id=TOOLS, ctx=ast.Load()), attr=name, ctx=ast.Load())

    def _observed(self, stem: str, kind: str, value: ast.expr, at: ast.AST) -> ast.expr:
        """`value` passing through a site of its own."""
        index = self._add(stem, kind, at)
        return _located(
            ast.Call(func=self._gate(index, self._tool("identity"), at), args=[value], keywords=[]), at
        )

    # Expressions whose fields are not in evaluation order

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if _is_bare_super(node):
            return node
        callee = ast.unparse(node.func) if not isinstance(node.func, ast.Lambda) else "lambda"
        original = node.func
        node.func = self.visit(node.func)
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        index = self._add(callee_name(original), CALL, node, callee)
        if isinstance(original, ast.Name) and original.id in FRAME_READERS:
            # Called in place, from this frame; only its value passes the gate, without the engine's own names.
            clean = ast.Call(func=self._gate(index, ast.Constant(value=None), node), args=[node], keywords=[])
            return _located(clean, node)
        node.func = self._gate(index, node.func, original)
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        for position, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
            if key is not None:
                node.keys[position] = self.visit(key)
            node.values[position] = self.visit(value)
        return node

    def _comprehension(self, node: Any) -> ast.expr:
        for generator in node.generators:
            generator.iter = self.visit(generator.iter)
            generator.target = self.visit(generator.target)
            generator.ifs = [self.visit(condition) for condition in generator.ifs]
        for field in ("key", "value", "elt"):
            if hasattr(node, field):
                setattr(node, field, self.visit(getattr(node, field)))
        return node

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        node.body = self.visit(node.body)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        # Before Python 3.12 the parts of an f-string carry no line of their own that could be trusted.
        outer, self._outer_line = (
            self._outer_line,
            node.lineno if self._outer_line is None else self._outer_line,
        )
        self.generic_visit(node)
        self._outer_line = outer
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if not self.everything:
            return node
        name = _OPERATORS[type(node.op)]
        index = self._add(f"op_{name}", OPERATOR, node)
        call = ast.Call(
            func=self._gate(index, self._tool(name), node), args=[node.left, node.right], keywords=[]
        )
        return _located(call, node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        node.value = self.visit(node.value)
        if self.everything:
            node.value = self._observed(f"var_{node.target.id}", NAME, node.value, node.target)
        return node

    # Statements

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            result.extend(new if isinstance(new, list) else [new])
        return result

    def visit_FunctionDef(self, node: FunctionNode) -> ast.stmt:
        node.body = self._statements(node.body)
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        node.bases = [self.visit(base) for base in node.bases]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        node.body = self._statements(node.body)
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        if node.guard is not None:
            node.guard = self.visit(node.guard)
        node.body = self._statements(node.body)
        return node

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        if node.value is not None:
            at = node.value
            node.value = self.visit(node.value)
            if self.everything:
                index = self._add("return", RETURN, node)
                through = ast.Call(
                    func=self._gate(index, self._tool("identity"), at), args=[node.value], keywords=[]
                )
                node.value = _located(through, at)
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        node.value = self.visit(node.value)
        node.targets = [self.visit(target) for target in node.targets]
        if not self.everything:
            return node
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            target = node.targets[0]
            node.value = self._observed(f"var_{target.id}", NAME, node.value, target)
            return node
        return [node, *self._rebind(*node.targets)]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is not None:
            node.value = self.visit(node.value)
        if not isinstance(node.target, ast.Name):
            node.target = self.visit(node.target)
        elif self.everything and node.value is not None:
            node.value = self._observed(f"var_{node.target.id}", NAME, node.value, node.target)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        node.target = self.visit(node.target)
        node.value = self.visit(node.value)
        if not self.everything:
            return node
        name = _OPERATORS[type(node.op)]
        index = self._add(f"op_{name}", OPERATOR, node)
        before: list[ast.stmt] = []
        load, store = self._twice(node.target, before, node)
        operate = ast.Call(
            func=self._gate(index, self._tool("i" + name), node), args=[load, node.value], keywords=[]
        )
        after = ast.Assign(targets=[store], value=operate)
        used = [statement.targets[0] for statement in before if isinstance(statement, ast.Assign)]
        names = [ast.Name(id=target.id, ctx=ast.Del()) for target in used if isinstance(target, ast.Name)]
        clean: list[ast.stmt] = [ast.Delete(targets=names)] if names else []  # type: ignore[arg-type]
        return [_located(statement, node) for statement in (*before, after, *clean)]

    def _twice(self, target: ast.expr, before: list[ast.stmt], at: ast.AST) -> tuple[ast.expr, ast.expr]:
        """An expression to load and one to store `target`, evaluating its parts once, in `before`."""
        if isinstance(target, ast.Name):
            return ast.Name(id=target.id, ctx=ast.Load()), target
        if isinstance(target, ast.Attribute):
            held = self._hold(target.value, before)
            return (
                ast.Attribute(value=held(), attr=target.attr, ctx=ast.Load()),
                ast.Attribute(value=held(), attr=target.attr, ctx=ast.Store()),
            )
        assert isinstance(target, ast.Subscript)
        held = self._hold(target.value, before)
        key = ast.Subscript(value=self._tool("index"), slice=target.slice, ctx=ast.Load())
        index = self._hold(key, before)
        return (
            ast.Subscript(value=held(), slice=index(), ctx=ast.Load()),
            ast.Subscript(value=held(), slice=index(), ctx=ast.Store()),
        )

    def _hold(self, value: ast.expr, before: list[ast.stmt]) -> Any:
        name = f"__nnsight_lab_{self._temporaries}__"
        self._temporaries += 1
        before.append(ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=value))
        return lambda: ast.Name(id=name, ctx=ast.Load())

    def visit_For(self, node: Any) -> ast.stmt:
        node.iter = self.visit(node.iter)
        node.target = self.visit(node.target)
        bound = self._rebind(node.target) if self.everything else []
        node.body = [*bound, *self._statements(node.body)]
        node.orelse = self._statements(node.orelse)
        return node

    visit_AsyncFor = visit_For

    def visit_With(self, node: Any) -> ast.stmt:
        targets = []
        for item in node.items:
            item.context_expr = self.visit(item.context_expr)
            if item.optional_vars is not None:
                item.optional_vars = self.visit(item.optional_vars)
                targets.append(item.optional_vars)
        bound = self._rebind(*targets) if self.everything else []
        node.body = [*bound, *self._statements(node.body)]
        return node

    visit_AsyncWith = visit_With

    def _rebind(self, *targets: ast.expr) -> list[ast.stmt]:
        """Statements that pass each name bound by `targets` through a site of its own."""
        result: list[ast.stmt] = []
        for target in targets:
            for name in _names(target):
                value = self._observed(f"var_{name.id}", NAME, ast.Name(id=name.id, ctx=ast.Load()), name)
                result.append(
                    _located(ast.Assign(targets=[ast.Name(id=name.id, ctx=ast.Store())], value=value), name)
                )
        return result


def _names(target: ast.expr) -> Iterator[ast.Name]:
    if isinstance(target, ast.Name):
        yield target
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _names(element)
    elif isinstance(target, ast.Starred):
        yield from _names(target.value)


def _located(node: Any, at: ast.AST) -> Any:
    ast.copy_location(node, at)
    for child in ast.walk(node):
        if not hasattr(child, "lineno") and isinstance(child, (ast.expr, ast.stmt)):
            ast.copy_location(child, at)
    return node
