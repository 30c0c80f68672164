"""The module tree as columns, and facts about a model."""

from __future__ import annotations

import numpy as np
from torch import nn

from ...engine import NNsight
from ...experiments.scope import HeadShape
from .. import wire
from ..loading import needs_loading


def module_columns(model: NNsight) -> tuple[tuple[str, ...], tuple[str, ...], np.ndarray]:
    """Names, kind names and the columns of `wire.Modules`, float64 `[5, modules]`, in preorder.

    A module that stands at two places of the tree is listed at both; below its second place nothing is listed again.
    """
    names: list[str] = []
    kinds: dict[str, int] = {}
    rows: list[list[int]] = []
    seen: dict[int, int] = {}
    structures: dict[tuple[object, ...], int] = {}
    owned: list[dict[int, int]] = []

    def visit(module: nn.Module, name: str, depth: int) -> tuple[dict[int, int], int]:
        """List a module; give its parameters by identity and its structure's number."""
        number = len(names)
        names.append(name)
        kind = kinds.setdefault(type(module).__name__, len(kinds))
        alias = seen.get(id(module), -1)
        row = [depth, kind, 0, alias, -1]
        rows.append(row)
        owned.append({})
        if alias >= 0:
            row[2], row[4] = rows[alias][2], rows[alias][4]
            return owned[alias], row[4]
        seen[id(module)] = number
        own = {id(p): p.numel() for p in module._parameters.values() if p is not None}
        shape: list[object] = [
            type(module),
            tuple(tuple(p.shape) for p in module._parameters.values() if p is not None),
        ]
        for child_name, child in module._modules.items():
            if child is not None:
                below, structure = visit(child, child_name, depth + 1)
                own.update(below)
                shape += [child_name, structure]
        row[2] = sum(own.values())
        row[4] = structures.setdefault(tuple(shape), len(structures))
        owned[number] = own
        return own, row[4]

    visit(model._model, "", 0)
    return tuple(names), tuple(kinds), np.array(rows, dtype=np.float64).T.copy()


def model_facts(model: NNsight) -> wire.ModelFacts:
    """Name, size and place of a model; the largest dtype's and device's share of parameters counts."""
    module = model._model
    sizes: dict[tuple[str, str], int] = {}
    total = 0
    for parameter in module.parameters():
        key = (str(parameter.dtype).removeprefix("torch."), str(parameter.device))
        sizes[key] = sizes.get(key, 0) + parameter.numel()
        total += parameter.numel()
    dtype, device = max(sizes, key=lambda key: sizes[key]) if sizes else ("", "")
    heads = HeadShape.of(getattr(module, "config", None))
    return wire.ModelFacts(
        name=name_of(model),
        kind=type(module).__name__,
        parameters=total,
        dtype=dtype,
        device="" if device == "meta" else device,
        loaded=not needs_loading(model),
        takes_text=getattr(model, "tokenizer", None) is not None,
        heads=heads.counts[0] if heads is not None else None,
        module_count=sum(1 for _ in module.modules()),
        layers=layers_pattern(module),
    )


def name_of(model: NNsight) -> str:
    """The checkpoint's name where the configuration tells it, else the wrapper's."""
    checkpoint = getattr(getattr(model._model, "config", None), "name_or_path", "") or ""
    return checkpoint.rstrip("/").rpartition("/")[2] or model._instruments.label


def layers_pattern(module: nn.Module) -> str:
    """`transformer.h.*` for the longest list of modules of one class; empty where there is none of two or more."""
    best, longest = "", 1
    for path, candidate in module.named_modules():
        alike = isinstance(candidate, nn.ModuleList) and len({type(child) for child in candidate}) == 1
        if alike and len(candidate) > longest:
            best, longest = f"{path}.*" if path else "*", len(candidate)
    return best
