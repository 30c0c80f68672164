"""The embedded model as plain transformers objects: where its checkpoint lies, and how it is read.

The checkpoint is part of the package, so nothing is downloaded and no network is asked. It is stored in
float16 to keep the wheel small and read as float32, in which every number of its model card was measured.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from .training.facts import Fact, all_facts

ATLAS_PATH = Path(__file__).parent / "atlas-gpt2"


def load_plain() -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model in float32 on the CPU, in eval mode, and its tokenizer.

    Raises:
        FileNotFoundError: the package was installed without the checkpoint's files.
    """
    if not (ATLAS_PATH / "model.safetensors").is_file():
        raise FileNotFoundError(
            f"the embedded model's checkpoint is missing at {ATLAS_PATH}: install nnsight-lab again, "
            f"or train it with `python -m nnsight_lab.demo.training.train --out {ATLAS_PATH}`"
        )
    tokenizer = AutoTokenizer.from_pretrained(ATLAS_PATH, local_files_only=True)
    with _no_progress_bar():
        model = AutoModelForCausalLM.from_pretrained(ATLAS_PATH, dtype=torch.float32, local_files_only=True)
    return model.eval(), tokenizer


@contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Three megabytes are read in a moment; a bar would only be noise."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def facts() -> tuple[Fact, ...]:
    """Every fact the model was trained on; `fact.prompt(phrasing)` makes the sentence that asks for `fact.answer`."""
    return all_facts()
