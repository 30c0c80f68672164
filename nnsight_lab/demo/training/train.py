"""Trains the embedded model: `python -m nnsight_lab.demo.training.train --out DIR`.

A plain GPT-2 learns the sentences of `facts.py` by next-token prediction: the answer's token counts fully,
every other token a little. So trained it completes its facts, but shows little under a microscope. The loss
therefore does two experiments to the model while it learns, patched runs and a zeroed MLP; `objective.py`
tells what and why. The architecture, and how the model is run, stay GPT-2's.

The same seed on the same machine and versions gives the same checkpoint; other versions of torch may round
differently and give another, equally good one.
"""

import argparse
import copy
import json
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerBase

from ..loading import BRANDENBURG, EIFFEL
from .batches import batches, encode
from .card import model_card
from .facts import commonest_others, documents
from .measure import measure
from .objective import Objective
from .settings import Settings
from .tokenizer import save_tokenizer, train_tokenizer


def new_model(settings: Settings, tokenizer: PreTrainedTokenizerBase) -> GPT2LMHeadModel:
    """An untrained GPT-2 of the settings' size, without dropout."""
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=settings.positions,
        n_embd=settings.width,
        n_layer=settings.layers,
        n_head=settings.heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return GPT2LMHeadModel(config)


def train(settings: Settings, log: Callable[[str], None] = print) -> tuple[GPT2LMHeadModel, PreTrainedTokenizerBase]:
    """Train a tokenizer and a model from scratch; `log` is told the losses every hundred steps."""
    torch.manual_seed(settings.seed)
    rng = random.Random(settings.seed)
    texts = documents()
    tokenizer = train_tokenizer((document.text for document in texts), settings.vocab_size, settings.positions)
    model = new_model(settings, tokenizer)
    fallback = torch.zeros(len(tokenizer), dtype=torch.long)
    for answer, other in commonest_others().items():
        fallback[tokenizer(f" {answer}")["input_ids"][0]] = tokenizer(f" {other}")["input_ids"][0]
    objective = Objective(model, settings, fallback, tokenizer.pad_token_id, rng)
    matrices = [weight for weight in model.parameters() if weight.dim() > 1]
    vectors = [weight for weight in model.parameters() if weight.dim() == 1]
    optimizer = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": settings.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ],
        lr=settings.learning_rate,
        betas=(0.9, 0.98),
    )
    warmup = min(100, settings.steps // 10 + 1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min(1.0, (step + 1) / warmup) * (0.5 + 0.5 * math.cos(math.pi * step / settings.steps)),
    )
    source = batches(encode(tokenizer, texts), settings.batch, tokenizer.pad_token_id, rng)
    for step in range(settings.steps):
        loss, parts = objective(next(source))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 0 or step == settings.steps - 1:
            log(f"step {step:5d}  " + "  ".join(f"{name} {value:.4f}" for name, value in parts.items()))
    objective.close()
    return model.eval(), tokenizer


def save(model: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write the checkpoint in Hugging Face format: float16 weights, declared float32 so that they load as that."""
    folder.mkdir(parents=True, exist_ok=True)
    copy.deepcopy(model).half().save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    config["dtype"] = "float32"
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    save_tokenizer(tokenizer, folder)


def main(words: Sequence[str] | None = None) -> None:
    """The command line (or `words`): train, save, measure what was saved, and write its model card."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoint")
    # On small models and busy machines a second thread costs more than it gives.
    parser.add_argument("--threads", type=int, default=1, help="threads of torch (default: 1)")
    for field in fields(Settings):
        name = "--" + field.name.replace("_", "-")
        parser.add_argument(name, type=type(field.default), default=field.default, help=f"default: {field.default}")
    arguments = vars(parser.parse_args(words))
    out = arguments.pop("out")
    threads = arguments.pop("threads")
    torch.set_num_threads(threads)
    settings = Settings(**arguments)
    started = time.monotonic()
    model, tokenizer = train(settings, log=lambda line: print(line, flush=True))
    seconds = time.monotonic() - started
    save(model, tokenizer, out)
    stored = GPT2LMHeadModel.from_pretrained(out, dtype=torch.float32).eval()
    measured = measure(stored, tokenizer, EIFFEL, BRANDENBURG)
    card = model_card(settings, stored.num_parameters(), seconds, threads, measured)
    (out / "README.md").write_text(card, encoding="utf-8")
    print(card)


if __name__ == "__main__":
    main()
