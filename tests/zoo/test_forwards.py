"""Every architecture of the zoo, observed: the same outputs, the right values, the right errors.

Reference values come from `PlainLog`, which watches the plain forward without the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import nnsight_lab as nl
from nnsight_lab.engine import OperationSite, Source
from nnsight_lab.engine.functions import innermost
from nnsight_lab.engine.openruns import current_run
from nnsight_lab.engine.points import LEAVE

from . import ARCHITECTURES, Architecture, bit_identical, build
from .plain_log import Digest, PlainLog, digest

Read = tuple[OperationSite, Digest | None]


def run_plain(module: torch.nn.Module, inputs: dict[str, Any]) -> Any:
    torch.manual_seed(0)
    with torch.no_grad():
        return module(**inputs)


def sources(model: nl.NNsight, everything: bool = False) -> list[Source]:
    """The sources of all modules that have one."""
    found = []
    for _, envoy in model.named_modules():
        source = envoy.source(everything=everything)
        try:
            source.listing
        except nl.SourceUnavailableError:
            continue
        found.append(source)
    return found


def run_observed(model: nl.NNsight, inputs: dict[str, Any], listed: list[Source]) -> tuple[Any, list[Read]]:
    """The output with every operation of `listed` observed, and each operation's first value in the order met."""
    met: list[Read] = []

    points = []

    def note(site: OperationSite) -> Callable[[Any], Any]:
        def passed(value: Any) -> Any:
            met.append((site, digest(value)))
            return value

        return passed

    torch.manual_seed(0)
    with torch.no_grad(), model.trace(**inputs):
        run = current_run(model)
        for source in listed:
            for site in source:
                _, point, _ = site._locate("output")
                run.write(point, LEAVE, note(site))
                points.append(point)
        output = model.output
        for point in points:
            point.edits.clear()  # operations that this forward does not reach
    return output, met


def logged_code(site: OperationSite) -> Any:
    """The code object of the function that the operation stands in, as the plain forward runs it."""
    return site._source._function().__code__


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda a: a.name)
def test_observed_forward(architecture: Architecture) -> None:
    module, inputs = build(architecture)
    expected = run_plain(module, inputs)
    with PlainLog() as log:
        run_plain(module, inputs)
    model = nl.NNsight(module)
    listed = sources(model)
    assert listed, "no forward of this model can be listed"

    output, met = run_observed(model, inputs, listed)

    assert bit_identical(expected, output) == []
    wrong = [
        site._address
        for site, value in met
        if value is not None and value not in log.of(logged_code(site)) and not unknowable(site)
    ]
    assert wrong == [], "values that the plain forward did not compute there"
    read_in_order(model, inputs, met)
    report_untaken(model, inputs, listed, met)
    step_into_one(model, inputs, met, log)

    extended, _ = run_observed(model, inputs, sources(model, everything=True))
    assert bit_identical(expected, extended) == []
    assert bit_identical(expected, run_plain(module, inputs)) == [], "the model is not as it was"


def unknowable(site: OperationSite) -> bool:
    """Constructors return nothing that the profiler could see; empty tensors hold whatever was in memory."""
    return isinstance(site._static_callee(), type) or "empty" in site._label


def read_in_order(model: nl.NNsight, inputs: dict[str, Any], met: list[Read]) -> None:
    """Pause at every operation in turn; each gives the value that passed there before."""
    torch.manual_seed(0)
    with torch.no_grad(), model.trace(**inputs):
        for site in {site._source._address: site for site, _ in met}.values():
            site._source[site._label]  # named before its forward runs, so that it is observed
        for site, value in met:
            assert unknowable(site) or digest(site.output) == value, site._address


def report_untaken(model: nl.NNsight, inputs: dict[str, Any], listed: list[Source], met: list[Read]) -> None:
    """An operation of a forward that ran, but did not come by it, is reported as on a branch not taken."""
    reached = {site._address for site, _ in met}
    ran = {site._source._address for site, _ in met}
    untaken = [s for source in listed if source._address in ran for s in source if s._address not in reached]
    for site in untaken[:2]:
        torch.manual_seed(0)
        with (
            pytest.raises(nl.NotReachedError, match="on a branch this forward did not take"),
            torch.no_grad(),
            model.trace(**inputs),
        ):
            site.output


def step_into_one(model: nl.NNsight, inputs: dict[str, Any], met: list[Read], log: PlainLog) -> None:
    """Step into the first callee that has a source of its own; values inside it are those of the plain forward."""
    for site, _ in met:
        callee = site._static_callee()
        if callee is None or isinstance(callee, (torch.nn.Module, type)):
            continue
        try:
            function = innermost(callee)
            inner = site.source
            first = next(iter(inner), None)
        except nl.SourceUnavailableError:
            continue
        if first is None:
            continue
        torch.manual_seed(0)
        try:
            with torch.no_grad(), model.trace(**inputs):
                value = digest(first.output)
        except nl.NotReachedError as error:
            assert "on a branch" in str(error) or "no operation of" in str(error)  # noqa: PT017
            continue
        assert value is None or value in log.of(function.__code__)
        return
