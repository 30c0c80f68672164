"""A prompt made ready to run: what `model.trace` takes, and its tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..engine import NNsight
from .errors import ExperimentError
from .tokens import token_texts


@dataclass(frozen=True, eq=False)
class Inputs:
    """One prompt.

    Attributes:
        args, kwargs: of `model.trace`.
        ids: `[batch, position]` token ids; None for inputs that are not tokens.
        tokens: texts of the first row's tokens.
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    ids: Tensor | None = None
    tokens: tuple[str, ...] = ()

    @property
    def length(self) -> int | None:
        """Number of positions, or None for inputs that are not tokens."""
        return None if self.ids is None else int(self.ids.shape[-1])

    def longer(self) -> Inputs | None:
        """The same prompt with its last token twice; None for inputs that are not tokens alone."""
        if self.ids is None:
            return None
        ids = torch.cat([self.ids, self.ids[:, -1:]], dim=-1)
        if self.args:
            return Inputs((ids,), ids=ids) if not self.kwargs else None
        known = {"input_ids": ids}
        if "attention_mask" in self.kwargs:
            mask = self.kwargs["attention_mask"]
            known["attention_mask"] = torch.cat([mask, mask[:, -1:]], dim=-1)
        return Inputs((), known, ids) if set(known) == set(self.kwargs) else None


def ready(model: NNsight, prompt: Any, field_name: str) -> Inputs:
    """What `prompt` is for `model`.

    Args:
        prompt: text, token ids, or anything else that `model.trace` takes as its first argument.
        field_name: "base" or "source", for messages.

    Raises:
        ExperimentError: there is no prompt.
        PromptError: it cannot be tokenized.
    """
    if prompt is None:
        raise ExperimentError(f"{field_name}: there is nothing to run: give the recipe a {field_name} prompt.")
    if isinstance(prompt, tuple) and all(isinstance(number, int) for number in prompt):
        prompt = list(prompt)
    tokenizer = getattr(model, "tokenizer", None)
    if hasattr(model, "dispatch"):
        from ..models.prompts import prepare

        model.dispatch()
        kwargs = prepare(model._model, tokenizer, prompt, {})
        ids = kwargs.get("input_ids")
        texts = () if ids is None else token_texts(tokenizer, ids[0].tolist())
        return Inputs((), kwargs, ids, texts)
    if isinstance(prompt, str):
        raise ExperimentError(f"{field_name}: text needs a LanguageModel with a tokenizer, not {type(model).__name__}.")
    if isinstance(prompt, list):
        prompt = torch.tensor(prompt)
        prompt = prompt[None] if prompt.dim() == 1 else prompt
    if isinstance(prompt, Tensor) and not prompt.is_floating_point() and prompt.dim() == 2:
        return Inputs((prompt,), {}, prompt, token_texts(None, prompt[0].tolist()))
    return Inputs((), dict(prompt)) if isinstance(prompt, Mapping) else Inputs((prompt,))
