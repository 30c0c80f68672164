"""Results with numbers written by hand, so that what a figure holds can be told without running a model."""

from __future__ import annotations

import numpy as np
import torch

from nnsight_lab.experiments import (
    AttributionResult,
    LensResult,
    LogitDiff,
    Patch,
    Recipe,
    Result,
    Sweep,
    SweepResult,
    TokenRow,
)
from nnsight_lab.experiments.grid import Axis
from nnsight_lab.experiments.plan import Plan

NAN, INF = float("nan"), float("inf")
TOKENS = ("The", " Eiffel", "\n", "<s>", "$x$")
SHOWN = ["0 The", "1 ␣Eiffel", "2 \\n", "3 &lt;s&gt;", "4 &#36;x&#36;"]


def marks(figure) -> list[list[str]]:
    """What is marked in each cell of a figure with one grid, by the layers over the numbers."""
    names = np.full(np.shape(figure.data[0].z), "", dtype=object)
    for layer in figure.data[1:]:
        names[np.array(layer.z) == 1] = layer.name
    return names.tolist()


def row(token: str, clean: float, edited: float, ranks: tuple[int, int] = (0, 1)) -> TokenRow:
    return TokenRow(7, token, clean, edited, 0.5, 0.25, *ranks)


def result(rows=(), activations=None, clean_activations=None, tokens=TOKENS) -> Result:
    return Result(
        recipe=Recipe(base="x"),
        tokens=tokens,
        source_tokens=(),
        clean_logits=torch.zeros(1, 3),
        edited_logits=torch.zeros(1, 3),
        rows=tuple(rows),
        kl=0.0,
        metric=None,
        sites=(),
        plan=Plan(),
        activations=activations or {},
        clean_activations=clean_activations or {},
    )


def axis(name: str, labels) -> Axis:
    return Axis(name, tuple(labels), tuple(labels))


SITES = axis("site", ("model.layers.0.mlp", "model.layers.1.mlp", "model.layers.2.mlp"))
POSITIONS = axis("position", ("0 The", "1  Eiffel"))


def sweep_result(values, done=None, axes=(SITES, POSITIONS), baseline=1.0, source_value=5.0) -> SweepResult:
    values = torch.tensor(values, dtype=torch.float64)
    return SweepResult(
        sweep=Sweep(step=Patch("model.layers.*.mlp"), base="a", source="b", metric=LogitDiff(" Paris", " Berlin")),
        axes=axes,
        tokens=("The", " Eiffel"),
        source_tokens=("The", " Gate"),
        values=values,
        done=torch.ones(values.shape, dtype=torch.bool) if done is None else torch.tensor(done),
        logits=torch.zeros(*values.shape, 0),
        baseline=baseline,
        baseline_logits=torch.zeros(0),
        source_value=source_value,
    )


def attribution_result(estimates, exact: SweepResult | None) -> AttributionResult:
    known = exact if exact is not None else sweep_result([[0.0, 0.0]] * 3)
    return AttributionResult(
        sweep=known.sweep,
        axes=known.axes,
        estimates=torch.tensor(estimates, dtype=torch.float64),
        baseline=1.0,
        exact=exact,
        seconds=0.1,
    )


def lens_result(**grids) -> LensResult:
    known = {"probability": torch.tensor([[0.25, 0.5], [0.75, 1.0]]), "kl": torch.tensor([[3.0, 2.0], [1.0, 0.0]])}
    known |= {"logit": None, "rank": None, "token": None, "token_id": None} | grids
    return LensResult(
        sites=("embedding", "model.layers.0"),
        tokens=("The", " Eiffel"),
        top=torch.tensor([[1, 2], [3, 4]]),
        top_tokens=((" Paris", "<b>"), (" in", " Constantinople")),
        final_logits=torch.zeros(2, 5),
        **known,
    )
