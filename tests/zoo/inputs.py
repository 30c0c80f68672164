"""Valid inputs for a model: what its forward's signature asks for, in the sizes that its configuration names.

A parameter is given when it is the model's main input, when it has no default, or when the model needs it in fact
though it has one (the decoder's ids of an encoder-decoder). What this cannot know is in `INPUTS` of `input_data.py`.
The vision-language models of `IMAGE_TOKENS` get an image with their prompt; the others that permit it, text alone.
"""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

from .architectures import Architecture
from .input_data import IMAGE_TOKENS, INPUTS, MEL_FRAMES, ROWS, SAMPLES, TOKENS, Floats, Ids

_Provider = Callable[[PreTrainedConfig, torch.Generator], Any]


def inputs_for(architecture: Architecture, model: PreTrainedModel, generator: torch.Generator) -> dict[str, Any]:
    """Keyword inputs for `model.forward`."""
    parameters = inspect.signature(model.forward).parameters
    wanted = {name for name, p in parameters.items() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD}
    main = model.main_input_name
    if main in parameters:
        wanted.add(main)
    if "input_ids" in parameters:
        wanted.add("input_ids")
    if "input_ids" in parameters and "inputs_embeds" not in parameters:
        # Two encoders side by side, as in CLIP: both want their input.
        wanted |= {"pixel_values", "input_features"} & set(parameters)
    if architecture.kind == "vision" and "pixel_values" in parameters:
        wanted.add("pixel_values")
    if model.config.is_encoder_decoder and "decoder_input_ids" in parameters:
        wanted.add("decoder_input_ids")
    special = INPUTS.get(architecture.name, {})
    given: dict[str, Any] = {}
    if architecture.name in IMAGE_TOKENS:
        given = _prompt_with_image(model.config, set(parameters), IMAGE_TOKENS[architecture.name], generator)
        wanted -= set(given)
    for name in sorted(wanted | set(special)):
        if name in special:
            given[name] = _realise(special[name], generator)
        elif "grid_thw" in wanted and name in ("pixel_values", "hidden_states"):
            given[name] = flat_patches(model.config, generator)
        elif name in _PROVIDERS:
            given[name] = _PROVIDERS[name](model.config, generator)
    return {name: value for name, value in given.items() if value is not None}


def _prompt_with_image(
    config: PreTrainedConfig, parameters: set[str], image_tokens: int, generator: torch.Generator
) -> dict[str, Any]:
    """One row of text around the placeholders of one image, and that image in the form the model takes."""
    vision = getattr(config, "vision_config", config)
    placeholder = find(config, "image_token_id", "image_token_index", default=None)
    text = _realise(Ids((1, 5)), generator)
    ids = torch.cat([text[:, :2], torch.full((1, image_tokens), placeholder), text[:, 2:]], dim=1)
    given = {"input_ids": ids}
    if "image_grid_thw" in parameters:
        given |= {"image_grid_thw": _grid(vision, generator), "pixel_values": flat_patches(vision, generator)}
    else:
        given["pixel_values"] = pixels(vision, generator)[:1]
    if "image_sizes" in parameters:
        given["image_sizes"] = torch.tensor([given["pixel_values"].shape[-2:]])
    for name in ("mm_token_type_ids", "token_type_ids"):
        if name in parameters:
            given[name] = (ids == placeholder).long()
    return given


def _realise(value: Any, generator: torch.Generator) -> Any:
    if isinstance(value, Floats):
        return torch.randn(value.shape, generator=generator)
    if isinstance(value, Ids):
        return torch.randint(value.low, value.high, value.shape, generator=generator)
    if isinstance(value, (list, tuple)):
        return torch.tensor(value)
    return value


def token_ids(config: PreTrainedConfig, generator: torch.Generator) -> Tensor:
    """Ids that are special in no configuration of the zoo: int64 [ROWS, TOKENS]."""
    return _realise(Ids((ROWS, TOKENS)), generator)


def pixels(config: PreTrainedConfig, generator: torch.Generator) -> Tensor:
    """An image for each row: float32 [ROWS, channels, height, width]."""
    size = find(config, "image_size", "img_size", default=64)
    height, width = size if isinstance(size, (list, tuple)) else (size, size)
    return torch.randn(ROWS, find(config, "num_channels", "in_channels", default=3), height, width, generator=generator)


def flat_patches(config: PreTrainedConfig, generator: torch.Generator) -> Tensor:
    """The patches of one image as rows, for models that take a grid with them: float32 [GRID patches, patch values]."""
    patch = find(config, "patch_size", default=16)
    values = find(config, "num_channels", "in_channels", default=3) * patch * patch
    return torch.randn(16, values * find(config, "temporal_patch_size", default=1), generator=generator)


def find(config: PreTrainedConfig, *names: str, default: Any) -> Any:
    """The first of `names` in the configuration or, breadth first, in its sub-configurations."""
    level = [config]
    while level:
        for candidate in level:
            for name in names:
                if getattr(candidate, name, None) is not None:
                    return getattr(candidate, name)
        level = [v for c in level for v in vars(c).values() if isinstance(v, PreTrainedConfig)]
    return default


def _mel_frames(config: PreTrainedConfig, generator: torch.Generator) -> Tensor:
    bins = find(config, "num_mel_bins", "n_mels", "feature_size", default=80)
    if (positions := find(config, "max_source_positions", default=None)) is not None:
        return torch.randn(ROWS, bins, 2 * positions, generator=generator)
    return torch.randn(ROWS, MEL_FRAMES, bins, generator=generator)


def _mel_mask(config: PreTrainedConfig, generator: torch.Generator) -> Tensor:
    return torch.ones(ROWS, MEL_FRAMES, dtype=torch.int64)


def _video(config: PreTrainedConfig, generator: torch.Generator) -> Tensor:
    size = find(config, "image_size", "crop_size", default=64)
    frames = find(config, "num_frames", "frames_per_clip", default=2)
    return torch.randn(ROWS, frames, find(config, "num_channels", default=3), size, size, generator=generator)


def _grid(config: PreTrainedConfig, generator: torch.Generator) -> Tensor:
    return torch.tensor([[1, 4, 4]])


def _waveform(config: PreTrainedConfig, generator: torch.Generator) -> Tensor:
    if (channels := find(config, "audio_channels", default=None)) is not None:
        return torch.randn(ROWS, channels, SAMPLES, generator=generator)
    return torch.randn(ROWS, SAMPLES, generator=generator)


_PROVIDERS: dict[str, _Provider] = {
    "input_ids": token_ids,
    "decoder_input_ids": token_ids,
    "pixel_values": pixels,
    "grid_thw": _grid,
    "image_grid_thw": _grid,
    "pixel_values_videos": _video,
    "input_features_mask": _mel_mask,
    "input_features": _mel_frames,
    "input_values": _waveform,
}
