"""Training texts as batches of token ids, each row with a partner whose residual stream it may be given.

A partner is another row about the same relation. Putting the partner's subject in the row's place gives a
sentence whose right answer is the partner's, which is what training on patched runs needs.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from .facts import Document


@dataclass(frozen=True)
class Example:
    """A training text: its token ids, and the indices of its subject's last token and of its answer.

    A text without a fact has -1 for both and no relation.
    """

    ids: list[int]
    relation: str | None
    subject_at: int
    answer_at: int


@dataclass(frozen=True)
class Batch:
    """`ids [batch, position]`, padded on the right; for each row the index of its subject's last token and
    of its answer, and its partner's row (its own where it has none), each `[batch]`.
    """

    ids: Tensor
    subject_at: Tensor
    answer_at: Tensor
    partner: Tensor


def encode(tokenizer: PreTrainedTokenizerBase, texts: Sequence[Document]) -> list[Example]:
    """The texts as token ids, each closed by the end-of-text token."""

    def length(text: str) -> int:
        return len(tokenizer(text)["input_ids"])

    return [
        Example(
            tokenizer(document.text)["input_ids"] + [tokenizer.eos_token_id],
            document.relation,
            length(document.up_to_subject) - 1 if document.relation else -1,
            length(document.prompt) if document.relation else -1,
        )
        for document in texts
    ]


def batches(examples: Sequence[Example], size: int, pad: int, rng: random.Random) -> Iterator[Batch]:
    """Batches without end, newly ordered each epoch; texts of like length go together to save padding.

    About half of the rows have a partner.
    """
    while True:
        order = rng.sample(examples, len(examples))
        for start in range(0, len(order), 8 * size):
            pool = sorted(order[start : start + 8 * size], key=lambda example: len(example.ids))
            cut = [pool[i : i + size] for i in range(0, len(pool), size)]
            rng.shuffle(cut)
            yield from (_collate(part, pad, rng) for part in cut)


def _collate(examples: list[Example], pad: int, rng: random.Random) -> Batch:
    longest = max(len(example.ids) for example in examples)
    partner = list(range(len(examples)))
    for relation in {example.relation: None for example in examples if example.relation}:
        rows = [row for row, example in enumerate(examples) if example.relation == relation]
        rng.shuffle(rows)
        for row, other in zip(rows, rows[1:] + rows[:1], strict=True):
            if rng.random() < 0.5:
                partner[row] = other
    return Batch(
        torch.tensor([example.ids + [pad] * (longest - len(example.ids)) for example in examples]),
        torch.tensor([example.subject_at for example in examples]),
        torch.tensor([example.answer_at for example in examples]),
        torch.tensor(partner),
    )
