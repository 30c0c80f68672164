"""From what a user passes as a prompt to the keyword tensors of a forward.

Several prompts are padded on the left, with an attention mask and position ids that start at each row's first real
token, so that a row computes what it would compute alone.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from .decoders import decoder_start


class PromptError(ValueError):
    """A prompt of a kind or content that cannot be run."""


def prepare(
    module: nn.Module, tokenizer: Any, inputs: Any, keywords: dict[str, Any], *, decoder: bool = True
) -> dict[str, Any]:
    """The forward's keyword arguments for `inputs`.

    Args:
        module: the model; its forward's signature says what it accepts, its device where tensors go.
        tokenizer: a transformers tokenizer, needed for text only.
        inputs: str, list of str, token ids as int, list, nested list or tensor (0-d, `[position]` or
            `[batch, position]`), or a mapping of forward keywords.
        keywords: further forward keywords; they win over what is made here.
        decoder: whether the decoder of an encoder-decoder model gets its start token where it is given nothing.

    Raises:
        PromptError: empty prompt, no tokenizer for text, ragged ids without a pad token, an unknown type.
    """
    if inputs is None:
        made: dict[str, Any] = {}
    elif isinstance(inputs, Mapping):
        made = {name: _as_tensor(name, value) for name, value in inputs.items()}
    elif isinstance(inputs, str) or (_is_list(inputs) and len(inputs) and all(isinstance(i, str) for i in inputs)):
        made = _encode_text(tokenizer, [inputs] if isinstance(inputs, str) else list(inputs))
    elif isinstance(inputs, (torch.Tensor, int)) or _is_list(inputs) or hasattr(inputs, "__array__"):
        made = _encode_ids(tokenizer, inputs)
    else:
        raise PromptError(
            f"A prompt is text, a list of texts, token ids or a mapping of tensors, not {type(inputs).__name__}."
        )
    if not isinstance(inputs, Mapping) and "input_ids" in made:
        _check_vocabulary(module, made["input_ids"])
    parameters = accepted(module)
    ids = made.get("input_ids")
    if isinstance(ids, torch.Tensor) and not isinstance(inputs, Mapping):
        if not accepts(parameters, "attention_mask"):
            made.pop("attention_mask", None)
        elif "attention_mask" not in made and "attention_mask" not in keywords:
            made["attention_mask"] = torch.ones_like(ids)
    made.update(keywords)
    mask = made.get("attention_mask")
    # A mask or mapping of the user's own comes with positions of the user's own, or with none.
    ours = not isinstance(inputs, Mapping) and "attention_mask" not in keywords and "position_ids" not in keywords
    if ours and isinstance(mask, torch.Tensor) and not bool(mask.all()) and parameters and "position_ids" in parameters:
        made["position_ids"] = (mask.long().cumsum(-1) - 1).clamp(min=0)
    if decoder:
        made.update(decoder_start(module, made))
    device = _device_of(module)
    return {key: value.to(device) if isinstance(value, torch.Tensor) else value for key, value in made.items()}


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _encode_text(tokenizer: Any, texts: list[str]) -> dict[str, Any]:
    if tokenizer is None:
        raise PromptError(
            "This model was wrapped without a tokenizer: pass token ids, or LanguageModel(..., tokenizer=...)."
        )
    encoded = dict(tokenizer(texts, return_tensors="pt", padding=len(texts) > 1))
    encoded.pop("token_type_ids", None)
    lengths = (
        encoded["attention_mask"].sum(-1)
        if "attention_mask" in encoded
        else [encoded["input_ids"].shape[-1]] * len(texts)
    )
    for text, length in zip(texts, lengths, strict=True):
        if int(length) == 0:
            raise PromptError(f"The prompt {text!r} has no tokens; a forward needs at least one.")
    return {key: value.long() for key, value in encoded.items()}


def _encode_ids(tokenizer: Any, given: Any) -> dict[str, Any]:
    ids = _plain(given)
    if not isinstance(ids, torch.Tensor):
        if _is_list(ids) and (not len(ids) or any(_is_list(row) and not len(row) for row in ids)):
            raise PromptError("The prompt has no tokens; a forward needs at least one.")
        ragged = _is_list(ids) and all(_is_list(row) for row in ids) and len({len(row) for row in ids}) > 1
        if ragged:
            if tokenizer is None:
                raise PromptError("Rows of token ids of different lengths need a tokenizer with a pad token.")
            return dict(tokenizer.pad({"input_ids": ids}, return_tensors="pt"))
        try:
            ids = torch.tensor(ids)
        except (TypeError, ValueError, RuntimeError) as error:
            raise PromptError(f"Token ids must be integers in equal rows: {error}") from error
    if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        raise PromptError(
            f"Token ids must be integers, not {ids.dtype}; other inputs go in by keyword (inputs_embeds=...)."
        )
    if ids.numel() == 0:
        raise PromptError("The prompt has no tokens; a forward needs at least one.")
    if ids.dim() > 2:
        raise PromptError(f"Token ids are [position] or [batch, position], not of shape {list(ids.shape)}.")
    return {"input_ids": ids.reshape(1, -1) if ids.dim() < 2 else ids}


def _plain(ids: Any) -> Any:
    """Arrays as tensors, and lists that hold arrays or tensors as lists of numbers."""
    if isinstance(ids, torch.Tensor):
        return ids
    if _is_list(ids):
        return [part.tolist() if hasattr(part, "tolist") else _plain(part) for part in ids]
    return torch.as_tensor(ids) if hasattr(ids, "__array__") else ids


def _as_tensor(name: str, value: Any) -> Any:
    """A mapping's value as the forward takes it: a tokenizer without `return_tensors` gives lists of rows."""
    if not _is_list(value) or not all(_is_list(row) and all(isinstance(i, int) for i in row) for row in value):
        return value
    if len({len(row) for row in value}) > 1:
        raise PromptError(
            f"The rows of {name!r} have different lengths: encode the texts with padding=True, or pass the texts."
        )
    return torch.tensor(value)


def _check_vocabulary(module: nn.Module, ids: torch.Tensor) -> None:
    """Refuse ids that the embedding has no row for, before a kernel does so in fewer words."""
    try:
        embedding = module.get_input_embeddings()  # type: ignore[operator]
    except (AttributeError, NotImplementedError):
        return
    size = getattr(embedding, "num_embeddings", None)
    if size is None or ids.device.type != "cpu":
        return
    for worst in (int(ids.min()), int(ids.max())):
        if not 0 <= worst < size:
            raise PromptError(
                f"Token id {worst} is not in the model's vocabulary: its embedding has ids 0 to {size - 1}."
            )


_accepted: WeakKeyDictionary[Any, Mapping[str, inspect.Parameter] | None] = WeakKeyDictionary()


def accepted(module: nn.Module) -> Mapping[str, inspect.Parameter] | None:
    """The parameters of the module's forward, without `self`; None where they are not known."""
    forward = module.forward
    function = getattr(forward, "__func__", forward)
    if function not in _accepted:
        try:
            _accepted[function] = inspect.signature(forward).parameters
        except (TypeError, ValueError):
            _accepted[function] = None
    return _accepted[function]


def accepts(parameters: Mapping[str, inspect.Parameter] | None, name: str) -> bool:
    if parameters is None:
        return True
    return name in parameters or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())


def _device_of(module: nn.Module) -> torch.device:
    for tensor in itertools.chain(module.parameters(), module.buffers()):
        if tensor.device.type != "meta":
            return tensor.device
    return torch.device("cpu")
