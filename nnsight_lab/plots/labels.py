"""Texts on figures: tokens with their spaces seen, sites without what they have in common.

plotly reads a few HTML tags, and `$...$` as a formula, in every text. Tokens hold such characters, so all text that
comes from a model goes through `plain`.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

SPACE = "\u2423"


def plain(text: str) -> str:
    """`text` such that plotly shows it as it is."""
    return escape(text, quote=False).replace("$", "&#36;")


def token_text(token: str) -> str:
    """A token for display: spaces as an open box, control characters escaped, markup shown and not obeyed."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in token)
    return plain(shown.replace(" ", SPACE))


def token_labels(tokens: Sequence[str]) -> tuple[str, ...]:
    """Position and text of each token, all different: "0 The", "1 ␣Eiffel"."""
    return tuple(f"{number} {token_text(token)}" for number, token in enumerate(tokens))


def shorten_sites(sites: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Short labels for sites, all different, and a title that says what is left out.

    Sites that differ in one part of their path alone are labelled by it: `transformer.h.3.mlp` as "3" under the title
    "transformer.h.*.mlp". A name of one part beside them, such as "embedding", stays. Others keep their name, and the
    title is "site".
    """
    split = [site.split(".") for site in sites]
    paths = [parts for parts in split if len(parts) > 1]
    if len(paths) > 1 and len({len(parts) for parts in paths}) == 1:
        differing = [i for i, column in enumerate(zip(*paths, strict=True)) if len(set(column)) > 1]
        if len(differing) == 1:
            at = differing[0]
            title = ".".join("*" if i == at else part for i, part in enumerate(paths[0]))
            labels = tuple(plain(parts[at] if len(parts) > 1 else parts[0]) for parts in split)
            if len(set(labels)) == len(labels):
                return labels, plain(title)
    return tuple(plain(site) for site in sites), "site"


def counted(number: int, what: str) -> str:
    """ "1 cell", "2 cells"."""
    return f"{number} {what}" + ("" if number == 1 else "s")


def signed(value: float, digits: int = 4) -> str:
    """A number with `digits` significant digits and a minus sign that is one."""
    return f"{value:.{digits}g}".replace("-", "\u2212")
