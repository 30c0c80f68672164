"""Errors deep in a kernel, for which torch walks the C stack, must not take the process down.

Each runs in an interpreter of its own, so that a crash is seen as its exit code.
"""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys
import torch
from torch import nn
from nnsight_lab import NNsight

class Fails(nn.Module):
    def forward(self, x):
        y = torch.relu(x)
        return y.view(7)

class Works(nn.Module):
    def forward(self, x):
        return torch.relu(x)

failing, working = NNsight(Fails()), NNsight(Works())

def deeper(levels, call):
    # through C and back at every level, so that the C stack of the body grows too
    return call() if levels == 0 else max([levels], key=lambda level: deeper(level - 1, call) or 0)

def one():
    with working.trace(torch.ones(3)):
        working.output
    try:
        with failing.trace(torch.ones(3)):
            failing.input
            deeper(3, lambda: None)
            failing.output
    except RuntimeError as error:
        assert "shape '[7]' is invalid" in str(error)
    else:
        raise AssertionError("the kernel did not fail")

for levels in [*range(0, 30), *range(30, 0, -1)]:
    deeper(levels, one)
print("survived")
"""


@pytest.mark.parametrize("show", ["0", "1"])
def test_kernel_errors_at_any_depth_of_the_stack(show):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        env={**os.environ, "TORCH_SHOW_CPP_STACKTRACES": show, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "survived"
