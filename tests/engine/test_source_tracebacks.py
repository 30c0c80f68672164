"""Errors raised by rewritten code show the original file, line and columns."""

import linecache
import sys
import traceback

import pytest
import torch
from torch import nn

from nnsight_lab import NNsight
from tests.engine.source_tools import define, observed

X = torch.ones(2, 3)


def keep(function):
    return function


class Fails(nn.Module):
    @keep
    @torch.no_grad()
    def forward(self, x):
        """A text
        of two lines."""
        y = torch.relu(x)

        return (
            helper(
                y,
            )
            + y.view(7).sum()
        )


def helper(x):
    return torch.abs(x)


def frames_of(error, filename=__file__):
    """Function, line text and the text between the caret columns, of the frames in `filename`."""
    return [
        (frame.name, frame.line, linecache.getline(filename, frame.lineno)[frame.colno : frame.end_colno].strip())
        for frame in traceback.TracebackException.from_exception(error).stack
        if frame.filename == filename
    ]


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("site", ["torch_relu_0", "y_view_0"])
def test_a_failing_operation_shows_its_line_and_columns(site, everything):
    model = NNsight(Fails())
    with pytest.raises(RuntimeError, match="invalid for input of size 6") as caught, model.trace(X):
        getattr(model.source(everything=everything), site).output
        model.source.torch_relu_0
    *_, last = frames_of(caught.value)
    assert last[:2] == ("forward", "+ y.view(7).sum()")
    assert last[2] == "y.view(7)"


def test_the_same_frames_as_the_plain_forward_s():
    with pytest.raises(RuntimeError) as plain:
        Fails()(X)
    model = NNsight(Fails())
    with pytest.raises(RuntimeError) as traced, model.trace(X):
        model.source.torch_relu_0.output
    wanted = [frame for frame in frames_of(plain.value) if frame[0] == "forward"]
    assert [frame for frame in frames_of(traced.value) if frame[0] == "forward"] == wanted
    assert len(wanted) == 1


def test_a_failing_callee_shows_both_lines():
    class Calls(nn.Module):
        def forward(self, x):
            return broken(torch.abs(x))

    model = NNsight(Calls())
    with pytest.raises(RuntimeError) as caught, model.trace(X):
        model.source.broken_0.source.torch_neg_0.output
    names = [frame[0] for frame in frames_of(caught.value)]
    assert names[-2:] == ["forward", "broken"]
    assert frames_of(caught.value)[-1][1:] == ("return torch.neg(x).view(5)", "torch.neg(x).view(5)")


def broken(x):
    return torch.neg(x).view(5)


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize(
    ("statement", "columns"),
    [
        ("y = x[0].sum()", "x[0]"),
        ("y = [fail(v) for v in (1, 2)]", "fail(v)"),
        ("y = f'{fail(x)}'", "fail(x)" if sys.version_info >= (3, 12) else None),
        ("x.missing += fail(1)", None),
        ("y, z = fail(1), 2", "fail(1)"),
        ("y = 1 + fail(1)", "fail(1)"),
        ("y = 'a' + len('a')", "'a' + len('a')"),
        ("return (lambda v: fail(v))(2)", "fail(v)"),
        ("assert len(()), 'no'", None),
        ("del x[0], y", None),
        ("raise KeyError(str(1))", None),
    ],
)
def test_positions_are_those_of_the_original(statement, columns, everything):
    def fail(value):
        raise ValueError(value)

    source = f"\n\n@keep\n@keep\ndef forward(x):\n    len('')\n    {statement}\n    return len('')"
    function = define(source, keep=keep, fail=fail)
    filename = function.__code__.co_filename
    with pytest.raises(Exception) as plain:
        function(3)
    with pytest.raises(type(plain.value)) as twin:
        observed(function, everything)[0](3)
    shown = frames_of(twin.value, filename)
    assert [frame[:2] for frame in shown] == [frame[:2] for frame in frames_of(plain.value, filename)]
    assert shown[0][1] == statement
    if columns is not None:
        assert shown[-1][2] == columns


def test_the_first_line_is_the_first_decorator_s():
    twin, _ = observed(helper)
    assert twin.__code__.co_firstlineno == helper.__code__.co_firstlineno
    decorated = Fails.forward.__wrapped__
    assert observed(decorated)[0].__code__.co_firstlineno == decorated.__code__.co_firstlineno
    lines = {line for _, _, line in observed(decorated)[0].__code__.co_lines() if line}
    assert lines <= {line for _, _, line in decorated.__code__.co_lines() if line}
