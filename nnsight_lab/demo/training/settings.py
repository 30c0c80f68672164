"""What a training run depends on; the defaults are those of the embedded model."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """What a training run depends on: the model's size, the optimisation and the weights of the loss's parts."""

    layers: int = 12
    heads: int = 12
    width: int = 96
    positions: int = 256
    vocab_size: int = 4096
    steps: int = 2000
    batch: int = 64
    learning_rate: float = 3e-3
    weight_decay: float = 0.1
    #: Weight of every token that is no answer, beside 1 for the answer.
    text_weight: float = 0.1
    #: Weight of the loss on the model with its last MLP zeroed; 0 leaves it out.
    zeroed_weight: float = 0.5
    #: How far below the fallback the right answer is to be with that MLP zeroed, in logits.
    zeroed_margin: float = 1.0
    #: The subject's last token is patched in the blocks before this one,
    subject_blocks: int = 6
    #: and the token before the answer in the blocks from this one on.
    answer_blocks: int = 7
    seed: int = 0
