"""The listing of GPT-2's attention in transformers 5.2.0, character for character.

That version is installed beside the environment's own, in the user's cache folder, and used in a process of its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nnsight_lab.demo.gguf_cache import cache_dir

LISTING = Path(__file__).parent / "data" / "gpt2_attention_listing.txt"

# What transformers 5.2.0 needs in versions other than a present-day environment has.
PINNED = ("transformers==5.2.0", "huggingface-hub==1.3.0", "tokenizers==0.22.2")

SCRIPT = """
import json, transformers
from transformers import GPT2Config, GPT2LMHeadModel
from nnsight_lab import NNsight
config = GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=11, n_positions=16)
source = NNsight(GPT2LMHeadModel(config)).transformer.h[0].attn.source
lines = [(operation.label, operation.line) for operation in source.listing.operations]
print(json.dumps({"version": transformers.__version__, "text": str(source), "lines": lines}))
"""


@pytest.fixture(scope="module")
def packages():
    """A folder with the pinned packages."""
    folder = cache_dir() / "packages" / "_".join(PINNED).replace("==", "-")
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", str(folder)]
        done = subprocess.run([*command, *PINNED], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"pip could not install {', '.join(PINNED)}: {done.stderr.strip().splitlines()[-1:]}")
        (folder / "complete").touch()
    return folder


@pytest.fixture(scope="module")
def attention(packages):
    """Version, listing as text, and operations of GPT-2's attention."""
    paths = [str(packages), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_listing_is_the_documented_one(attention):
    assert attention["version"] == "5.2.0"
    assert attention["text"] == LISTING.read_text(encoding="utf-8").removesuffix("\n")


def test_the_operations_are_the_documented_ones(attention):
    assert len(attention["lines"]) == 27
    lines = dict(attention["lines"])
    assert len(lines) == 27
    facts = {
        "isinstance_0": 12,
        "hasattr_0": 23,
        "ValueError_0": 24,
        "self_c_attn_0": 36,
        "split_0": 36,
        "transpose_3": 44,
        "attention_interface_0": 71,
        "attn_output_reshape_0": 81,
        "contiguous_0": 81,
        "self_resid_dropout_0": 83,
    }
    assert {label: lines[label] for label in facts} == facts
    order = [label for label, _ in attention["lines"]]
    assert order.index("attn_output_reshape_0") < order.index("contiguous_0")
