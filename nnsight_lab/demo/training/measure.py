"""What the trained model can do, measured with plain torch hooks: the numbers of its report and model card.

Three questions: how many facts it completes in each phrasing, how many of its answers change when one
layer's post-GELU activation is set to zero, and what it answers to one prompt when the residual stream of
another is patched in.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from .facts import HELD_OUT, TRAINED, Relation, all_facts


@dataclass(frozen=True)
class Accuracy:
    """The share `right` (0 to 1) of `count` facts completed in one phrasing."""

    relation: Relation
    phrasing: str
    trained: bool
    right: float
    count: int


@dataclass(frozen=True)
class Zeroing:
    """What setting layer `layer`'s post-GELU activation to zero does to the first choice, over all facts.

    `changed` is the share (0 to 1) of facts whose first choice is another one then, `plausible` the share of
    those whose new choice is an answer of some fact; `answer` is the new choice for the example prompt.
    """

    layer: int
    changed: float
    plausible: float
    answer: str


@dataclass(frozen=True)
class Measurements:
    """All of a report; `patching[position][layer]` is the answer with that cell of the residual stream patched in."""

    accuracies: tuple[Accuracy, ...]
    zeroing: tuple[Zeroing, ...]
    tokens: tuple[str, ...]
    patching: tuple[tuple[str, ...], ...]


@contextmanager
def hooked(module: nn.Module, replace: Callable[[Tensor], Tensor | None]) -> Iterator[None]:
    """While open, `replace` sees what `module` returns, and may return another tensor in its place."""

    def hook(_module: nn.Module, _args: object, output: Tensor | tuple[Tensor, ...]) -> object:
        # A block returns a tensor or, in older versions of transformers, a tuple that starts with it.
        if isinstance(output, tuple):
            replaced = replace(output[0])
            return None if replaced is None else (replaced, *output[1:])
        return replace(output)

    handle = module.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


@torch.no_grad()
def first_choices(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prompts: Sequence[str]) -> list[str]:
    """The most probable next token after each prompt, as text."""
    encoded = [tokenizer(prompt)["input_ids"] for prompt in prompts]
    choices = [""] * len(prompts)
    by_length = sorted(range(len(prompts)), key=lambda row: len(encoded[row]))
    for start in range(0, len(by_length), 128):
        rows = by_length[start : start + 128]
        longest = max(len(encoded[row]) for row in rows)
        # Padding is on the right, where a causal model never looks.
        ids = torch.tensor([encoded[row] + [0] * (longest - len(encoded[row])) for row in rows])
        logits = model(ids, attention_mask=torch.ones_like(ids)).logits
        for row, of_row in zip(rows, logits, strict=True):
            choices[row] = tokenizer.decode(of_row[len(encoded[row]) - 1].argmax())
    return choices


def accuracies(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> tuple[Accuracy, ...]:
    """Accuracy in every phrasing, the trained ones first."""
    found = []
    for trained, phrasings in ((True, TRAINED), (False, HELD_OUT)):
        for relation, texts in phrasings.items():
            about = [fact for fact in all_facts() if fact.relation == relation]
            for text in texts:
                choices = first_choices(model, tokenizer, [fact.prompt(text) for fact in about])
                right = sum(choice == f" {fact.answer}" for choice, fact in zip(choices, about, strict=True))
                found.append(Accuracy(relation, text, trained, right / len(about), len(about)))
    return tuple(found)


def zeroing(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, example: str) -> tuple[Zeroing, ...]:
    """For every layer, over all facts in their first phrasing; `example` is a prompt whose answer is kept."""
    prompts = [example, *(fact.prompt(TRAINED[fact.relation][0]) for fact in all_facts())]
    answers = {f" {fact.answer}" for fact in all_facts()}
    clean = first_choices(model, tokenizer, prompts)
    rows = []
    for layer, block in enumerate(model.transformer.h):
        with hooked(block.mlp.act, torch.zeros_like):
            zeroed = first_choices(model, tokenizer, prompts)
        changed = [after for before, after in zip(clean[1:], zeroed[1:], strict=True) if before != after]
        plausible = sum(choice in answers for choice in changed) / len(changed) if changed else 1.0
        rows.append(Zeroing(layer, len(changed) / len(clean[1:]), plausible, zeroed[0]))
    return tuple(rows)


@torch.no_grad()
def patching(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, base: str, source: str
) -> tuple[tuple[str, ...], ...]:
    """`[position][layer]`: the answer to `base` with one block's output at one position taken from `source`.

    Raises:
        ValueError: the prompts differ in their number of tokens.
    """
    base_ids, source_ids = (torch.tensor([tokenizer(prompt)["input_ids"]]) for prompt in (base, source))
    length = base_ids.shape[1]
    if source_ids.shape[1] != length:
        raise ValueError(
            f"patching needs prompts of one length, but {base!r} has {length} tokens "
            f"and {source!r} has {source_ids.shape[1]}"
        )
    residuals: list[Tensor] = []
    with ExitStack() as stack:
        for block in model.transformer.h:
            stack.enter_context(hooked(block, residuals.append))
        model(source_ids)

    def answer(layer: int, position: int) -> str:
        def patch(output: Tensor) -> Tensor:
            patched = output.clone()
            patched[:, position] = residuals[layer][:, position]
            return patched

        with hooked(model.transformer.h[layer], patch):
            return str(tokenizer.decode(model(base_ids).logits[0, -1].argmax()))

    return tuple(tuple(answer(layer, position) for layer in range(len(residuals))) for position in range(length))


def measure(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, base: str, source: str) -> Measurements:
    """Everything: accuracy, zeroing (with `base` as its example), and patching from `source` into `base`."""
    return Measurements(
        accuracies(model, tokenizer),
        zeroing(model, tokenizer, base),
        tuple(tokenizer.decode(token) for token in tokenizer(base)["input_ids"]),
        patching(model, tokenizer, base, source),
    )
