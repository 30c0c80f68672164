"""What a function's operations look like, apart from the names of local variables, layout and line numbers.

The text of a listing is parsed, local variables are replaced (by `_` in the description of one operation, by their
order of appearance in the digest of the function) and the rest is written out again. Annotations and the docstring
are left out. What stays is what decides which computation an operation is: what it calls, on what kind of arguments,
in which statement, under which conditions.
"""

from __future__ import annotations

import ast
import copy
import functools
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from ..engine import Listing, Operation
from ..engine.listing import NAME

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match, ast.match_case)
_HANDLERS = (ast.ExceptHandler,)
_FIRST = ("self", "cls")


@dataclass(frozen=True, slots=True)
class Look:
    """One operation without local names: see `Fingerprint` for the fields."""

    kind: str
    callee: str
    expression: str
    statement: str
    branch: str


@dataclass(frozen=True, slots=True)
class FunctionLook:
    """A function without local names: the digest of the whole and the look of each operation, in evaluation order."""

    digest: str
    operations: tuple[Look, ...]


def _short_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@functools.lru_cache(maxsize=512)
def look_at(listing: Listing) -> FunctionLook:
    """Describe the function of a listing and all its operations."""
    tree = ast.parse("\n".join(listing.rows)).body[0]
    assert isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef))  # a listing begins at its `def`
    local = _local_names(tree)
    spans = _spans(tree, listing)
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    whole = ast.unparse(_Anonymous(local, ordered=True).visit(_bare(copy.deepcopy(tree))))
    looks = tuple(_look(operation, spans, parents, local) for operation in listing.operations)
    return FunctionLook(hashlib.sha256(whole.encode()).hexdigest(), looks)


def _local_names(tree: ast.AST) -> frozenset[str]:
    names: set[str] = set()
    shared: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case ast.arg(arg=name):
                names.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.alias(name=name, asname=asname):
                names.add(asname or name.split(".")[0])
            case ast.Global(names=listed) | ast.Nonlocal(names=listed):
                shared.update(listed)
    return frozenset(names - shared - set(_FIRST))


class _Anonymous(ast.NodeTransformer):
    """Replaces local names by `_`, or by `v0`, `v1`, ... in their order of appearance."""

    def __init__(self, local: frozenset[str], ordered: bool = False) -> None:
        self.local = local
        self.ordered = ordered
        self.order: dict[str, str] = {}

    def _rename(self, name: str) -> str:
        if name not in self.local:
            return name
        return self.order.setdefault(name, f"v{len(self.order)}") if self.ordered else "_"

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field in ("id", "arg", "name", "asname"):
            value = getattr(node, field, None)
            if isinstance(value, str) and not isinstance(node, (ast.keyword, ast.alias)):
                setattr(node, field, self._rename(value))
        if isinstance(node, ast.alias):
            node.asname = self._rename(node.asname or node.name.split(".")[0])
        return super().generic_visit(node)


def _bare(tree: ast.AST) -> ast.AST:
    """The tree without annotations and docstrings; it is changed in place."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
            node.decorator_list = []
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(value=...)
    return tree


def _spans(tree: ast.AST, listing: Listing) -> dict[tuple[int, int, int, int], list[ast.AST]]:
    """The nodes of the tree by where their text stands, in the listing's lines and columns."""

    def column(line: int, offset: int) -> int:
        return len(listing.rows[line - 1].encode()[:offset].decode(errors="replace"))

    found: dict[tuple[int, int, int, int], list[ast.AST]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.stmt)) and node.end_lineno is not None and node.end_col_offset is not None:
            span = (
                node.lineno - 2,
                column(node.lineno, node.col_offset),
                node.end_lineno - 2,
                column(node.end_lineno, node.end_col_offset),
            )
            found.setdefault(span, []).append(node)
    return found


def _look(
    operation: Operation,
    spans: dict[tuple[int, int, int, int], list[ast.AST]],
    parents: dict[ast.AST, ast.AST],
    local: frozenset[str],
) -> Look:
    nodes = spans.get((operation.line, operation.column, operation.end_line, operation.end_column), [])
    if operation.kind == "call":
        nodes = [node for node in nodes if isinstance(node, ast.Call)]
    stem = operation.label.rpartition("_")[0]
    if not nodes:  # text inside an f-string, whose place the parser does not tell: its own words have to do
        return Look(operation.kind, operation.callee or stem, "", "", "")
    node = nodes[0]

    def text(part: ast.AST) -> str:
        return ast.unparse(_Anonymous(local).visit(copy.deepcopy(part)))

    callee = text(node.func) if isinstance(node, ast.Call) else ("" if stem.startswith("var_") else stem)
    statement, branch = _surroundings(node, parents, text)
    expression = _target(node, parents) if operation.kind == NAME else text(node)
    return Look(operation.kind, callee, _short_digest(expression), _short_digest(statement), branch)


def _target(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    """Which of the names that its statement binds a name is; the name itself is local and tells nothing."""
    statement = node
    while not isinstance(statement, ast.stmt) and statement in parents:
        statement = parents[statement]
    targets = [part for part in ast.walk(statement) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
    return f"target {targets.index(node)}" if isinstance(node, ast.Name) and node in targets else "target"


def _surroundings(node: ast.AST, parents: dict[ast.AST, ast.AST], text: object) -> tuple[str, str]:
    """The statement that `node` stands in (of a compound one its head), and the blocks around it, outermost first."""
    assert callable(text)
    statement = ""
    blocks: list[str] = []
    child = node
    while child in parents:
        parent = parents[child]
        if isinstance(child, ast.stmt) and not statement:
            statement = next(iter(_head(child, text)), "") if isinstance(child, _BLOCKS) else str(text(child))
        if isinstance(parent, (*_BLOCKS, *_HANDLERS, *_SCOPES)) and parent in parents:
            arm = _arm(parent, child)
            if arm:
                blocks.append(f"{arm} {' '.join(_head(parent, text))}".strip())
        child = parent
    return statement, " > ".join(reversed(blocks))


def _head(node: ast.AST, text: object) -> Iterator[str]:
    """The parts of a compound statement that stand before its colon."""
    assert callable(text)
    for field in ("target", "iter", "test", "items", "subject", "pattern", "guard", "type"):
        value = getattr(node, field, None)
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.AST):
                yield str(text(part))


def _arm(block: ast.AST, child: ast.AST) -> str:
    """Which part of a block `child` is: "if body", "if orelse", "for body"; empty for its head."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        part = getattr(block, field, None)
        if isinstance(part, list) and child in part:
            return f"{type(block).__name__.lower()} {field}"
    return "lambda" if isinstance(block, ast.Lambda) else ""
