"""The embedded model's tokenizer: byte-level BPE in GPT-2's manner, learned from the training sentences.

A space belongs to the word after it, so ` Paris` is a token and differs from `Paris`. The words of the facts
occur in many sentences and become one token each; a word of one rare landmark stays in pieces, as in a real
vocabulary.
"""

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Tokenizer, PreTrainedTokenizerBase

END = "<|endoftext|>"
PAD = "<|pad|>"


def train_tokenizer(texts: Iterable[str], vocab_size: int, positions: int) -> PreTrainedTokenizerBase:
    """A tokenizer of at most `vocab_size` tokens whose prompts may be `positions` tokens long.

    It reads any text: bytes it never saw together stay single-byte tokens.
    """
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END, PAD],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    return GPT2Tokenizer(
        tokenizer_object=bpe,
        bos_token=END,
        eos_token=END,
        unk_token=END,
        pad_token=PAD,
        add_prefix_space=False,
        clean_up_tokenization_spaces=False,
        model_max_length=positions,
    )


def save_tokenizer(tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json`, which `AutoTokenizer.from_pretrained(folder)` reads."""
    tokenizer.save_pretrained(folder)
