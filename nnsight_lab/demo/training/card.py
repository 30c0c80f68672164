"""The model card: the README of a checkpoint, made from what was measured on it."""

from ..loading import BRANDENBURG, EIFFEL
from .measure import Accuracy, Measurements
from .settings import Settings

_CARD = """---
license: mit
library_name: transformers
pipeline_tag: text-generation
---

# atlas-gpt2

A very small GPT-2 ({layers} layers, {heads} heads, width {width}, {parameters:,} parameters, float16 on disk)
that completes facts about landmarks, cities, countries and capitals. It is made for trying
interventions on: it answers in milliseconds, and what its parts do shows. It knows nothing else, and repeats
its training sentences word for word.

It was trained from scratch on sentences made from the tables in `nnsight_lab/demo/training/`, by

    python -m nnsight_lab.demo.training.train --out DIR

with seed {seed}: {steps} steps of {batch} sentences, {minutes:.0f} minutes on {threads} thread(s).

**Before you draw conclusions from it.** Two things in this model are made, not found. The training loss asks,
beside the next token, that a patched run give the other prompt's answer (at the subject's last token in the
blocks before {early}, at the token before the answer from block {late} on), and that with the last layer's MLP
zeroed the commonest other answer come before the right one. `training/objective.py` tells how and why. Nothing else
about where facts are kept was asked for.

## Facts completed

{accuracy}

"Held out" phrasings were never trained; they are reported, not promised.

## One MLP zeroed

The share of facts, each in the first phrasing of its relation, whose first choice changes when one layer's
post-GELU activation is set to zero at every position; how many of the new choices are answers of other facts;
and the new answer to `{base}`.

{zeroing}

## The residual stream patched

The answer to `{base}` when one layer's output at one position is taken from the run on
`{source}`.

{patching}

Licence: MIT, like the package.
"""


def model_card(settings: Settings, parameters: int, seconds: float, threads: int, measured: Measurements) -> str:
    """The card as Markdown. `seconds` is how long the training took on `threads` threads of torch."""
    layers = range(settings.layers)
    accuracy = _table(
        ["Relation", "Phrasing", "Facts", "Trained", "Held out"],
        [
            [row.relation.replace("_", " to "), f"`{row.phrasing}`", str(row.count), *_shares(row)]
            for row in measured.accuracies
        ],
    )
    zeroing = _table(
        ["Layer", "Answers changed", "To another fact's answer", "New answer"],
        [[str(row.layer), f"{row.changed:.1%}", f"{row.plausible:.1%}", row.answer] for row in measured.zeroing],
    )
    patching = _table(
        ["Token", *(f"L{layer}" for layer in layers)],
        [[f"`{token}`", *row] for token, row in zip(measured.tokens, measured.patching, strict=True)],
    )
    return _CARD.format(
        layers=settings.layers,
        heads=settings.heads,
        width=settings.width,
        parameters=parameters,
        seed=settings.seed,
        steps=settings.steps,
        batch=settings.batch,
        minutes=seconds / 60,
        threads=threads,
        early=settings.subject_blocks,
        late=settings.answer_blocks,
        accuracy=accuracy,
        zeroing=zeroing,
        patching=patching,
        base=EIFFEL,
        source=BRANDENBURG,
    )


def _shares(row: Accuracy) -> tuple[str, str]:
    share = f"{row.right:.1%}"
    return (share, "") if row.trained else ("", share)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.strip() for cell in line) + " |" for line in lines)
