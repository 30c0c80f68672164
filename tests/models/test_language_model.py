"""Loading by path, browsing without weights, copies, and use inside transformers."""

import copy
import os
import pickle
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

from nnsight_lab import LanguageModel, NotReachedError
from nnsight_lab.models import ModelUnavailableError
from tests.models.tiny import tiny_model, tiny_tokenizer

TEXT = "The Eiffel Tower"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tiny-gpt2"
    tiny_model().save_pretrained(path)
    tiny_tokenizer().save_pretrained(path)
    return path


def expected_logits(text=TEXT):
    return tiny_model()(torch.tensor([tiny_tokenizer()(text)["input_ids"]])).logits


def test_a_folder_is_browsed_without_weights(folder):
    model = LanguageModel(folder)
    assert not model.dispatched
    assert all(parameter.device.type == "meta" for parameter in model.parameters())
    assert "self_act_0" in str(model.transformer.h[0].mlp.source)
    assert "2 x GPT2Block" in str(model)
    assert model.config.n_layer == 2
    assert model.tokenizer.decode([model.tokenizer("a")["input_ids"][0]]) == "a"


def test_weights_load_at_the_first_trace_and_what_was_taken_before_stays_valid(folder):
    model = LanguageModel(str(folder))
    block, mlp = model.transformer.h[1], model.transformer.h[1].mlp
    source, act = mlp.source, mlp.source.self_act_0
    with model.trace(TEXT) as tracer:
        pre = act.input
        post = act.output
        hidden = mlp.output
        out = block.output
    assert model.dispatched
    assert block is model.transformer.h[1]
    assert mlp._module is model._model.transformer.h[1].mlp
    assert torch.equal(tracer.result.logits, expected_logits())
    assert torch.equal(model._model.transformer.h[1].mlp.act(pre), post)
    assert hidden.device.type == "cpu"
    assert (out[0] if isinstance(out, tuple) else out).device.type == "cpu"
    assert "self_act_0" in str(source)
    stored = load_file(folder / "model.safetensors")
    key = next(name for name in stored if name.endswith("h.1.mlp.c_fc.weight"))
    assert torch.equal(mlp.c_fc.weight, stored[key])


def test_dispatch_loads_at_once(folder):
    model = LanguageModel(folder, dispatch=True)
    assert model.dispatched
    with torch.no_grad():
        assert torch.equal(model._model(torch.tensor([tiny_tokenizer()(TEXT)["input_ids"]])).logits, expected_logits())
    module = model._model
    model.dispatch()
    assert model._model is module


@pytest.mark.parametrize("option", ["dtype", "torch_dtype"])
@pytest.mark.parametrize("value", [torch.float64, "float64"])
def test_the_dtype_is_that_of_the_weights(folder, option, value):
    model = LanguageModel(folder, dispatch=True, **{option: value})
    assert model.transformer.wte.weight.dtype == torch.float64


def test_the_device_map_places_the_weights_and_accelerates_hooks_are_kept(folder):
    model = LanguageModel(folder, device_map="cpu")
    with model.trace(TEXT) as tracer:
        act = model.transformer.h[1].mlp.source.self_act_0.output
    assert {parameter.device.type for parameter in model.parameters()} == {"cpu"}
    assert torch.equal(tracer.result.logits, expected_logits())
    assert act.shape == (1, len(TEXT), 128)


def test_two_names_of_one_option_that_disagree_are_an_error(folder):
    with pytest.raises(ValueError, match="two names of one option"):
        LanguageModel(folder, dtype=torch.float32, torch_dtype=torch.float16)


@pytest.mark.parametrize("option", [{"device_map": "cpu"}, {"dtype": torch.float16}, {"revision": "main"}])
def test_options_of_loading_are_refused_for_a_module(option):
    with pytest.raises(
        TypeError, match=f"{next(iter(option))}: options of loading, but the model was given as a module"
    ):
        LanguageModel(tiny_model(), **option)


@pytest.mark.parametrize("wrong", [3, None, torch.nn.Linear])
def test_what_is_neither_name_nor_module_is_refused(wrong):
    with pytest.raises(TypeError, match=r"name|path|module"):
        LanguageModel(wrong)


def test_an_unknown_option_is_refused_when_the_weights_load(folder):
    model = LanguageModel(folder, no_such_option=1)
    with pytest.raises(TypeError, match="no_such_option"):
        model.dispatch()


def test_a_folder_without_a_model_says_what_is_missing(tmp_path):
    with pytest.raises(OSError, match=r"config.json"):
        LanguageModel(tmp_path)
    with pytest.raises(OSError, match="nowhere"):
        LanguageModel(tmp_path / "nowhere")


def test_a_folder_without_a_tokenizer_asks_for_one(tmp_path):
    tiny_model().save_pretrained(tmp_path)
    with pytest.raises(ModelUnavailableError, match="tokenizer=<a tokenizer, or the name or path of one>"):
        LanguageModel(tmp_path)
    model = LanguageModel(tmp_path, tokenizer=tiny_tokenizer())
    with model.trace(TEXT) as tracer:
        pass
    assert torch.equal(tracer.result.logits, expected_logits())


def test_a_hub_name_offline_says_so():
    with pytest.raises(ModelUnavailableError) as caught:
        LanguageModel("openai-community/gpt2-that-nobody-cached")
    text = str(caught.value)
    assert "'openai-community/gpt2-that-nobody-cached' is not on this machine" in text
    assert "HF_HUB_OFFLINE is set" in text
    assert "nnsight_lab.demo.load()" in text


def test_a_hub_name_without_a_connection_says_so(tmp_path):
    script = """
import socket
import time

time.sleep = lambda _: None  # the hub's client waits between its attempts

def refused(*_, **__):
    raise OSError("no route to host")

socket.socket.connect = refused
socket.create_connection = refused
socket.getaddrinfo = refused
from nnsight_lab import LanguageModel
from nnsight_lab.models import ModelUnavailableError
try:
    LanguageModel("openai-community/gpt2")
except ModelUnavailableError as error:
    print(error)
"""
    environment = {key: value for key, value in os.environ.items() if key != "HF_HUB_OFFLINE"}
    environment |= {"HF_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False, timeout=300
    )
    assert "'openai-community/gpt2' is not on this machine" in done.stdout, done.stderr[-3000:]
    assert "no connection" in done.stdout


@pytest.mark.parametrize("copying", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("loaded", [True, False])
def test_copies_keep_the_tokenizer_and_still_load(folder, copying, loaded):
    model = LanguageModel(folder, dispatch=loaded)
    other = copying(model)
    assert type(other) is LanguageModel
    assert other.dispatched is loaded
    assert other.tokenizer("a")["input_ids"] == model.tokenizer("a")["input_ids"]
    with other.trace(TEXT) as tracer:
        pass
    assert torch.equal(tracer.result.logits, expected_logits())
    assert model.dispatched is loaded


def test_the_tokenizer_pads_on_the_left_and_can_be_replaced():
    model = LanguageModel(tiny_model(), tokenizer=tiny_tokenizer())
    assert (model.tokenizer.padding_side, model.tokenizer.pad_token) == ("left", "<|end|>")
    replacement = tiny_tokenizer()
    model.tokenizer = replacement
    assert model.tokenizer is replacement
    assert replacement.padding_side == "left"


def test_the_tokenizer_is_given_by_path(folder):
    model = LanguageModel(tiny_model(), tokenizer=folder)
    assert model.tokenizer("a")["input_ids"] == tiny_tokenizer()("a")["input_ids"]


def test_transformers_own_generate_is_the_same_before_and_after_a_trace():
    plain = tiny_model()
    ids = torch.tensor([tiny_tokenizer()(TEXT)["input_ids"]])
    settings = {"max_new_tokens": 5, "do_sample": False, "attention_mask": torch.ones_like(ids)}
    expected = plain.generate(ids, **settings)
    model = LanguageModel(plain, tokenizer=tiny_tokenizer())
    assert torch.equal(model._model.generate(ids, **settings), expected)
    with model.trace(TEXT):
        model.transformer.h[1].mlp.source.self_act_0.output
        inside = model._model.generate(ids, **settings)
    assert torch.equal(inside, expected)
    assert torch.equal(model._model.generate(ids, **settings), expected)


def test_a_logit_lens_in_the_body():
    plain = tiny_model()
    model = LanguageModel(plain, tokenizer=tiny_tokenizer())
    with model.trace(TEXT) as tracer:
        hidden = model.transformer.h[-1].output
        hidden = hidden[0] if isinstance(hidden, tuple) else hidden
        lens = model.lm_head(model.transformer.ln_f(hidden))
        logits = tracer.result.logits
    assert torch.equal(lens, logits)


def test_experts_run_once_for_each_that_got_tokens():
    plain = tiny_model("mixtral")
    plain.config._experts_implementation = "eager"
    model = LanguageModel(plain, tokenizer=tiny_tokenizer())
    act = model.model.layers[0].mlp.experts.source.self_act_fn_0
    with model.trace(5):  # one token goes to two of the four experts
        values = [act[0].output, act[1].output]
    assert [value.shape for value in values] == [(1, 48), (1, 48)]
    with pytest.raises(NotReachedError, match=r"call 2 was asked for .* the forward made only 2 calls"), model.trace(5):
        act[2].output


def test_a_forward_whose_decorator_ran_something_else_says_so():
    plain = tiny_model("mixtral")
    plain.config._experts_implementation = "grouped_mm"
    model = LanguageModel(plain, tokenizer=tiny_tokenizer())
    with pytest.raises(NotReachedError, match=r"no operation of MixtralExperts.forward ran.*a decorator") as caught:
        with model.trace(5):
            model.model.layers[0].mlp.experts.source.self_act_fn_0.output
    assert "branch" not in str(caught.value)


def test_backward_with_gradient_checkpointing_equals_plain():
    def gradients(run):
        plain = tiny_model()
        plain.gradient_checkpointing_enable()
        plain.train()
        plain.config.use_cache = False
        for module in plain.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        run(plain)
        return [parameter.grad for parameter in plain.parameters()]

    ids = torch.tensor([tiny_tokenizer()(TEXT)["input_ids"]])

    def directly(plain):
        plain(ids).logits.pow(2).mean().backward()

    def traced(plain):
        model = LanguageModel(plain)
        with model.trace(ids) as tracer:
            hidden = model.transformer.h[0].mlp.output
            assert hidden.requires_grad
            model.transformer.h[1].output
            tracer.result.logits.pow(2).mean().backward()

    assert all(torch.equal(one, two) for one, two in zip(gradients(directly), gradients(traced), strict=True))
