"""How a wrapped model was made, as a line of Python."""

import copy
import pickle

import pytest
import torch

from nnsight_lab import LanguageModel, NNsight, demo
from nnsight_lab.models.origin import loading_line, origin_of

from .tiny import tiny_model, tiny_tokenizer


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({}, "nnsight_lab.LanguageModel('a/b')"),
        ({"dtype": None, "revision": "main"}, "nnsight_lab.LanguageModel('a/b', revision='main')"),
        ({"dtype": torch.float16}, "nnsight_lab.LanguageModel('a/b', dtype=torch.float16)"),
        (
            {"device_map": {"": torch.device("cpu")}, "low": 1.5},
            "nnsight_lab.LanguageModel('a/b', device_map={'': torch.device('cpu')}, low=1.5)",
        ),
        ({"token": "a secret"}, "nnsight_lab.LanguageModel('a/b')"),
        ({"automodel": tiny_model}, ""),
        ({"device_map": {"": tiny_model}}, ""),
        ({"attn_implementation": "eager", "config": object()}, ""),
    ],
)
def test_the_line_has_the_options_that_can_be_written(options, line):
    assert loading_line("a/b", options) == line


def test_the_line_is_python_that_gives_the_options_back():
    options = {"dtype": torch.bfloat16, "device_map": {"a": 0, "b": torch.device("cpu", 0)}, "use_cache": False}

    class Recorder:
        @staticmethod
        def LanguageModel(name, **given):
            return name, given

    assert eval(loading_line("a 'b'", options), {"nnsight_lab": Recorder, "torch": torch}) == ("a 'b'", options)


def test_only_what_is_known_is_told():
    assert origin_of(demo.load()) == "nnsight_lab.demo.load('atlas')"
    assert origin_of(LanguageModel(tiny_model(), tokenizer=tiny_tokenizer())) == ""
    assert origin_of(NNsight(torch.nn.Linear(1, 1))) == ""


def test_a_copy_may_be_changed_and_so_tells_nothing():
    for copied in (copy.copy(demo.load()), pickle.loads(pickle.dumps(demo.load()))):
        assert origin_of(copied) == ""
