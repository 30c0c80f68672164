"""The code blocks of the document "nnsight API Reference", as written but for import and model names.

What each must give comes from the plain model with torch hooks, or from plain transformers. Blocks that need a remote
service are left out; of the sessions' block what remains runs here. In transformers 5 a block of GPT-2 returns its hidden states alone, `[batch, position, d_model]`,
so `output[0]` is the first row of the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nnsight_lab import LanguageModel, demo

HELLO = "Hello"


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return demo.load()


@pytest.fixture(scope="module")
def llama() -> LanguageModel:
    return demo.load("smollm2")


@pytest.fixture(scope="module")
def folder(model: LanguageModel, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A checkpoint as a hub name would give it."""
    path = tmp_path_factory.mktemp("checkpoint")
    model._model.save_pretrained(path)
    model.tokenizer.save_pretrained(path)
    return str(path)


def plain(
    model: LanguageModel,
    prompt: str,
    reads: dict[str, str] | None = None,
    edits: dict[str, Callable[[Tensor], Tensor]] | None = None,
) -> tuple[Any, dict[str, Tensor]]:
    """The plain model's output on a prompt, with values of modules read and edited by torch hooks."""
    read: dict[str, Tensor] = {}
    handles = []

    def first(value: Any) -> Tensor:
        return value[0] if isinstance(value, tuple) else value

    def reading(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            read[name] = first(output).detach().clone()

        return hook

    def editing(change: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
        def hook(module: nn.Module, args: Any, output: Any) -> Any:
            new = change(first(output))
            return (new, *output[1:]) if isinstance(output, tuple) else new

        return hook

    for path, change in (edits or {}).items():
        handles.append(model._model.get_submodule(path).register_forward_hook(editing(change)))
    for name, path in (reads or {}).items():
        handles.append(model._model.get_submodule(path).register_forward_hook(reading(name)))
    try:
        ids = model.tokenizer(prompt, return_tensors="pt")
        with torch.no_grad():
            output = model._model(**ids)
    finally:
        for handle in handles:
            handle.remove()
    return output, read


def layer_5(model: LanguageModel, prompt: str) -> Tensor:
    return plain(model, prompt, {"hidden": "transformer.h.5"})[1]["hidden"]


# LanguageModel


def test_loading_models(folder: str) -> None:
    model = LanguageModel(folder, device_map="auto")
    half = LanguageModel(
        folder,
        device_map="auto",
        torch_dtype=torch.float16,
    )
    with torch.no_grad(), model.trace(HELLO), half.trace(HELLO):
        logits = model.lm_head.output
        halved = half.lm_head.output
    expected = model._model(**model.tokenizer(HELLO, return_tensors="pt")).logits
    assert torch.equal(logits, expected)
    assert halved.dtype == torch.float16
    assert torch.allclose(halved.float(), expected, atol=0.1)


def test_model_attributes(model: LanguageModel) -> None:
    assert isinstance(model._model, nn.Module)
    assert model.tokenizer(HELLO).input_ids == model.tokenizer.encode(HELLO)
    assert model._model.config.n_layer == len(model.transformer.h)


# Tracing


def test_basic_tracing(model: LanguageModel) -> None:
    with model.trace("Hello world") as tracer:
        hidden = model.transformer.h[5].output[0].save()
        logits = model.output.save()

    output, _ = plain(model, "Hello world")
    assert tracer is not None
    assert torch.equal(hidden, layer_5(model, "Hello world")[0])
    assert torch.equal(logits.logits, output.logits)


def test_tracing_parameters(model: LanguageModel) -> None:
    prompt = "Hello world"
    with model.trace(
        prompt,
        remote=False,
        validate=True,
        scan=True,
    ) as tracer:
        ...

    assert torch.equal(tracer.result.logits, plain(model, prompt)[0].logits)


def test_accessing_values(model: LanguageModel) -> None:
    with model.trace("Hello"):
        attention = model.transformer.h[5].attn.output
        layer_output = model.transformer.h[5].output[0]

        mean = layer_output.mean(dim=-1)
        normed = layer_output / layer_output.norm()

    _, read = plain(model, HELLO, {"attention": "transformer.h.5.attn", "layer": "transformer.h.5"})
    assert torch.equal(attention[0], read["attention"])
    assert torch.equal(mean, read["layer"][0].mean(dim=-1))
    assert torch.equal(normed, read["layer"][0] / read["layer"][0].norm())


def test_saving_values(model: LanguageModel) -> None:
    with model.trace("Hello"):
        hidden = model.transformer.h[5].output[0].save()

    assert hidden.shape == layer_5(model, HELLO)[0].shape


@pytest.mark.parametrize("number", range(4))
def test_modifying_values(model: LanguageModel, number: int) -> None:
    some_tensor = torch.linspace(-1, 1, model._model.config.n_embd)
    steering_vector = some_tensor.flip(0)
    changes: list[Callable[[Tensor], Tensor]] = [
        torch.zeros_like,
        lambda x: some_tensor.expand_as(x).clone(),
        lambda x: x * 0.5,
        lambda x: x + steering_vector,
    ]
    with torch.no_grad(), model.trace("Hello"):
        if number == 0:
            model.transformer.h[5].output[0][:] = 0
        if number == 1:
            model.transformer.h[5].output[0][:] = some_tensor
        if number == 2:
            model.transformer.h[5].output[0][:] *= 0.5
        if number == 3:
            model.transformer.h[5].output[0][:] += steering_vector
        logits = model.lm_head.output

    output, _ = plain(model, HELLO, edits={"transformer.h.5": changes[number]})
    assert torch.equal(logits, output.logits)
    assert not torch.equal(logits, plain(model, HELLO)[0].logits)


def test_proxy_operations(model: LanguageModel) -> None:
    with model.trace("Hello"):
        # One row of the batch, kept as a batch: transformers' blocks returned a tuple when the document was written.
        h = model.transformer.h[5].output[0][None]

        first_token = h[:, 0, :]
        last_token = h[:, -1, :]

        mean = h.mean(dim=-1)
        norm = h.norm()
        transposed = h.transpose(1, 2)

        mean.save()

    expected = layer_5(model, HELLO)
    assert torch.equal(first_token, expected[:, 0, :])
    assert torch.equal(last_token, expected[:, -1, :])
    assert torch.equal(mean, expected.mean(dim=-1))
    assert torch.equal(norm, expected.norm())
    assert torch.equal(transposed, expected.transpose(1, 2))


def test_gpt2_structure(model: LanguageModel) -> None:
    with model.trace("Hello"):
        embed = model.transformer.wte.output.save()
        pos_embed = model.transformer.wpe.output.save()

        attn_out = model.transformer.h[5].attn.output.save()
        mlp_out = model.transformer.h[5].mlp.output.save()
        layer_out = model.transformer.h[5].output[0].save()

        logits = model.output.save()

    paths = {
        "embed": "transformer.wte",
        "pos_embed": "transformer.wpe",
        "attn": "transformer.h.5.attn",
        "mlp": "transformer.h.5.mlp",
        "layer": "transformer.h.5",
    }
    output, read = plain(model, HELLO, paths)
    assert torch.equal(embed, read["embed"])
    assert torch.equal(pos_embed, read["pos_embed"])
    assert torch.equal(attn_out[0], read["attn"])
    assert torch.equal(mlp_out, read["mlp"])
    assert torch.equal(layer_out, read["layer"][0])
    assert torch.equal(logits.logits, output.logits)


def test_llama_structure(llama: LanguageModel) -> None:
    with llama.trace("Hello"):
        embed = llama.model.embed_tokens.output.save()

        attn_out = llama.model.layers[10].self_attn.output.save()
        mlp_out = llama.model.layers[10].mlp.output.save()
        layer_out = llama.model.layers[10].output[0].save()

        logits = llama.output.save()

    paths = {
        "embed": "model.embed_tokens",
        "attn": "model.layers.10.self_attn",
        "mlp": "model.layers.10.mlp",
        "layer": "model.layers.10",
    }
    output, read = plain(llama, HELLO, paths)
    assert torch.equal(embed, read["embed"])
    assert torch.equal(attn_out[0], read["attn"])
    assert torch.equal(mlp_out, read["mlp"])
    assert torch.equal(layer_out, read["layer"][0])
    assert torch.equal(logits.logits, output.logits)


# Multiple prompts. What the padding of a shorter prompt gives is left out of the comparison.


def test_basic_usage_of_invokes(model: LanguageModel) -> None:
    with model.trace() as tracer:
        with tracer.invoke("First prompt"):
            hidden1 = model.transformer.h[5].output[0].save()

        with tracer.invoke("Second prompt"):
            hidden2 = model.transformer.h[5].output[0].save()

    for hidden, prompt in ((hidden1, "First prompt"), (hidden2, "Second prompt")):
        expected = layer_5(model, prompt)[0]
        assert torch.allclose(hidden[-len(expected) :], expected, atol=1e-4)


def test_cross_prompt_intervention(model: LanguageModel) -> None:
    with model.trace() as tracer:
        # Get activations from first prompt
        with tracer.invoke("The cat sat on the"):
            cat_hidden = model.transformer.h[6].output[0].save()

        # Inject into second prompt
        with tracer.invoke("The dog ran through the"):
            model.transformer.h[6].output[0][:] = cat_hidden
            output = model.output.save()

    plain_output, read = plain(model, "The cat sat on the", {"hidden": "transformer.h.6"})
    assert torch.allclose(cat_hidden, read["hidden"][0], atol=1e-4)
    _, dog = plain(model, "The dog ran through the", {"hidden": "transformer.h.6"})
    patched, _ = plain(model, "The dog ran through the", edits={"transformer.h.6": lambda _: read["hidden"]})
    assert not torch.allclose(dog["hidden"], read["hidden"], atol=1e-2)
    assert type(output) is type(plain_output)
    assert torch.allclose(output.logits, patched.logits, atol=1e-3)


def test_finding_module_names(model: LanguageModel, capsys: pytest.CaptureFixture[str]) -> None:
    print(model._model)
    assert "(lm_head): Linear" in capsys.readouterr().out
    for name, _module in model._model.named_modules():
        print(name)
    assert "transformer.h.11.mlp.act\n" in capsys.readouterr().out


# Utilities


def test_basic_generation(model: LanguageModel, capsys: pytest.CaptureFixture[str]) -> None:
    with model.trace() as tracer:
        with tracer.invoke("Once upon a time"):
            # Intervention during generation
            model.transformer.h[5].output[0][:] *= 1.2

        output = model.generate(max_new_tokens=50)

    print(model.tokenizer.decode(output[0]))

    calls = []

    def in_the_first_forward(module: nn.Module, args: Any, value: Tensor) -> Tensor | None:
        calls.append(len(calls))
        return value * 1.2 if calls == [0] else None

    handle = model._model.transformer.h[5].register_forward_hook(in_the_first_forward)
    try:
        encoded = model.tokenizer("Once upon a time", return_tensors="pt")
        expected = model._model.generate(**encoded, max_new_tokens=50)
    finally:
        handle.remove()
    assert torch.equal(output, expected)
    assert output.shape[1] > encoded.input_ids.shape[1]
    assert capsys.readouterr().out == model.tokenizer.decode(expected[0]) + "\n"


def test_gradients(model: LanguageModel) -> None:
    with model.trace("The quick brown fox") as tracer:
        hidden = model.transformer.h[5].output[0].save()
        hidden.retain_grad()

        logits = model.output
        target_token = model.tokenizer.encode(" jumps")[0]
        loss = -logits[0, -1, target_token]
        loss.backward()

    # Access gradient
    grad = hidden.grad

    kept: list[Tensor] = []

    def keep(module: nn.Module, args: Any, value: Tensor) -> None:
        value.retain_grad()
        kept.append(value)

    handle = model._model.transformer.h[5].register_forward_hook(keep)
    try:
        plain_logits = model._model(**model.tokenizer("The quick brown fox", return_tensors="pt")).logits
    finally:
        handle.remove()
    (-plain_logits[0, -1, target_token]).backward()
    assert kept[0].grad is not None
    assert torch.equal(grad, kept[0].grad[0])
    assert torch.equal(tracer.result.logits, plain_logits)


def test_sessions(llama: LanguageModel) -> None:
    model = llama
    with model.session() as session:
        with model.trace("First prompt"):
            h1 = model.model.layers[20].output[0].save()

        with model.trace("Second prompt"):
            h2 = model.model.layers[20].output[0].save()

    del session
    for hidden, prompt in ((h1, "First prompt"), (h2, "Second prompt")):
        _, read = plain(model, prompt, {"hidden": "model.layers.20"})
        assert torch.equal(hidden, read["hidden"][0])


def test_early_stopping(model: LanguageModel) -> None:
    ran = []
    handle = model._model.get_submodule("transformer.h.6").register_forward_hook(lambda *_: ran.append(6))
    try:
        with model.trace("Hello") as tracer:
            hidden = model.transformer.h[5].output[0].save()
            tracer.stop()
    finally:
        handle.remove()
    assert torch.equal(hidden, layer_5(model, HELLO)[0])
    assert ran == []


def test_validation(model: LanguageModel) -> None:
    with model.trace("Hello", validate=True):
        hidden = model.transformer.h[5].output[0].save()

    assert torch.equal(hidden, layer_5(model, HELLO)[0])


def test_module_access_result(model: LanguageModel) -> None:
    with model.trace("Hello") as tracer:
        result = tracer.result
    assert torch.equal(result.logits, plain(model, HELLO)[0].logits)


def test_common_module_paths(model: LanguageModel, llama: LanguageModel) -> None:
    for envoy in (
        model.transformer.wte,
        model.transformer.h[0],
        model.transformer.h[0].attn,
        model.transformer.h[0].mlp,
    ):
        assert model._model.get_submodule(envoy._dotted) is envoy._module
    for envoy in (
        llama.model.embed_tokens,
        llama.model.layers[0],
        llama.model.layers[0].self_attn,
        llama.model.layers[0].mlp,
    ):
        assert llama._model.get_submodule(envoy._dotted) is envoy._module
