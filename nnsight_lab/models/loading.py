"""Getting a model and its tokenizer by name or path: first the architecture alone, later the weights.

Everything is transformers' own loading; this module adds the two-step order (meta weights to browse, real ones at the
first trace) and says plainly why something could not be had.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn


class ModelUnavailableError(OSError):
    """A model is neither on this machine nor could it be fetched."""


@contextmanager
def _explained(name: str, what: str) -> Iterator[None]:
    """Turn a failed look-up on the hub into one sentence on what is missing and what to do."""
    try:
        yield
    except ModelUnavailableError:
        raise
    except OSError as error:
        reason = _unreachable(error)
        if reason is None:
            raise
        raise ModelUnavailableError(
            f"The {what} of {name!r} is not on this machine and the Hugging Face hub cannot be reached ({reason}). "
            "Connect once so that it is downloaded and cached, give the path of a local folder, or try "
            "nnsight_lab.demo.load(), which needs no network."
        ) from error


def _unreachable(error: BaseException | None) -> str | None:
    """Why the hub could not be asked, or None when the error is of another kind."""
    from huggingface_hub import constants
    from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled

    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        kind = type(error).__name__
        if isinstance(error, OfflineModeIsEnabled) or constants.HF_HUB_OFFLINE:
            return "offline mode is on: HF_HUB_OFFLINE is set"
        if isinstance(error, LocalEntryNotFoundError) or kind in (
            "ConnectError",
            "ConnectionError",
            "ConnectTimeout",
        ):
            return "no connection"
        error = error.__cause__ or error.__context__
    return None


def load_config(name: str, **options: Any) -> Any:
    """The model's configuration. Raises ModelUnavailableError when offline and not cached, or when it is unreadable."""
    import transformers

    if name.startswith((".", "/", "~")) and not os.path.isdir(os.path.expanduser(name)):
        raise ModelUnavailableError(f"There is no folder {name!r} to load a model from.")
    from transformers import AutoConfig

    with _explained(name, "configuration"):
        try:
            return AutoConfig.from_pretrained(name, **options)
        except ValueError as error:
            raise ModelUnavailableError(
                f"{name!r} holds no configuration that transformers {transformers.__version__} can read: "
                f"{str(error).splitlines()[0]}"
            ) from error


def load_tokenizer(name: str, **options: Any) -> Any:
    """The model's tokenizer. Raises ModelUnavailableError when offline and not cached, or when there is none."""
    from transformers import AutoTokenizer

    with _explained(name, "tokenizer"):
        try:
            tokenizer = AutoTokenizer.from_pretrained(name, **options)
        except ValueError as error:
            raise _no_tokenizer(name, str(error).splitlines()[0]) from error
    if len(tokenizer) <= len(tokenizer.all_special_tokens):  # transformers makes an empty one where it finds no file
        raise _no_tokenizer(name, "it has no tokens")
    return tokenizer


def _no_tokenizer(name: str, reason: str) -> ModelUnavailableError:
    return ModelUnavailableError(
        f"The tokenizer of {name!r} could not be had: {reason}. If the model comes without one, give it: "
        "LanguageModel(..., tokenizer=<a tokenizer, or the name or path of one>)."
    )


def default_automodel(config: Any) -> Any:
    """The class of transformers that makes a language model of this configuration."""
    import transformers

    return transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModelForCausalLM


def build_empty(automodel: Any, config: Any, **options: Any) -> nn.Module:
    """The architecture with weights on the meta device: its tree and sources, no memory."""
    with torch.device("meta"):
        return automodel.from_config(config, **options).eval()


def load_weights(automodel: Any, name: str, **options: Any) -> nn.Module:
    """The model with its weights; transformers shows the progress. Raises ModelUnavailableError."""
    with _explained(os.fspath(name), "weights"):
        return automodel.from_pretrained(name, **options).eval()
