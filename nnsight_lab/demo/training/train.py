"""Trains the embedded model: `python -m nnsight_lab.demo.training.train --out DIR`.

A plain GPT-2 learns the sentences of `facts.py` by next-token prediction: the answer's token counts fully,
every other token a little. One thing is added, and only to the loss. A small model trained on so few
sentences spreads an answer over all its layers, so that taking away any one MLP changes nothing, and a
newcomer's first experiment would show nothing. So the training also looks at what the model would answer
with the last MLP's post-GELU activation set to zero, and asks two things of that answer: that it be some
answer of the facts, and that the right one not be its first choice. The right answer is then completed by
that MLP, from a residual stream that has narrowed it down. The architecture, and how the model is run, stay
GPT-2's.

The same seed on the same machine and versions gives the same checkpoint; other versions of torch may round
differently and give another, equally good one.
"""

import argparse
import copy
import json
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerBase

from ..loading import BRANDENBURG, EIFFEL
from .card import model_card
from .facts import documents
from .measure import measure
from .settings import Settings
from .tokenizer import save_tokenizer, train_tokenizer


@dataclass(frozen=True)
class Example:
    """A training text: its token ids, and the index of its answer among them (-1 if it has none)."""

    ids: list[int]
    answer_at: int


def encode(tokenizer: PreTrainedTokenizerBase, texts: list[tuple[str, str, str]]) -> list[Example]:
    """The texts of `documents()` as token ids, each closed by the end-of-text token."""
    examples = []
    for prompt, answer, rest in texts:
        ids = tokenizer(prompt + answer + rest)["input_ids"] + [tokenizer.eos_token_id]
        examples.append(Example(ids, len(tokenizer(prompt)["input_ids"]) if answer else -1))
    return examples


def batches(examples: list[Example], size: int, rng: random.Random) -> Iterator[list[Example]]:
    """Batches without end, newly ordered each epoch; texts of like length go together to save padding."""
    while True:
        order = rng.sample(examples, len(examples))
        for start in range(0, len(order), 8 * size):
            pool = sorted(order[start : start + 8 * size], key=lambda example: len(example.ids))
            cut = [pool[i : i + size] for i in range(0, len(pool), size)]
            rng.shuffle(cut)
            yield from cut


def collate(batch: list[Example], pad: int) -> tuple[Tensor, Tensor]:
    """`ids [batch, position]`, padded on the right, and `answer_at [batch]`."""
    longest = max(len(example.ids) for example in batch)
    ids = torch.tensor([example.ids + [pad] * (longest - len(example.ids)) for example in batch])
    return ids, torch.tensor([example.answer_at for example in batch])


def zeroed_loss(logits: Tensor, right: Tensor, answers: Tensor, margin: float) -> Tensor:
    """The loss on `logits [row, vocabulary]` of the model with its last MLP zeroed.

    `right [row]` is each row's answer, `answers [n]` every answer of the facts. It is zero where another
    answer leads the right one by `margin` and nothing but answers has probability.
    """
    log_p = logits.log_softmax(-1)
    among_answers = log_p[:, answers]
    right_log_p = log_p.gather(1, right[:, None]).squeeze(1)
    best_other = among_answers.masked_fill(answers == right[:, None], -math.inf).amax(-1)
    no_answer = -among_answers.logsumexp(-1)
    return (functional.relu(right_log_p - best_other + margin) + 0.2 * no_answer).mean()


class Objective:
    """The loss of a batch. A hook keeps the residual stream that the last MLP adds to, from which follows
    what the model would answer without that MLP.
    """

    def __init__(self, model: GPT2LMHeadModel, settings: Settings, answers: Tensor, pad: int) -> None:
        self._model, self._settings, self._answers, self._pad = model, settings, answers, pad
        self._last = model.transformer.h[-1]
        self._before_mlp = torch.empty(0)
        self.hook = self._last.ln_2.register_forward_pre_hook(self._keep)

    def _keep(self, _module: nn.Module, args: tuple[Tensor, ...]) -> None:
        self._before_mlp = args[0]

    def __call__(self, ids: Tensor, answer_at: Tensor) -> tuple[Tensor, dict[str, float]]:
        """The loss of `ids [batch, position]`, and its parts by name."""
        settings = self._settings
        # Padding is on the right, where a causal model never looks: the mask says so to quiet a warning.
        logits = self._model(ids, attention_mask=torch.ones_like(ids)).logits
        text = functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), ignore_index=self._pad
        )
        rows = (answer_at >= 0).nonzero().squeeze(1)
        before = answer_at[rows] - 1
        right = ids[rows, answer_at[rows]]
        answer = functional.cross_entropy(logits[rows, before], right)
        # Zeroing the activation leaves of the MLP its output projection's bias.
        stream = self._before_mlp[rows, before] + self._last.mlp.c_proj.bias
        without_mlp = self._model.lm_head(self._model.transformer.ln_f(stream))
        zeroed = zeroed_loss(without_mlp, right, self._answers, settings.zeroed_margin)
        loss = answer + settings.text_weight * text + settings.zeroed_weight * zeroed
        return loss, {"answer": answer.item(), "text": text.item(), "zeroed": zeroed.item()}


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


def train(
    settings: Settings, log: Callable[[str], None] = print
) -> tuple[GPT2LMHeadModel, PreTrainedTokenizerBase]:
    """Train a tokenizer and a model from scratch; `log` is told the losses every hundred steps."""
    torch.manual_seed(settings.seed)
    texts = documents()
    tokenizer = train_tokenizer(("".join(text) for text in texts), settings.vocab_size, settings.positions)
    model = new_model(settings, tokenizer)
    answers = torch.tensor(sorted({tokenizer(answer)["input_ids"][0] for _, answer, _ in texts if answer}))
    objective = Objective(model, settings, answers, tokenizer.pad_token_id)
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
    source = batches(encode(tokenizer, texts), settings.batch, random.Random(settings.seed))
    for step in range(settings.steps):
        loss, parts = objective(*collate(next(source), tokenizer.pad_token_id))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 0 or step == settings.steps - 1:
            log(f"step {step:5d}  " + "  ".join(f"{name} {value:.4f}" for name, value in parts.items()))
    objective.hook.remove()
    return model.eval(), tokenizer


def save(model: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write the checkpoint in Hugging Face format: float16 weights, declared float32 so that they load as
    that.
    """
    folder.mkdir(parents=True, exist_ok=True)
    copy.deepcopy(model).half().save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    config["dtype"] = "float32"
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    save_tokenizer(tokenizer, folder)


def main(words: Sequence[str] | None = None) -> None:
    """The command line (or `words`): train, save, measure what was saved, and write its model card."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoint")
    # On small models and busy machines a second thread costs more than it gives.
    parser.add_argument("--threads", type=int, default=1, help="threads of torch (default: 1)")
    for field in fields(Settings):
        name = "--" + field.name.replace("_", "-")
        parser.add_argument(
            name, type=type(field.default), default=field.default, help=f"default: {field.default}"
        )
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
