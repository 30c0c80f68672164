"""What a run is judged by: numbers computed from the logits at the last position.

All of them take `clean` and `edited` logits of shape `[vocabulary]`; logarithms are natural.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from msgspec import Struct

if TYPE_CHECKING:
    from torch import Tensor

# A token: its id, or text that the tokenizer makes one token of.
Answer = int | str
AnswerId = Callable[[Answer], int]


def _tag(name: str) -> str:
    return {"TopK": "top_k", "LogitDiff": "logit_diff"}.get(name, name.lower())


class Metric(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    repr_omit_defaults=True,
    tag_field="kind",
    tag=_tag,
):
    """Base of all metrics."""


class TopK(Metric, frozen=True):
    """No number: the table of the `k` likeliest tokens before and after."""

    k: int = 10

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"k is at least 1, not {self.k}")


class LogitDiff(Metric, frozen=True):
    """Logit of `correct` minus logit of `wrong`."""

    correct: Answer
    wrong: Answer


class Probability(Metric, frozen=True):
    """Probability of `token`, from 0 to 1."""

    token: Answer


class KL(Metric, frozen=True):
    """Kullback-Leibler divergence KL(clean || edited) in nats; 0 for the clean run."""


class Rank(Metric, frozen=True):
    """Rank of `token` among all tokens; 0 is the likeliest. Equal logits rank by token id."""

    token: Answer


AnyMetric = TopK | LogitDiff | Probability | KL | Rank


def measure(metric: AnyMetric, logits: Tensor, clean: Tensor, answer_id: AnswerId) -> float:
    """The value of `metric` for one run.

    Args:
        logits: `[vocabulary]`, of the run that is judged.
        clean: `[vocabulary]`, of the clean run; only KL looks at it.
        answer_id: turns an answer into a token id.

    Raises:
        TypeError: for `TopK`, which is a table and no number.
    """
    logits = logits.double()
    match metric:
        case LogitDiff():
            return float(logits[answer_id(metric.correct)] - logits[answer_id(metric.wrong)])
        case Probability():
            return float(logits.softmax(-1)[answer_id(metric.token)])
        case KL():
            return kl_divergence(clean, logits)
        case Rank():
            return float(ranks(logits)[answer_id(metric.token)])
        case _:
            raise TypeError(f"{type(metric).__name__} is no number")


def kl_divergence(clean: Tensor, edited: Tensor) -> float:
    """KL(clean || edited) in nats, computed in float64, from logits `[vocabulary]`.

    Tokens that the clean run gives probability 0 (a logit of minus infinity) add nothing.
    """
    p = clean.double().log_softmax(-1)
    q = edited.double().log_softmax(-1)
    terms = torch.where(p.isneginf(), torch.zeros_like(p), p.exp() * (p - q))
    total = float(terms.sum())
    return max(total, 0.0) if total == total else total


def ranks(logits: Tensor) -> Tensor:
    """Rank of every token, `[vocabulary]` int64: 0 for the largest logit; equal logits rank by token id."""
    order = logits.argsort(dim=-1, descending=True, stable=True)
    places = torch.empty_like(order)
    places[order] = torch.arange(len(order), device=order.device)
    return places


def normalised_recovery(value: float, baseline: float, full: float) -> float:
    """How far `value` has come from `baseline` (0) to `full` (1): (value - baseline) / (full - baseline).

    In denoising the baseline is the corrupted run and full the clean one (Wang et al. 2022, "Interpretability in the
    Wild", section 3); values outside 0 to 1 are possible. NaN where baseline and full are equal.
    """
    span = full - baseline
    return (value - baseline) / span if span else float("nan")
