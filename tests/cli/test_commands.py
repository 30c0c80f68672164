"""The command line: what is printed where, and how it ends."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import nnsight_lab
from nnsight_lab import demo
from nnsight_lab.cli import main
from nnsight_lab.demo.atlas import load_plain
from nnsight_lab.experiments import Result, SweepResult

ACT = "transformer.h.11.mlp.source.self_act_0"
SWEEP = ["sweep", "demo:atlas", "--base", demo.EIFFEL, "--metric", "logit_diff", " Berlin", " Paris"]
PATCH = [*SWEEP, "--site", "transformer.h.*", "--step", "patch", "--source", demo.BRANDENBURG]
ZERO = {"kind": "zero", "site": ACT}


@pytest.fixture(scope="module")
def plain():
    """The embedded model as transformers gives it, and the logits of its last position for a prompt."""
    model, tokenizer = load_plain()

    @torch.no_grad()
    def logits(text):
        return model(**tokenizer(text, return_tensors="pt")).logits[0, -1]

    return model, tokenizer, logits


@pytest.fixture
def recipe(tmp_path):
    def write(**fields):
        path = tmp_path / "recipe.json"
        path.write_text(json.dumps({"version": 1, "model": "atlas", "base": demo.EIFFEL, "steps": [ZERO]} | fields))
        return str(path)

    return write


def refused(capsys, *arguments):
    """The one line that a command is refused with."""
    status = main([*arguments])
    out, err = capsys.readouterr()
    assert status == 1
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("nnsight-lab: ")
    return err.removeprefix("nnsight-lab: ").strip()


def test_source_prints_the_listing(capsys):
    assert main(["source", "atlas", "transformer.h.0.mlp"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].lstrip().startswith("* def forward(self, hidden_states")
    assert " self_act_0     ->  1     hidden_states = self.act(hidden_states)" in rows


def test_source_of_one_operation_and_of_everything(capsys):
    assert main(["source", "demo:atlas", "transformer.h.0.mlp", "--operation", "self_act_0"]) == 0
    marked = [line for line in capsys.readouterr().out.splitlines() if line.startswith("-->")]
    assert [line.split() for line in marked] == [["-->", "1", "hidden_states", "=", "self.act(hidden_states)", "<--"]]
    assert main(["source", "demo:atlas", "transformer.h.0.mlp", "--everything"]) == 0
    assert "return_0" in capsys.readouterr().out


def test_source_as_json(capsys):
    assert main(["source", "atlas", "transformer.h.0.mlp", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [operation["label"] for operation in data["operations"]] == [
        "self_c_fc_0",
        "self_act_0",
        "self_c_proj_0",
        "self_dropout_0",
    ]
    assert data["rows"][2].strip() == "hidden_states = self.act(hidden_states)"
    assert main(["source", "atlas", "transformer.h.0.mlp", "--json", "--operation", "self_act_0"]) == 0
    assert [operation["line"] for operation in json.loads(capsys.readouterr().out)["operations"]] == [1]


def test_source_steps_into_an_operation_after_a_run(capsys):
    inner = "transformer.h.0.attn.source.attention_interface_0"
    assert "give --prompt TEXT" in refused(capsys, "source", "atlas", inner)
    assert main(["source", "atlas", inner, "--prompt", demo.EIFFEL]) == 0
    assert "torch_nn_functional_scaled_dot_product_attention_0" in capsys.readouterr().out


def test_source_of_a_folder(capsys, tmp_path, plain):
    plain[0].save_pretrained(tmp_path)
    plain[1].save_pretrained(tmp_path)
    assert main(["source", str(tmp_path), "transformer.h.0.mlp"]) == 0
    assert "self_act_0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["atlas", "transformer.h.0.mpl"], "no submodule 'mpl'. Did you mean 'mlp'?"),
        (["atlas", "transformer.h.0.mlp", "--operation", "self_act"], "Did you mean 'self_act_0'"),
        (["atlas", "transformer.h.0.mlp.source"], "is not a site"),
        (["atlas", "transformer.h.0.mlp.source.self_act_0"], "model.transformer.h[0].mlp.act.source"),
        (["demo:globe", "lm_head"], "there is no demo model 'globe'; there are atlas, smollm2"),
        (["somebody/no-such-model", "lm_head"], "Hugging Face hub cannot be reached"),
    ],
)
def test_source_refuses_in_one_line(capsys, arguments, message):
    assert message in refused(capsys, "source", *arguments)


def test_run_prints_the_table(capsys, recipe, plain):
    assert main(["run", recipe()]) == 0
    out = capsys.readouterr().out
    assert f"zero {ACT} float32[1, 8, 384]: changed" in out
    logits = plain[2](demo.EIFFEL)
    assert any(f"{logits.max():.3f}" in line.split() for line in out.splitlines() if line.startswith("' Paris'"))


def test_run_as_json_holds_the_numbers_of_plain_hooks(capsys, recipe, plain):
    model, tokenizer, logits = plain
    clean = logits(demo.EIFFEL)
    hook = model.transformer.h[11].mlp.act.register_forward_hook(lambda module, args, out: torch.zeros_like(out))
    edited = logits(demo.EIFFEL)
    hook.remove()
    assert main(["run", recipe(metric={"kind": "logit_diff", "correct": " London", "wrong": " Paris"}), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    london, paris = (tokenizer.encode(city)[0] for city in (" London", " Paris"))
    assert data["metric"]["clean"] == pytest.approx(float(clean[london] - clean[paris]), abs=1e-3)
    assert data["metric"]["edited"] == pytest.approx(float(edited[london] - edited[paris]), abs=1e-3)
    assert {row["token_id"]: row["edited_logit"] for row in data["rows"]}[london] == pytest.approx(
        float(edited[london]), abs=1e-3
    )


def test_run_saves_a_result_that_can_be_loaded(capsys, recipe, tmp_path, plain):
    assert main(["run", recipe(), "--save", str(tmp_path / "kept")]) == 0
    assert "saved to" in capsys.readouterr().err
    kept = Result.load(tmp_path / "kept")
    assert torch.allclose(kept.clean_logits[0], plain[2](demo.EIFFEL), atol=1e-4)


def test_run_reads_standard_input_and_takes_another_model(capsys, monkeypatch, recipe):
    text = Path(recipe(model=None)).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert main(["run", "-", "--model", "demo:atlas"]) == 0
    assert "' Paris'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"steps": [{"kind": "zer", "site": ACT}]}, "steps[0].kind: Invalid value 'zer'; there are: add, capture"),
        ({"steps": [ZERO | {"position": [1]}]}, "steps[0]: "),
        ({"steps": [ZERO | {"site": "transformer.h.11.mpl"}]}, "Did you mean 'mlp'?"),
        ({"steps": [ZERO | {"site": "transformer.h.11.mlp.source.self_act_9"}]}, "self_act_0"),
        ({"steps": [ZERO | {"positions": [99]}]}, "there is no position 99"),
        ({"model": None}, "names no model: give --model"),
        ({"model": "demo:globe"}, "no demo model 'globe'"),
        ({"base": None}, "base: there is nothing to run"),
    ],
)
def test_run_refuses_in_one_line(capsys, recipe, fields, message):
    assert message in refused(capsys, "run", recipe(**fields))


def test_run_refuses_files_that_are_no_recipe(capsys, tmp_path):
    assert "recipe.json: No such file or directory" in refused(capsys, "run", str(tmp_path / "recipe.json"))
    broken = tmp_path / "broken.json"
    broken.write_text('{"steps": [')
    assert "broken.json: This is not JSON" in refused(capsys, "run", str(broken))
    assert "Is a directory" in refused(capsys, "run", str(tmp_path))


def test_sweep_prints_a_grid(capsys):
    assert main([*PATCH, "--positions", "2", "-1"]) == 0
    out = capsys.readouterr().out
    header, *rows = out.rstrip().split("\n")[-13:]
    assert header.split() == ["2", "␣Tower", "7", "␣of"]
    assert [row.split()[0] for row in rows] == [f"transformer.h.{layer}" for layer in range(12)]


def test_sweep_as_json_holds_the_numbers_of_plain_hooks(capsys, plain):
    model, tokenizer, logits = plain
    berlin, paris = (tokenizer.encode(city)[0] for city in (" Berlin", " Paris"))
    assert main([*PATCH, "--site", "transformer.h.3.mlp", "--positions", " Tower", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [axis["name"] for axis in data["axes"]] == ["site", "position"]
    assert data["axes"][0]["labels"] == [*(f"transformer.h.{n}" for n in range(12)), "transformer.h.3.mlp"]
    assert data["complete"] is True
    for row, module in ((4, model.transformer.h[4]), (12, model.transformer.h[3].mlp)):
        kept = []
        hook = module.register_forward_hook(lambda module, args, out, kept=kept: kept.append(out))
        logits(demo.BRANDENBURG)
        hook.remove()

        def patch(module, args, out, kept=kept):
            out = out.clone()
            out[:, 2] = kept[0][:, 2]
            return out

        hook = module.register_forward_hook(patch)
        expected = logits(demo.EIFFEL)
        hook.remove()
        assert data["values"][row][0] == pytest.approx(float(expected[berlin] - expected[paris]), abs=1e-3)


@pytest.mark.parametrize(("step", "factor"), [("zero", 0.0), ("scale", 0.5)])
def test_sweep_over_heads(capsys, plain, step, factor):
    model, _, logits = plain
    site = "transformer.h.6.attn.c_proj"
    options = ["--factor", "0.5"] if step == "scale" else []
    command = ["sweep", "atlas", "--base", demo.EIFFEL, "--metric", "kl", "--site", site, "--io", "input", "--json"]
    assert main([*command, "--step", step, *options, "--positions", "none", "--heads", "0", "5"]) == 0
    data = json.loads(capsys.readouterr().out)
    clean = logits(demo.EIFFEL).double().log_softmax(-1)
    for column, head in enumerate((0, 5)):

        def edit(module, args, head=head):
            value = args[0].clone()
            value[..., 8 * head : 8 * head + 8] *= factor  # 12 heads, 8 wide
            return (value,)

        hook = model.transformer.h[6].attn.c_proj.register_forward_pre_hook(edit)
        edited = logits(demo.EIFFEL).double().log_softmax(-1)
        hook.remove()
        expected = float((clean.exp() * (clean - edited)).sum())
        assert data["values"][0][column] == pytest.approx(expected, abs=1e-4)


def test_sweep_saves_and_reads_again(capsys, tmp_path):
    command = ["sweep", "atlas", "--base", demo.EIFFEL, "--metric", "rank", " Paris", "--step", "mean"]
    assert (
        main([*command, "--site", "transformer.h.*.mlp", "--positions", "none", "--save", str(tmp_path / "kept")]) == 0
    )
    assert SweepResult.load(tmp_path / "kept").shape == (12,)
    assert "value" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*SWEEP, "--site", "transformer.h.*", "--step", "patch"], "--source: --step patch takes"),
        ([*SWEEP, "--site", "transformer.h.*", "--step", "scale"], "--factor: --step scale needs"),
        (
            [*SWEEP, "--site", "transformer.h.*", "--step", "scale", "--factor", "nan"],
            "--factor: factor must be a finite",
        ),
        ([*SWEEP, "--site", "transformer.h.*", "--step", "zero", "--factor", "2"], "--factor belongs to --step scale"),
        ([*SWEEP, "--site", "transformer.g.*", "--step", "zero"], "has no submodule 'g'"),
        ([*SWEEP, "--site", "transformer.h.0.mlp.source.self_acts_*", "--step", "zero"], "self_act_0"),
        ([*PATCH, "--positions", "99"], "there is no position 99"),
        ([*PATCH, "--positions", " Bridge"], "the prompt has no token ' Bridge'"),
        ([*PATCH, "--memory", "-1"], "--memory: a positive number"),
        ([*PATCH, "--metric", "loss"], "there is no metric 'loss'; there are logit_diff, probability, rank, kl"),
        ([*PATCH, "--metric", "kl", " Paris"], "--metric kl takes 0 tokens, not 1"),
        ([*PATCH, "--metric", "rank", " Atlantis and"], "but an answer is one token"),
    ],
)
def test_sweep_refuses_in_one_line(capsys, arguments, message):
    assert message in refused(capsys, *arguments)


def test_ctrl_c_keeps_the_cells_that_are_done(capsys, monkeypatch, tmp_path):
    from nnsight_lab.experiments import sweeping

    real, forwards = sweeping.run_rows, []

    def interrupted(*arguments, **options):
        if forwards:
            raise KeyboardInterrupt
        forwards.append(1)
        return real(*arguments, **options)

    monkeypatch.setattr(sweeping, "run_rows", interrupted)
    assert main([*PATCH, "--json", "--save", str(tmp_path / "kept"), "--memory", "0.001"]) == 130
    out, err = capsys.readouterr()
    data = json.loads(out)
    done = sum(map(sum, data["done"]))
    assert 0 < done < 96
    assert data["complete"] is False
    assert f"interrupted, {done} of 96 cells done" in err
    kept = SweepResult.load(tmp_path / "kept")
    assert int(kept.done.sum()) == done


def test_ctrl_c_elsewhere_ends_with_130(capsys, monkeypatch):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr("nnsight_lab.cli.source.load", interrupted)
    assert main(["source", "atlas", "lm_head"]) == 130
    assert capsys.readouterr().err == "nnsight-lab: interrupted\n"


def test_a_mistyped_command_ends_with_2(capsys):
    for arguments in ([], ["sauce"], ["source", "atlas"], [*PATCH, "--step", "add"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
        assert "usage: nnsight-lab" in capsys.readouterr().err


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "nnsight_lab.cli", *arguments], capture_output=True, text=True, check=False, **options
    )


def test_as_a_process():
    version = command("--version")
    assert (version.returncode, version.stdout) == (0, f"nnsight-lab {nnsight_lab.__version__}\n")
    listed = command("source", "atlas", "transformer.h.0.mlp", "--json")
    assert listed.returncode == 0
    assert json.loads(listed.stdout)["name"] == "GPT2MLP.forward"
    wrong = command("source", "atlas", "transformer.h.0.mpl")
    assert wrong.returncode == 1
    assert wrong.stdout == ""
    assert "Traceback" not in wrong.stderr
    assert wrong.stderr.splitlines()[-1].startswith("nnsight-lab: PATH: ")


def test_help_and_version_load_no_model_library():
    script = (
        "import sys\nfrom nnsight_lab.cli import main\ntry:\n    main(['--version'])\nexcept SystemExit:\n    pass\n"
        "print('transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[-2] == "False"


@pytest.mark.parametrize("part", ["mlp", "attn"], ids=["less than a buffer", "more than a buffer"])
def test_a_reader_that_goes_away_is_no_error(part):
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "nnsight_lab.cli", "source", "atlas", f"transformer.h.0.{part}"],
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(write)
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_a_signal_while_a_process_sweeps(tmp_path):
    script = (
        "import os, signal, sys\nfrom nnsight_lab.experiments import sweeping\nfrom nnsight_lab.cli import main\n"
        # A process that is started in the background may have inherited a SIGINT that is ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "real, forwards = sweeping.run_rows, []\n"
        "def slow(*arguments, **options):\n"
        "    if forwards:\n        os.kill(os.getpid(), signal.SIGINT)\n"
        "    forwards.append(1)\n    return real(*arguments, **options)\n"
        "sweeping.run_rows = slow\nsys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *PATCH, "--memory", "0.001", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    data = json.loads(done.stdout)
    assert 0 < sum(map(sum, data["done"])) < 96


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_a_folder_that_holds_something_is_refused_before_the_work(capsys, monkeypatch, recipe, tmp_path, command):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "mine.txt").write_text("mine")
    words = ["run", recipe()] if command == "run" else [*SWEEP, "--site", "transformer.h.*", "--step", "zero"]
    words += ["--save", str(tmp_path / "kept")]
    with monkeypatch.context() as patch:
        patch.setattr(f"nnsight_lab.cli.{command}.load", lambda name: pytest.fail("the model was loaded"))
        assert "holds something already" in refused(capsys, *words)
    assert main([*words, "--overwrite"]) == 0
    assert (tmp_path / "kept" / "mine.txt").read_text() == "mine"
