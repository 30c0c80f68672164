"""The conversion itself, on a one-layer Llama whose 4-bit blocks are written by hand."""

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from nnsight_lab.demo.gguf_cache import convert_gguf

WIDTH, HIDDEN, LAYERS = 32, 64, 1
TOKENS = ["<end>", "a", "b", "c", "ab"]


def q4_1_matrix(rows, columns, rng):
    """Random Q4_1 blocks of 32 values (scale, minimum, 16 bytes of two 4-bit numbers) and the values they stand for."""
    blocks = rows * columns // 32
    scale = rng.uniform(0.01, 0.1, blocks).astype(np.float16)
    minimum = rng.uniform(-0.5, 0.5, blocks).astype(np.float16)
    low, high = rng.integers(0, 16, (2, blocks, 16), dtype=np.uint8)
    packed = np.concatenate([scale[:, None].view(np.uint8), minimum[:, None].view(np.uint8), low | (high << 4)], axis=1)
    numbers = np.concatenate([low, high], axis=1).astype(np.float32)
    values = scale[:, None].astype(np.float32) * numbers + minimum[:, None].astype(np.float32)
    return packed.reshape(rows, -1), values.reshape(rows, columns)


@pytest.fixture
def written(tmp_path):
    """The folder of a tiny GGUF model, and the values of its quantized down-projection."""
    rng = np.random.default_rng(0)
    path = tmp_path / "tiny.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(16)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // 2)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3, 1, 1, 1, 1])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)

    def add(name, *shape):
        writer.add_tensor(name, rng.standard_normal(shape, dtype=np.float32))

    add("token_embd.weight", len(TOKENS), WIDTH)
    add("output_norm.weight", WIDTH)
    for norm in ("attn_norm", "ffn_norm"):
        add(f"blk.0.{norm}.weight", WIDTH)
    for projection in ("attn_q", "attn_k", "attn_v", "attn_output"):
        add(f"blk.0.{projection}.weight", WIDTH, WIDTH)
    for projection in ("ffn_gate", "ffn_up"):
        add(f"blk.0.{projection}.weight", HIDDEN, WIDTH)
    packed, values = q4_1_matrix(WIDTH, HIDDEN, rng)
    writer.add_tensor("blk.0.ffn_down.weight", packed, raw_dtype=gguf.GGMLQuantizationType.Q4_1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path, values


def test_every_quantized_value_is_kept_in_float32(written, tmp_path):
    path, values = written
    convert_gguf(path, tmp_path / "converted")
    weights = load_file(tmp_path / "converted" / "model.safetensors")
    assert {weight.dtype for weight in weights.values()} == {torch.float32}
    down = weights["model.layers.0.mlp.down_proj.weight"]
    assert torch.equal(down, torch.from_numpy(values))
    assert not torch.equal(down.half().float(), down), "float16 would have kept these: the test proves nothing"


def test_what_is_saved_loads_without_gguf_and_computes_the_same(written, tmp_path):
    path, _ = written
    direct = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name)
    convert_gguf(path, tmp_path / "converted")
    path.unlink()
    saved = AutoModelForCausalLM.from_pretrained(tmp_path / "converted")
    ids = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        assert torch.equal(saved(ids).logits, direct(ids).logits)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "converted")
    assert tokenizer("abc", add_special_tokens=False).input_ids == [TOKENS.index("ab"), TOKENS.index("c")]
