"""Models of other kinds than causal text models: what a trace reads and edits is what torch hooks see and change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from nnsight_lab import NNsight


@contextmanager
def hooked(module: nn.Module, hook: Callable[..., Any]) -> Iterator[None]:
    handle = module.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def vision() -> tuple[nn.Module, dict[str, Tensor], str, str]:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32, image_size=32, patch_size=8
    )
    module = ViTForImageClassification(config).eval()
    layers = "vit.encoder.layer" if hasattr(module.vit, "encoder") else "vit.layers"
    return module, {"pixel_values": torch.randn(2, 3, 32, 32)}, f"{layers}.1", "classifier"


def audio() -> tuple[nn.Module, dict[str, Tensor], str, str]:
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    config = Wav2Vec2Config(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, conv_dim=(8, 8),
        conv_stride=(4, 2), conv_kernel=(8, 4), num_feat_extract_layers=2, num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2, vocab_size=12,
    )  # fmt: skip
    return Wav2Vec2ForCTC(config).eval(), {"input_values": torch.randn(1, 400)}, "wav2vec2.encoder.layers.0", "lm_head"


@dataclass
class Seen:
    """What `Branching` returns: a dataclass with nested structures in it."""

    scores: Tensor
    parts: dict[str, list[Tensor]]


class Pair(NamedTuple):
    left: Tensor
    right: Tensor


class Split(nn.Module):
    def forward(self, x: Tensor) -> Pair:
        return Pair(x[..., :2], x[..., 2:])


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.split = Split()
        self.last = nn.Linear(2, 3)

    def forward(self, x: Tensor) -> Seen:
        pair = self.split(self.first(x))
        return Seen(self.last(pair.left), {"halves": [pair.left, pair.right]})


def mlp() -> tuple[nn.Module, dict[str, Tensor], str, str]:
    module = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
    return module, {"input": torch.randn(3, 4)}, "1", "2"


def structured() -> tuple[nn.Module, dict[str, Tensor], str, str]:
    return Branching(), {"x": torch.randn(3, 4)}, "first", "last"


KINDS = {"vision": vision, "audio": audio, "mlp": mlp, "structured": structured}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_reads_and_edits_are_those_of_hooks(make: Callable[[], tuple[nn.Module, dict[str, Tensor], str, str]]) -> None:
    torch.manual_seed(0)
    module, inputs, inner, end = make()
    model = NNsight(module)
    seen: list[Tensor] = []

    def first(value: Any) -> Tensor:
        return value[0] if isinstance(value, tuple) else value

    with torch.no_grad(), hooked(module.get_submodule(inner), lambda m, a, out: seen.append(first(out).clone())):
        module(**inputs)
    with torch.no_grad(), model.trace(**inputs):
        read = first(model.get(inner).output)
    assert torch.equal(read, seen[0])

    def doubled(m: nn.Module, args: Any, out: Any) -> Any:
        return (out[0] * 2, *out[1:]) if isinstance(out, tuple) else out * 2

    ends: list[Tensor] = []
    keep = hooked(module.get_submodule(end), lambda m, a, out: ends.append(out.clone()))
    with torch.no_grad(), hooked(module.get_submodule(inner), doubled), keep:
        module(**inputs)
    with torch.no_grad(), model.trace(**inputs):
        site = model.get(inner)
        value = site.output
        site.output = (value[0] * 2, *value[1:]) if isinstance(value, tuple) else value * 2
        edited = model.get(end).output
    assert torch.equal(edited, ends[0])


def test_dataclasses_and_named_tuples_are_handed_over_as_they_are() -> None:
    torch.manual_seed(0)
    module = Branching()
    x = torch.randn(3, 4)
    with torch.no_grad(), NNsight(module).trace(x) as tracer:
        model = tracer._run.owner
        pair = model.split.output
        result = tracer.result
    hidden = module.first(x)
    assert isinstance(pair, Pair)
    assert torch.equal(pair.right, hidden[..., 2:])
    assert isinstance(result, Seen)
    assert result.parts["halves"][0] is pair.left
    assert torch.equal(result.scores, module.last(hidden[..., :2]))


def test_a_named_tuple_can_be_replaced() -> None:
    torch.manual_seed(0)
    module = Branching()
    x, other = torch.randn(3, 4), torch.randn(3, 2)
    model = NNsight(module)
    with torch.no_grad(), model.trace(x) as tracer:
        pair = model.split.output
        model.split.output = pair._replace(left=other)
        result = tracer.result
    with torch.no_grad():
        assert torch.equal(result.scores, module.last(other))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast_values_have_its_dtype(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    module, inputs, *_ = mlp()
    model = NNsight(module)
    with torch.no_grad(), torch.autocast("cpu", dtype=dtype), model.trace(**inputs):
        hidden = model[0].output
        model[1].output = model[1].output * 0.5
        result = model[2].output
    with torch.no_grad(), torch.autocast("cpu", dtype=dtype):
        expected = module[0](inputs["input"])
        assert hidden.dtype == dtype
        assert torch.equal(hidden, expected)
        assert torch.equal(result, module[2](module[1](expected) * 0.5))


def test_in_bfloat16_reads_and_edits_keep_the_dtype() -> None:
    torch.manual_seed(0)
    module, inputs, inner, end = vision()
    module = module.to(torch.bfloat16)
    inputs = {name: value.to(torch.bfloat16) for name, value in inputs.items()}
    model = NNsight(module)
    ends: list[Tensor] = []
    keep = hooked(module.get_submodule(end), lambda m, a, out: ends.append(out.clone()))

    def zeroed(m: nn.Module, args: Any, out: Any) -> Any:
        return (out[0] * 0, *out[1:]) if isinstance(out, tuple) else out * 0

    with torch.no_grad(), hooked(module.get_submodule(inner), zeroed), keep:
        module(**inputs)
    with torch.no_grad(), model.trace(**inputs):
        value = model.get(inner).output
        (value[0] if isinstance(value, tuple) else value)[:] = 0
        logits = model.get(end).output
    assert logits.dtype == torch.bfloat16
    assert torch.equal(logits, ends[0])


@pytest.mark.parametrize("grad", [True, False])
def test_a_compiled_model_is_traced_by_its_wrapper(grad: bool) -> None:
    torch.manual_seed(0)
    module, inputs, *_ = mlp()
    compiled = torch.compile(module, backend="eager")
    model = NNsight(compiled)
    with nullcontext() if grad else torch.no_grad():
        expected = compiled(inputs["input"])
        with model.trace(inputs["input"]) as tracer:
            result = tracer.result
    assert torch.equal(result, expected)
    assert torch.equal(compiled(inputs["input"]), module(inputs["input"]))
