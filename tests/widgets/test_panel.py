"""The kernel's answers to the JupyterLab extension, and the listing that a notebook keeps."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from torch import nn

from nnsight_lab import Lab, NNsight, demo
from nnsight_lab.experiments import Zero
from nnsight_lab.widgets import panel, sourcebundle, wire
from nnsight_lab.widgets.opened import open_labs

MLP = "transformer.h.11.mlp"
ACT = f"{MLP}.source.self_act_0"


class Comm:
    """The kernel's end of a comm, with what was sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, Any]] = []

    def on_msg(self, receive: Any) -> None:
        self.receive = receive

    def send(self, data: Any, buffers: Any = None) -> None:
        self.sent.append((data, buffers))


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    names: dict[str, Any] = {"model": demo.load()}
    monkeypatch.setattr(panel, "_namespace", lambda: names)
    return names


def ask(**request: Any) -> tuple[Any, Any]:
    comm = Comm()
    panel.PanelDesk(comm)
    comm.receive({"content": {"data": {"id": "page:1", **request}}})
    (accepted, _), (reply, buffers) = comm.sent
    assert accepted == {"kind": "accepted", "id": "page:1"}
    msgspec.convert(reply, wire.Reply)
    return reply, buffers


def test_models_are_told_by_their_first_name(names: dict[str, Any]) -> None:
    names |= {"again": names["model"], "_hidden": NNsight(nn.Linear(2, 2)), "net": NNsight(nn.Linear(2, 3)), "x": 1}
    reply, _ = ask(kind="alive")
    assert [(entry["name"], entry["facts"]["parameters"]) for entry in reply["models"]] == [
        ("model", sum(p.numel() for p in names["model"]._module.parameters())),
        ("net", 9),
    ]


def test_a_rebound_name_is_another_model(names: dict[str, Any]) -> None:
    before = ask(kind="alive")[0]["models"][0]["identity"]
    kept, names["model"] = names["model"], NNsight(nn.Linear(2, 2))
    assert ask(kind="alive")[0]["models"][0]["identity"] != before
    names["model"] = kept
    assert ask(kind="alive")[0]["models"][0]["identity"] == before


def test_the_tree_has_a_column_for_every_module(names: dict[str, Any]) -> None:
    reply, [buffer] = ask(kind="modules_of", model="model")
    modules = list(names["model"]._module.named_modules(remove_duplicate=False))
    assert len(reply["names"]) == len(modules)
    depth = np.frombuffer(buffer).reshape(5, -1)[0]
    assert depth.tolist() == [path.count(".") + 1 if path else 0 for path, _ in modules]


def test_a_listing_is_the_printed_one(names: dict[str, Any]) -> None:
    reply, _ = ask(kind="listing", model="model", module=MLP, opened=[])
    [block] = reply["listing"]["blocks"]
    calls = [one["label"] for one in block["operations"] if one["kind"] == "call"]
    assert calls == [site._label for site in names["model"].transformer.h[11].mlp.source]
    opened, _ = ask(kind="listing", model="model", module=MLP, opened=[ACT])
    assert [one["site"] for one in opened["listing"]["blocks"]] == [MLP, ACT]
    modules = {one["label"]: one["module"] for one in block["operations"] if one["kind"] == "call"}
    assert modules["self_act_0"] == f"{MLP}.act"


@pytest.mark.parametrize(
    ("request_", "kind", "message"),
    [
        ({"kind": "listing", "model": "modle", "module": ""}, "LabError", "No model is called 'modle'.*model"),
        ({"kind": "listing", "model": "model", "module": "nowhere"}, "UnknownSiteError", "nowhere"),
        ({"kind": "snippet", "model": "model", "site": "x.y", "purpose": "lab"}, "UnknownSiteError", "'x"),
        ({"kind": "snippet", "model": "model", "site": "", "purpose": "exec"}, "ValidationError", "purpose"),
        ({"kind": "evaluate", "code": "1"}, "ValidationError", "evaluate"),
    ],
)
def test_what_cannot_be_answered_is_an_error_reply(
    names: dict[str, Any], request_: dict[str, Any], kind: str, message: str
) -> None:
    reply, _ = ask(**request_)
    assert reply["kind"] == "failed"
    assert reply["failure"]["kind"] == kind
    assert re.search(message, reply["failure"]["message"])


def run(code: str, names: dict[str, Any]) -> dict[str, Any]:
    scope = dict(names)
    exec(code, scope)
    return scope


def test_a_snippet_reads_what_a_hook_sees(names: dict[str, Any]) -> None:
    code = ask(kind="snippet", model="model", site=ACT, purpose="capture")[0]["code"]
    model = names["model"]
    seen: list[torch.Tensor] = []
    hook = model._module.transformer.h[11].mlp.act.register_forward_hook(lambda _, __, out: seen.append(out))
    with torch.no_grad():
        model._module(**model.tokenizer(demo.EIFFEL, return_tensors="pt"))
    hook.remove()
    assert demo.EIFFEL in code
    assert torch.equal(run(code, names)["value"], seen[0])


def test_a_snippet_zeroes_what_a_hook_zeroes(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    code = ask(kind="snippet", model="model", site=ACT, purpose="zero")[0]["code"]
    model = names["model"]
    hook = model._module.transformer.h[11].mlp.act.register_forward_hook(lambda _, __, out: torch.zeros_like(out))
    with torch.no_grad():
        logits = model._module(**model.tokenizer(demo.EIFFEL, return_tensors="pt")).logits[0, -1]
    hook.remove()
    result = run(code, names)["result"]
    best = max(result.rows, key=lambda row: row.edited_logit)
    assert best.token_id == int(logits.argmax())
    assert best.edited_logit == pytest.approx(float(logits.max()), abs=1e-4)


def test_the_prompt_is_that_of_the_newest_lab_on_the_model(names: dict[str, Any]) -> None:
    lab = Lab(names["model"], "The Colosseum is in", module=MLP)
    assert lab in open_labs()
    reply, _ = ask(kind="snippet", model="model", site=ACT, purpose="lab")
    scope = run(f"lab = {reply['code']}", names)
    assert (scope["lab"].base, scope["lab"].selection) == ("The Colosseum is in", ACT)
    scope["lab"].close()
    lab.close()
    assert lab not in open_labs()


def test_the_lab_opened_last_runs_again_clears_and_says_its_code(names: dict[str, Any]) -> None:
    assert ask(kind="lab", to="run")[0]["failure"]["message"].startswith("No Lab is open")
    older = Lab(names["model"], demo.EIFFEL, steps=[Zero(ACT)])
    lab = Lab(names["model"], demo.EIFFEL, steps=[Zero(ACT)])
    try:
        assert ask(kind="lab", to="code")[0]["code"] == lab.code()
        assert ask(kind="lab", to="run")[0]["kind"] == "told"
        assert ask(kind="lab", to="clear")[0]["message"] == "Removed 1 step."
        assert (len(lab.steps), len(older.steps)) == (0, 1)
    finally:
        older.close()
        lab.close()


def test_a_model_without_tokenizer_is_told_what_to_hand_over(names: dict[str, Any]) -> None:
    names["net"] = NNsight(nn.Sequential(nn.Linear(2, 2)))
    names["inputs"] = torch.ones(1, 2)
    code = ask(kind="snippet", model="net", site="0", purpose="capture")[0]["code"]
    assert "# inputs" in code
    expected = names["net"]._module[0](names["inputs"])
    assert torch.equal(run(code, names)["value"], expected)


def test_a_listing_in_a_notebook_has_its_callees_and_modules_within_the_budget(names: dict[str, Any]) -> None:
    data = names["model"].transformer.h[0].attn.source._repr_mimebundle_()
    bundle = data[sourcebundle.MIME]
    assert set(data) == {"text/plain", "text/html", sourcebundle.MIME}
    path = "transformer.h.0.attn"
    assert bundle["module"] == path
    assert bundle["lab"] == 'model.lab(module="transformer.h[0].attn")'
    assert f"{path}.c_attn" in bundle["listings"]
    assert bundle["listings"][path]["blocks"][0]["title"] == "GPT2Attention.forward"
    assert len(json.dumps(bundle)) < 2 * sourcebundle.BUDGET
    assert msgspec.convert(bundle, wire.SourceBundle).listings[path].module == path


def test_the_comm_is_offered_in_a_kernel_and_importing_stays_cheap() -> None:
    script = """
import sys
class Manager:
    def register_target(self, name, opened): self.name = name
manager = Manager()
import types
module = types.ModuleType("IPython")
module.get_ipython = lambda: types.SimpleNamespace(kernel=types.SimpleNamespace(comm_manager=manager))
sys.modules["IPython"] = module
import nnsight_lab
print(manager.name, "ipywidgets" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["nnsight-lab", "False"]
