"""Tokens as text, and positions written in the three ways a person writes them.

A tokenizer's `decode` of one token drops what matters in a table: SentencePiece pieces lose their leading space and
pieces of a multi-byte character become question marks. Here every token has a text of its own: spaces kept, control
characters escaped, incomplete characters as their bytes (`\\xe2\\x82`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .errors import ScopeError
from .metrics import Answer
from .steps import Position, Token, is_slice

_SPACE_MARK = "\u2581"
_UNKNOWN = "\ufffd"
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def token_texts(tokenizer: Any, ids: Iterable[int]) -> tuple[str, ...]:
    """The text of each token, for display and for naming positions. Without a tokenizer, the ids as text."""
    return tuple(_text(tokenizer, int(number)) for number in ids)


def _text(tokenizer: Any, number: int) -> str:
    if tokenizer is None:
        return str(number)
    piece = tokenizer.convert_ids_to_tokens(number)
    if piece is None:  # the vocabulary is padded beyond the tokenizer's
        return f"<{number}>"
    byte = _BYTE_PIECE.fullmatch(piece)
    if byte:
        return (
            visible(bytes([int(byte[1], 16)]).decode("latin-1")) if int(byte[1], 16) < 128 else f"\\x{byte[1].lower()}"
        )
    text = tokenizer.decode([number], clean_up_tokenization_spaces=False)
    if _UNKNOWN in text:
        table = _bytes_of_characters()
        if all(character in table for character in piece):
            return "".join(f"\\x{table[character]:02x}" for character in piece)
    spaces = len(piece) - len(piece.lstrip(_SPACE_MARK))
    return visible(" " * (spaces - (len(text) - len(text.lstrip(" ")))) + text)


@functools.cache
def _bytes_of_characters() -> dict[str, int]:
    """The byte that each character of a byte-level piece stands for: printable ones for themselves, the others in
    order from U+0100 (the convention of GPT-2's tokenizer)."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + i): byte for i, byte in enumerate(others)}


def visible(text: str) -> str:
    """`text` with control characters escaped: a line feed becomes backslash and n. Spaces stay."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def answer_reader(tokenizer: Any, vocabulary: int) -> Callable[[Answer], int]:
    """A function that turns an answer, text or id, into a token id.

    It raises ScopeError for text that is not exactly one token and for an id outside the vocabulary.
    """

    def read(answer: Answer) -> int:
        if isinstance(answer, int):
            if not 0 <= answer < vocabulary:
                raise ScopeError(f"metric: token id {answer} is outside the vocabulary of {vocabulary}.")
            return answer
        if tokenizer is None:
            raise ScopeError(f"metric: {answer!r} needs a tokenizer; give the token id instead.")
        ids = tokenizer(answer, add_special_tokens=False)["input_ids"]
        if len(ids) != 1:
            pieces = ", ".join(repr(text) for text in token_texts(tokenizer, ids)) or "no token at all"
            raise ScopeError(
                f"metric: {answer!r} is {len(ids)} tokens ({pieces}), but an answer is one token. "
                "Mind the leading space, or give a token id."
            )
        return int(ids[0])

    return functools.cache(read)


def resolve_positions(positions: Sequence[Position], tokens: Sequence[str], length: int, where: str) -> tuple[int, ...]:
    """Positions as numbers from 0, in the order given, each once.

    Args:
        tokens: texts of the prompt's tokens; empty where there are none.
        length: number of positions.
        where: the field, for messages: "steps[0].positions".

    Raises:
        ScopeError: out of range, an empty slice, a token that is not there, or one that is there several times.
    """
    found: dict[int, None] = {}
    for number, position in enumerate(positions):
        for place in _resolve(position, tokens, length, f"{where}[{number}]"):
            found[place] = None
    return tuple(found)


def _resolve(position: Position, tokens: Sequence[str], length: int, where: str) -> Sequence[int]:
    if isinstance(position, int):
        if not -length <= position < length:
            raise ScopeError(
                f"{where}: there is no position {position} in a prompt of {length} tokens (0 to {length - 1}, "
                f"or -{length} to -1 from the end)."
            )
        return [position % length]
    if isinstance(position, str) and is_slice(position):
        places = range(length)[parse_slice(position, where)]
        if not places:
            raise ScopeError(f"{where}: the slice {position!r} is empty in a prompt of {length} tokens.")
        return places
    token = position if isinstance(position, Token) else Token(position)
    matches = _spans(visible(token.text), tokens)
    if not matches:
        raise ScopeError(_no_token(token.text, tokens, where))
    if token.occurrence is None and len(matches) > 1:
        at = ", ".join(str(match[0]) for match in matches)
        raise ScopeError(
            f"{where}: the token {token.text!r} is at several positions: {at}. "
            f"Give the number, or Token({token.text!r}, occurrence=0)."
        )
    occurrence = token.occurrence or 0
    if occurrence >= len(matches):
        times = "once" if len(matches) == 1 else f"{len(matches)} times"
        raise ScopeError(f"{where}: occurrence {occurrence} of {token.text!r}, but the prompt has it {times}.")
    return matches[occurrence]


def _spans(text: str, tokens: Sequence[str]) -> list[range]:
    """Runs of tokens that together read `text`."""
    found = []
    for start in range(len(tokens)):
        joined = ""
        for stop in range(start, len(tokens)):
            joined += tokens[stop]
            if len(joined) >= len(text):
                if joined == text:
                    found.append(range(start, stop + 1))
                break
    return found


def _no_token(text: str, tokens: Sequence[str], where: str) -> str:
    if not tokens:
        return f"{where}: {text!r} names a token, but the input is not tokens; give numbers."
    close = [f"{token!r} at {i}" for i, token in enumerate(tokens) if token.strip().lower() == text.strip().lower()]
    hint = f" There is {' and '.join(close)}: mind spaces and capitals." if close else ""
    listed = ", ".join(repr(token) for token in tokens[:40]) + (", ..." if len(tokens) > 40 else "")
    return f"{where}: the prompt has no token {text!r}.{hint} Its tokens are {listed}."


def parse_slice(text: str, where: str) -> slice:
    """A slice written as text. Raises ScopeError for a step of 0."""
    bounds = [int(part) if part.strip() else None for part in text.split(":")]
    if len(bounds) == 3 and bounds[2] == 0:
        raise ScopeError(f"{where}: the slice {text!r} has a step of 0.")
    return slice(*bounds)


def resolve_indices(indices: tuple[int, ...] | str, size: int, where: str, what: str) -> tuple[int, ...]:
    """Numbers along an axis of `size` from a list or an expression such as "0:10,17", each once.

    Raises:
        ScopeError: out of range or an empty slice.
    """
    parts: list[int | str] = [part.strip() for part in indices.split(",")] if isinstance(indices, str) else [*indices]
    found: dict[int, None] = {}
    for part in parts:
        if isinstance(part, str) and ":" in part:
            places: Sequence[int] = range(size)[parse_slice(part, where)]
            if not places:
                raise ScopeError(f"{where}: {part!r} selects none of the {size} {what}.")
        else:
            number = int(part)
            if not -size <= number < size:
                raise ScopeError(f"{where}: there is no number {number} among {size} {what} (0 to {size - 1}).")
            places = [number % size]
        for place in places:
            found[place] = None
    return tuple(found)
