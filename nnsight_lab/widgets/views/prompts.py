"""Prompts as token strips, and which positions of two prompts correspond."""

from __future__ import annotations

from typing import Any

from ...engine import NNsight
from ...experiments.inputs import ready
from ...experiments.tokens import token_texts
from ...models.prompts import PromptError
from .. import wire
from ..state import AnyPrompt, Given


def prompt_view(model: NNsight, prompt: AnyPrompt | None) -> wire.PromptView:
    """A prompt as it is shown. No weights are loaded for it; what cannot be run says why."""
    if prompt is None:
        return wire.PromptView()
    if isinstance(prompt, Given):
        return _given(model, prompt.value)
    tokenizer: Any = getattr(model, "tokenizer", None)
    text = None
    if isinstance(prompt, str):
        text = prompt
        if tokenizer is None:
            return wire.PromptView(text, error="This model has no tokenizer, so it takes no text.")
        ids = list(tokenizer(text)["input_ids"])
    else:
        ids = list(prompt)
    tokens = tuple(
        wire.TokenText(number, piece) for number, piece in zip(ids, token_texts(tokenizer, ids), strict=True)
    )
    if text is None and tokenizer is not None:
        text = tokenizer.decode(ids)
    return wire.PromptView(text, tokens, len(ids), _why_not(model, ids))


def _why_not(model: NNsight, ids: list[int]) -> str:
    """Why the model cannot run these tokens, or an empty string."""
    if not ids:
        return "The prompt is empty: it has no tokens."
    config = getattr(model._model, "config", None)
    most = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if isinstance(most, int) and len(ids) > most:
        return f"The prompt is too long: {len(ids)} tokens, and the model has positions for {most}."
    return ""


def _given(model: NNsight, value: Any) -> wire.PromptView:
    """Inputs that are no text: shown by their length alone, where they are tokens at all."""
    if not getattr(model, "dispatched", True):
        return wire.PromptView()
    try:
        inputs = ready(model, value, "base")
    except (PromptError, TypeError, ValueError) as error:
        return wire.PromptView(error=str(error))
    if inputs.ids is None:
        return wire.PromptView()
    ids = inputs.ids[0].tolist()
    return wire.PromptView(
        None, tuple(wire.TokenText(number, piece) for number, piece in zip(ids, inputs.tokens, strict=True)), len(ids)
    )


def alignment(base: wire.PromptView, source: wire.PromptView) -> wire.Alignment:
    """Which base positions correspond to which source positions.

    Prompts of one length correspond position by position, as a patch takes them. Of others only the tokens that both
    begin and both end with do; what stands between has no counterpart, and a patch there needs to be told.
    """
    if not base.tokens or not source.tokens:
        return wire.Alignment()
    mine = [token.id for token in base.tokens]
    theirs = [token.id for token in source.tokens]
    if len(mine) == len(theirs):
        return wire.Alignment(tuple(range(len(mine))))
    shorter = min(len(mine), len(theirs))
    front = next((i for i in range(shorter) if mine[i] != theirs[i]), shorter)
    back = next((i for i in range(shorter - front) if mine[-1 - i] != theirs[-1 - i]), shorter - front)
    shift = len(theirs) - len(mine)
    found = tuple(
        position if position < front else position + shift if position >= len(mine) - back else None
        for position in range(len(mine))
    )
    return wire.Alignment(
        found,
        f"The prompts have {len(mine)} and {len(theirs)} tokens, so positions between their common beginning and end "
        "have no counterpart: choose where a patch there takes its values from.",
    )
