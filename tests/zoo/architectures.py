"""Which model classes the zoo covers.

The list is read from transformers' auto mappings, so it follows the installed version. Each model type gives at most
one class per kind, from the first of that kind's mappings that knows it, and its base model when no mapping does.
Classes that cannot be built are taken out by name, with the reason, in `exclusions.py`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from transformers.models.auto import modeling_auto

from .exclusions import EXCLUDED, STOCHASTIC

Kind = Literal["causal", "text", "encoder-decoder", "vision", "audio", "multimodal", "other"]

# One class per (model type, kind): the first mapping in this order that names the model type wins.
_MAPPINGS_BY_KIND: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    ("causal", ("CAUSAL_LM",)),
    ("encoder-decoder", ("SEQ_TO_SEQ_CAUSAL_LM",)),
    ("text", ("MASKED_LM", "TEXT_ENCODING", "NEXT_SENTENCE_PREDICTION")),
    ("audio", (
        "SPEECH_SEQ_2_SEQ", "CTC", "RNNT", "TDT", "AUDIO_CLASSIFICATION", "AUDIO_FRAME_CLASSIFICATION",
        "TEXT_TO_SPECTROGRAM", "TEXT_TO_WAVEFORM",
    )),
    ("vision", (
        "IMAGE_CLASSIFICATION", "OBJECT_DETECTION", "UNIVERSAL_SEGMENTATION", "INSTANCE_SEGMENTATION",
        "SEMANTIC_SEGMENTATION", "DEPTH_ESTIMATION", "VIDEO_CLASSIFICATION", "IMAGE_MATTING", "IMAGE_TO_IMAGE",
        "KEYPOINT_DETECTION", "KEYPOINT_MATCHING", "POSE_ESTIMATION", "NORMAL_ESTIMATION", "POINTMAP_ESTIMATION",
        "MASK_GENERATION", "TEXT_RECOGNITION", "TABLE_RECOGNITION", "CAUSAL_IMAGE_MODELING", "MASKED_IMAGE_MODELING",
    )),
    ("multimodal", (
        "IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "VISUAL_QUESTION_ANSWERING", "DOCUMENT_QUESTION_ANSWERING",
        "ZERO_SHOT_IMAGE_CLASSIFICATION", "ZERO_SHOT_OBJECT_DETECTION", "RETRIEVAL",
    )),
    ("other", ("TIME_SERIES_PREDICTION", "TIME_SERIES_CLASSIFICATION", "TABLE_QUESTION_ANSWERING", "PRETRAINING")),
)  # fmt: skip


# Kinds of the classes that only the last mappings know, by the first pattern found in the name.
_KIND_PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("text", re.compile(r"TextModel|^(Albert|Bert|BigBird|Electra|Ernie|FNet|Funnel|MegatronBert|MobileBert|RoCBert|Splinter)")),
    ("text", re.compile(r"^(Bros|Canine|DPR|Lilt|MarkupLM|OpenAIPrivacy|Tapas|Blip2QFormer)")),
    ("multimodal", re.compile(r"^(Aimv2Model|BridgeTower|Clap|Clvp|ColQwen2|EmbeddingGemma2Model|Flava|GroupViT|Lxmert)")),
    ("multimodal", re.compile(r"^(GlmImageModel|PeAudioVideo|Sam3Model|Sam3LiteTextModel|Tvp|VisionText|VisualBert|XCLIP)")),
    ("audio", re.compile(r"Audio|Speech|ASR|Asr|Codec|codec|Tokenizer|Wav|Encodec|^(Mimi|Dac|Univ|Parakeet|Lasr|Voxtral)")),
    ("audio", re.compile(r"^(Nemotron|NeuCodec)")),
    ("vision", re.compile(r"Vision|ViT|ViTMAE|DINO|Video|Hiera|Swin|Sam|^(Mgpstr|Pixio|Radio|SegGpt|Timm|UVDoc|VitDet|Edge)")),
)  # fmt: skip


@dataclass(frozen=True)
class Architecture:
    """A model class of transformers and the model type whose configuration builds it.

    `name` is the class name and unique in the zoo; `kind` says what its forward takes; the forward of a `stochastic`
    one draws random numbers in eval mode too.
    """

    name: str
    kind: Kind
    model_type: str
    stochastic: bool = False


def _class_names(mapping: str) -> Iterator[tuple[str, str]]:
    for model_type, names in getattr(modeling_auto, mapping).items():
        yield model_type, names if isinstance(names, str) else names[0]


def candidates() -> list[Architecture]:
    """Every class that the mappings offer, one per model type and kind, whether or not the zoo can build it."""
    found: dict[str, Architecture] = {}
    covered: set[str] = set()
    for kind, mappings in _MAPPINGS_BY_KIND:
        of_this_kind: set[str] = set()
        for mapping in mappings:
            for model_type, name in _class_names(f"MODEL_FOR_{mapping}_MAPPING_NAMES"):
                if model_type not in of_this_kind:
                    of_this_kind.add(model_type)
                    found.setdefault(name, _architecture(name, kind, model_type))
        covered |= of_this_kind
    for model_type, name in _class_names("MODEL_MAPPING_NAMES"):
        if model_type not in covered:
            found.setdefault(name, _architecture(name, "other", model_type))
    return list(found.values())


def _architecture(name: str, kind: Kind, model_type: str) -> Architecture:
    if kind == "other":
        kind = next((kind for kind, pattern in _KIND_PATTERNS if pattern.search(name)), kind)
    return Architecture(name, kind, model_type, stochastic=name in STOCHASTIC)


ARCHITECTURES: list[Architecture] = [a for a in candidates() if a.name not in EXCLUDED]
