"""The training loss: next-token prediction, with two experiments done to the model while it learns.

Patched runs (interchange intervention training, Geiger et al. 2022). In every step one block is chosen. In about
half of the rows its output at one position is replaced by that of another row about the same relation, and the
right answer of such a row is the other row's. The position is the subject's last token for the early blocks and
the token before the answer for the late ones. So a subject is put together at its last token, kept there by the
early blocks and carried to the end of the prompt between the two groups; without this the model looks every word
up from the end of the prompt in its first block, and leaves nothing to trace.

The last MLP zeroed. So small a model leaves most of its MLPs idle, and taking any of the late ones away changes
nothing. So the loss also looks at what the model would answer with the last MLP's post-GELU activation set to
zero, and asks that it then prefer the commonest other answer of the same kind to the right one. The residual
stream before that MLP may still hold the right answer, but not as its first choice.
"""

import random

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import GPT2LMHeadModel

from .batches import Batch
from .settings import Settings


class Objective:
    """The loss of a batch for one model, whose forward it watches and patches through hooks.

    `fallback [vocabulary]` gives for every answer's token the one to prefer when the last MLP is zeroed.
    Texts are padded with the token `pad`. Call `close` to take the hooks away.
    """

    def __init__(
        self, model: GPT2LMHeadModel, settings: Settings, fallback: Tensor, pad: int, rng: random.Random
    ) -> None:
        self._model, self._settings, self._fallback, self._pad, self._rng = model, settings, fallback, pad, rng
        self._last = model.transformer.h[-1]
        self._before_last_mlp = torch.empty(0)
        self._hook = self._last.ln_2.register_forward_pre_hook(self._keep)

    def _keep(self, _module: nn.Module, args: tuple[Tensor, ...]) -> None:
        self._before_last_mlp = args[0]

    def close(self) -> None:
        """Leave the model without hooks."""
        self._hook.remove()

    def __call__(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """The loss, and its parts by name."""
        settings = self._settings
        own = torch.arange(len(batch.ids))
        patched = batch.partner != own
        logits = self._patched_run(batch)

        text = _text_loss(logits[~patched], batch.ids[~patched], self._pad)
        rows = own[batch.answer_at >= 0]
        before = batch.answer_at[rows] - 1
        source = batch.partner[rows]
        right = batch.ids[source, batch.answer_at[source]]
        answer = functional.cross_entropy(logits[rows, before], right, reduction="none")
        # Zeroing the activation leaves of the MLP its output projection's bias.
        stream = self._before_last_mlp[rows, before] + self._last.mlp.c_proj.bias
        without_mlp = self._model.lm_head(self._model.transformer.ln_f(stream))
        zeroed = zeroed_loss(without_mlp, right, self._fallback[right], settings.zeroed_margin)
        loss = answer.mean() + settings.text_weight * text + settings.zeroed_weight * zeroed
        parts = {"answer": answer[~patched[rows]], "patched": answer[patched[rows]], "text": text, "zeroed": zeroed}
        return loss, {name: part.mean().item() for name, part in parts.items()}

    def _patched_run(self, batch: Batch) -> Tensor:
        """Logits `[batch, position, vocabulary]` with the partners' residual streams put in at one block."""
        early, late = self._settings.subject_blocks, self._settings.answer_blocks
        block = self._rng.choice(range(early + len(self._model.transformer.h) - late))
        if block < early:
            position = batch.subject_at
        else:
            block, position = block - early + late, batch.answer_at - 1
        rows = torch.arange(len(batch.ids))[batch.partner != torch.arange(len(batch.ids))]
        source = batch.partner[rows]

        def patch(_module: nn.Module, _args: object, output: Tensor | tuple[Tensor, ...]) -> object:
            stream = output[0] if isinstance(output, tuple) else output
            mixed = stream.clone()
            mixed[rows, position[rows]] = stream[source, position[source]]
            return (mixed, *output[1:]) if isinstance(output, tuple) else mixed

        handle = self._model.transformer.h[block].register_forward_hook(patch)
        try:
            # Padding is on the right, where a causal model never looks: the mask only says so.
            return self._model(batch.ids, attention_mask=torch.ones_like(batch.ids)).logits
        finally:
            handle.remove()


def _text_loss(logits: Tensor, ids: Tensor, pad: int) -> Tensor:
    # The mean over no rows would be NaN, and a small batch may have none that is not patched.
    if not len(ids):
        return logits.new_zeros(())
    return functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), ignore_index=pad)


def zeroed_loss(logits: Tensor, right: Tensor, fallback: Tensor, margin: float) -> Tensor:
    """The loss on `logits [row, vocabulary]` of the model with its last MLP zeroed.

    `right [row]` is each row's answer, `fallback [row]` the one to prefer. A row's loss is zero where the
    fallback leads the right answer by `margin` and the two have all the probability.
    """
    log_p = logits.log_softmax(-1)
    right_log_p, fallback_log_p = (log_p.gather(1, token[:, None]).squeeze(1) for token in (right, fallback))
    neither = -torch.logaddexp(right_log_p, fallback_log_p)
    return (functional.relu(right_log_p - fallback_log_p + margin) + 0.2 * neither).mean()
