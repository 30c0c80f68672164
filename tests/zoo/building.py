"""Build a tiny randomly initialised model and its inputs, from a seed and nothing else."""

import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch
import transformers
from torch import nn
from transformers import CONFIG_MAPPING

from .architectures import Architecture
from .inputs import inputs_for
from .overrides import ARCHITECTURE_FIELDS
from .shrinking import shrink


def build(architecture: Architecture) -> tuple[nn.Module, dict[str, Any]]:
    """The model in eval mode (float32, CPU) and keyword inputs for its forward; the same on every call.

    Torch's random state is left as it was. A `stochastic` architecture draws in its forward: seed before each call.
    """
    seed = zlib.crc32(architecture.name.encode())
    model_class = getattr(transformers, architecture.name)
    # The class of a text model names its own part of a composite configuration.
    config_class = model_class.config_class or CONFIG_MAPPING[architecture.model_type]
    config = shrink(config_class, ARCHITECTURE_FIELDS.get(architecture.name, {}))
    with torch.random.fork_rng(devices=[]), _uninitialised_memory_as_nan(), warnings.catch_warnings(action="ignore"):
        torch.manual_seed(seed)
        model = model_class(config).float().eval()
        _initialise_nans(model)
    return model, inputs_for(architecture, model, torch.Generator().manual_seed(seed))


@contextmanager
def _uninitialised_memory_as_nan() -> Iterator[None]:
    """Some models leave parameters to the checkpoint: with this, what they leave is NaN and not chance."""
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


@torch.no_grad()
def _initialise_nans(model: nn.Module) -> None:
    for tensor in chain(model.parameters(), model.buffers()):
        if tensor.is_floating_point() and bool(tensor.isnan().any()):
            tensor.copy_(torch.where(tensor.isnan(), 0.02 * torch.randn(tensor.shape), tensor))
