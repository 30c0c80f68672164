"""Options of nnsight's `trace` that are not carried out yet must not look as if they were."""

import pytest
import torch

from nnsight_lab import demo


@pytest.mark.parametrize("option", ["remote"])
def test_an_option_that_is_not_ready_is_refused(option):
    model = demo.load()
    with pytest.raises(NotImplementedError, match=option):
        model.trace("The Eiffel Tower", **{option: True})
    with model.trace("The Eiffel Tower", **{option: False}):
        logits = model.lm_head.output
    ids = model.tokenizer("The Eiffel Tower", return_tensors="pt").input_ids
    assert torch.equal(logits, model._model(ids).logits)
