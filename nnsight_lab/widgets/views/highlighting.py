"""Rows of Python in colours: Pygments' tokens, cut at the ends of rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pygments.lexers.python import PythonLexer
from pygments.token import Token as T

from ..wire import Span, SpanKind

# The first that a token is in decides.
_KINDS: tuple[tuple[object, SpanKind], ...] = (
    (T.Comment, "comment"),
    (T.String, "string"),
    (T.Number, "number"),
    (T.Keyword.Constant, "number"),
    (T.Keyword, "keyword"),
    (T.Operator.Word, "keyword"),
    (T.Operator, "operator"),
    (T.Punctuation, "operator"),
    (T.Name.Builtin.Pseudo, "self"),
    (T.Name.Builtin, "builtin"),
    (T.Name.Exception, "builtin"),
    (T.Name.Function, "function"),
    (T.Name, "name"),
)


def _kind(token: object) -> SpanKind:
    return next((kind for family, kind in _KINDS if token in family), "plain")  # type: ignore[operator]


@lru_cache(maxsize=256)
def highlighted(rows: tuple[str, ...]) -> tuple[tuple[Span, ...], ...]:
    """The spans of each row; joined, their texts are the rows."""
    lexer = PythonLexer(stripnl=False, ensurenl=False)
    lines: list[list[Span]] = [[]]
    for token, text in lexer.get_tokens("\n".join(rows)):
        kind = _kind(token)
        for number, piece in enumerate(text.split("\n")):
            if number:
                lines.append([])
            _append(lines[-1], kind, piece)
    return tuple(tuple(line) for line in _as_many(lines, len(rows)))


def _append(line: list[Span], kind: SpanKind, piece: str) -> None:
    """Add a piece of text, to the last span where that has the same colour."""
    if not piece:
        return
    if line and line[-1].kind == kind:
        line[-1] = Span(kind, line[-1].text + piece)
    else:
        line.append(Span(kind, piece))


def _as_many(lines: list[list[Span]], count: int) -> Sequence[list[Span]]:
    return [*lines, *([] for _ in range(count - len(lines)))][:count]
