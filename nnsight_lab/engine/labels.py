"""The label rule, and the rewriting that goes with it.

One walk over a function's syntax tree does both, so that a label and the site it names cannot part: it visits
expressions in the order in which Python evaluates them, gives every call its label, and (on a copy of the tree) puts
a gate before the callee: `self.act(x)` becomes `gates[1](self.act, x)`. The gate makes the call, once callee and
arguments have been evaluated, or takes it to whoever observes the operation.

The rule: a call is named by its dotted callee joined by `_`; of a callee that does not start at a name only the
attributes after the last call (or other expression) are kept; subscripts are dropped; anything else is `call`. `_N`
counts the name in evaluation order; nested functions, lambdas and comprehensions count where they stand. Zero-argument
`super()` is no operation, nor is anything in decorators, defaults and annotations, those of nested functions included.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from typing import Any

from .listing import CALL, Operation
from .sourcetext import FunctionNode

GATES = "__nnsight_lab_gates__"
TOOLS = "__nnsight_lab_tools__"

# Before Python 3.12 the parts of an f-string carry positions that cannot be trusted.
_FSTRING_POSITIONS = sys.version_info >= (3, 12)


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


def located(node: Any, at: ast.AST) -> Any:
    """`node` with the position of `at` on itself and on every part that has none."""
    ast.copy_location(node, at)
    for child in ast.walk(node):
        if not hasattr(child, "lineno") and isinstance(child, (ast.expr, ast.stmt)):
            ast.copy_location(child, at)
    return node


def tool(name: str) -> ast.expr:
    """One of the functions that the rewritten code uses (`Tools`)."""
    return ast.Attribute(value=ast.Name(id=TOOLS, ctx=ast.Load()), attr=name, ctx=ast.Load())


def _is_bare_super(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and not node.keywords


class Walker(ast.NodeTransformer):
    """Walks one function in evaluation order; collects its calls and rewrites the tree in place.

    A method is written out below only where the order of a node's fields is not that of their evaluation, or where a
    part is left alone.

    Args:
        first_line: the `def` line's number in the file.
    """

    def __init__(self, first_line: int) -> None:
        self.first_line = first_line
        self.operations: list[Operation] = []
        self._counts = Counter[str]()
        self._fstring: ast.JoinedStr | None = None

    def walk(self, node: FunctionNode) -> None:
        node.body = self._statements(node.body)

    def _add(self, stem: str, kind: str, node: ast.AST, callee: str = "") -> int:
        """Take `node` in as the next operation and return its index."""
        label = f"{stem}_{self._number(stem, kind)}"
        at: Any = node if self._fstring is None else self._fstring
        index = len(self.operations)
        self.operations.append(
            Operation(
                label=label,
                line=at.lineno - self.first_line - 1,
                kind=kind,
                index=index,
                column=at.col_offset,
                end_line=at.end_lineno - self.first_line - 1,
                end_column=at.end_col_offset,
                callee=callee,
            )
        )
        return index

    def _number(self, stem: str, kind: str) -> int:
        """The next free number of the label `stem`."""
        number = self._counts[stem]
        self._counts[stem] += 1
        return number

    def _gate(self, index: int) -> ast.expr:
        return ast.Subscript(value=ast.Name(id=GATES, ctx=ast.Load()), slice=ast.Constant(value=index), ctx=ast.Load())

    # Expressions

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if _is_bare_super(node):
            return node
        original = node.func
        callee = "" if isinstance(original, ast.Lambda) else ast.unparse(original)
        node.func = self.visit(original)
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        index = self._add(callee_name(original), CALL, node, callee)
        if len(node.args) == 1 and isinstance(node.args[0], ast.Starred) and node.keywords:
            # Python iterates a lone starred argument after the keywords are evaluated, so it must stay the only one.
            star = node.args[0]
            both = [ast.Tuple(elts=[node.func], ctx=ast.Load()), star.value]
            star.value = located(ast.Call(func=tool("chain"), args=both, keywords=[]), original)
        else:
            node.args.insert(0, node.func)
        node.func = located(self._gate(index), original)
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        for position, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
            if key is not None:
                node.keys[position] = self.visit(key)
            node.values[position] = self.visit(value)
        return node

    def _comprehension(self, node: Any) -> ast.expr:
        node.generators = [clause for generator in node.generators for clause in self._generator(generator)]
        for field in ("key", "value", "elt"):
            if hasattr(node, field):
                setattr(node, field, self.visit(getattr(node, field)))
        return node

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def _generator(self, node: ast.comprehension) -> list[ast.comprehension]:
        """The clause or clauses that take the place of one `for ... in ... if ...`."""
        node.iter = self.visit(node.iter)
        node.target = self.visit(node.target)
        node.ifs = [self.visit(condition) for condition in node.ifs]
        return [node]

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        node.body = self.visit(node.body)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        outer = self._fstring
        if outer is None and not _FSTRING_POSITIONS:
            self._fstring = node
        self.generic_visit(node)
        self._fstring = outer
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

    def visit_Assign(self, node: ast.Assign) -> Any:
        node.value = self.visit(node.value)
        node.targets = [self.visit(target) for target in node.targets]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is not None:
            node.value = self.visit(node.value)
        node.target = self.visit(node.target)
        return node

    def visit_For(self, node: Any) -> ast.stmt:
        node.iter = self.visit(node.iter)
        node.target = self.visit(node.target)
        node.body = self._statements(node.body)
        node.orelse = self._statements(node.orelse)
        return node

    visit_AsyncFor = visit_For

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.pattern:
        return node  # a literal or a dotted name; `1 + 2j` is no operator here

    def visit_MatchMapping(self, node: ast.MatchMapping) -> ast.pattern:
        node.patterns = [self.visit(pattern) for pattern in node.patterns]
        return node
