"""Which tokens the answers of a metric are: named for display, with a word of warning where another was likely meant.

Tokenizers give a word inside a text a token of its own with the leading space. `"Paris"` and `" Paris"` are then two
answers, and after a prompt without a space at its end the second is almost always the one meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch import Tensor

from .metrics import Answer, AnyMetric, LogitDiff, Probability, Rank
from .tokens import token_texts


def answers_of(metric: AnyMetric | None) -> tuple[Answer, ...]:
    """The answers that a metric reads, in its own order."""
    match metric:
        case LogitDiff(correct=correct, wrong=wrong):
            return correct, wrong
        case Probability(token=token) | Rank(token=token):
            return (token,)
    return ()


def metric_name(metric: AnyMetric, tokenizer: Any, answer_id: Callable[[Answer], int]) -> str:
    """The metric with the texts of its tokens: `LogitDiff ' Berlin' − ' Paris'`. Without a tokenizer, their ids.

    Raises:
        ScopeError: an answer that is not one token.
    """
    texts = token_texts(tokenizer, [answer_id(answer) for answer in answers_of(metric)])
    shown = " − ".join(texts if tokenizer is None else [f"'{text}'" for text in texts])
    return f"{type(metric).__name__} {shown}".rstrip()


def space_notes(
    answers: Iterable[Answer], tokenizer: Any, answer_id: Callable[[Answer], int], runs: Sequence[Tensor]
) -> tuple[str, ...]:
    """One sentence for each answer whose text is another token when a space stands before it, if one of these is
    likelier than the answer as given.

    Args:
        runs: logits `[vocabulary]` of the runs that are judged; each token's probability is the largest of them.
    """
    if tokenizer is None:
        return ()
    notes, likelier = [], False
    for answer in dict.fromkeys(answers):
        if not isinstance(answer, str) or answer[:1].isspace():
            continue
        spaced = tokenizer(f" {answer}", add_special_tokens=False)["input_ids"]
        own = answer_id(answer)
        if len(spaced) != 1 or spaced[0] == own:
            continue
        given, meant = (
            max(float(logits.double().softmax(-1)[token]) for logits in runs) for token in (own, int(spaced[0]))
        )
        likelier |= meant > given
        notes.append(
            f"{answer!r} is token {own}, of probability {given:.3g} here. With a leading space it is token "
            f"{spaced[0]}, of probability {meant:.3g}: write {' ' + answer!r} if that is meant."
        )
    return tuple(notes) if likelier else ()
