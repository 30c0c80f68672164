"""What of the model's output is compared, and the table that is made of it."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from .errors import ExperimentError
from .metrics import AnyMetric, TopK, ranks
from .plan import Element
from .result import TokenRow
from .tokens import token_texts
from .values import find_element, pick

Mode = Literal["logits", "classes", "tensor"]


def output_mode(output: Any, metric: AnyMetric | None) -> tuple[Mode, Element]:
    """How to read the model's output, and where the tensor stands in it.

    "logits": `[batch, position, vocabulary]`, read at the last position; "classes": `[batch, class]`; "tensor":
    anything else, compared as it is.

    Raises:
        ExperimentError: the output is no logits, but the metric needs them.
        ScopeError: the output holds no tensor.
    """
    named = isinstance(output, dict) and isinstance(output.get("logits"), Tensor)
    element = find_element(output, ("logits",) if named else None, "the model's output")
    tensor = pick(output, element)
    if tensor.is_floating_point() and (named or metric is not None):
        if tensor.dim() == 3:
            return "logits", element
        if tensor.dim() == 2:
            return "classes", element
    if metric is not None and not isinstance(metric, TopK):
        raise ExperimentError(
            f"metric: {type(metric).__name__} needs logits, but the model's output is a {tensor.dtype} tensor of shape "
            f"{list(tensor.shape)}. Use metric=None to compare the outputs."
        )
    return "tensor", element


def read_output(output: Any, mode: Mode, element: Element) -> Tensor:
    """The tensor that is compared: `[batch, vocabulary]` of the last position for logits."""
    tensor = pick(output, element).detach()
    return tensor[:, -1] if mode == "logits" else tensor


def token_rows(clean: Tensor, edited: Tensor, k: int, tokenizer: Any, names: Any = None) -> tuple[TokenRow, ...]:
    """The union of the `k` likeliest tokens of both runs, ordered by clean rank.

    Args:
        clean, edited: logits `[vocabulary]`.
        names: a mapping from id to name, for classes; tokens are named by the tokenizer.
    """
    clean, edited = clean.double().cpu(), edited.double().cpu()
    clean_ranks, edited_ranks = ranks(clean), ranks(edited)
    chosen = torch.nonzero((clean_ranks < k) | (edited_ranks < k)).flatten()
    ids = [int(i) for i in chosen[clean_ranks[chosen].argsort(stable=True)]]
    texts = token_texts(tokenizer, ids) if names is None else tuple(str(names.get(i, i)) for i in ids)
    probabilities = clean.softmax(-1), edited.softmax(-1)
    return tuple(
        TokenRow(
            token_id=i,
            token=text,
            clean_logit=float(clean[i]),
            edited_logit=float(edited[i]),
            clean_probability=float(probabilities[0][i]),
            edited_probability=float(probabilities[1][i]),
            clean_rank=int(clean_ranks[i]),
            edited_rank=int(edited_ranks[i]),
        )
        for i, text in zip(ids, texts, strict=True)
    )
