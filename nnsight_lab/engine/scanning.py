"""A forward on fake tensors: every shape, dtype and device, no computation, no weights.

`FakeForward` runs a module under torch's `FakeTensorMode`. For as long as it runs, parameters, buffers and other
tensors on the modules are replaced by fake ones of the same shape; those of a model without weights (on the meta
device) stand on the CPU, where the weights would be loaded. Afterwards each module's attributes are put back as they
were, whatever the forward assigned to them.

Where a forward asks for a tensor's values, torch stops with an error of its own; it becomes a `ScanError` that names
the line.
"""

from __future__ import annotations

import copy
import linecache
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, TracebackType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from .errors import ScanError
from .trace import Tracer

_OWN = str(Path(__file__).parent)
_TORCH = str(Path(torch.__file__).parent)
# Attributes that a trace sets and takes away by itself.
_ENGINES = frozenset({"_compiled_call_impl", "forward", "_old_forward"})
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type, FunctionType, nn.Module, torch.dtype, torch.device)


class FakeForward:
    """A call of `module` on fake tensors.

    Args:
        module: the model.
        args, kwargs: the call's real arguments. Tensors among them stand for their shapes; other objects are copied.
    """

    def __init__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._module = module
        self._arguments = args, kwargs

    def __call__(self) -> Any:
        from torch._subclasses.fake_tensor import FakeTensorMode

        mode = FakeTensorMode(allow_non_fake_inputs=True)
        fake = _faker(mode)
        args, kwargs = pytree.tree_map(
            lambda leaf: fake(leaf) if isinstance(leaf, Tensor) else _copied(leaf), self._arguments
        )
        try:
            with _faked(self._module, fake), mode:
                return self._module(*args, **kwargs)
        except Exception as error:
            reason = _reason(error)
            if reason is None:
                raise
            raise ScanError(f"{_place(error.__traceback__)} {reason} {_CURE}") from error


class ScanTracer(Tracer):
    """The handle of `model.scan(...)`: a trace in which sites hold fake tensors."""

    __slots__ = ()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        swallowed = super().__exit__(kind, error, traceback)
        reason = None if swallowed or error is None else _reason(error)
        if reason is not None:
            raise ScanError(f"{_place(traceback)} {reason} {_CURE}") from error
        return swallowed


_CURE = "A scan has shapes only: use model.trace(...), without scan=True, which computes."


def _copied(leaf: Any) -> Any:
    """An argument that the forward may change without anybody noticing (a cache of keys and values is one)."""
    return leaf if isinstance(leaf, _PLAIN) else copy.deepcopy(leaf)


def _faker(mode: Any) -> Callable[[Tensor], Tensor]:
    """What makes fake tensors of real ones: the same one of the same one, so that tied weights stay tied."""
    known: dict[int, Tensor] = {}

    def fake(tensor: Tensor) -> Tensor:
        found = known.get(id(tensor))
        if found is None:
            found = known[id(tensor)] = _on_cpu(tensor, mode) if tensor.is_meta else mode.from_tensor(tensor)
        return found

    return fake


def _on_cpu(tensor: Tensor, mode: Any) -> Tensor:
    with mode:
        found = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(found, requires_grad=tensor.requires_grad)
    return found.requires_grad_(tensor.requires_grad)


@contextmanager
def _faked(root: nn.Module, fake: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """The tree under `root` with fake tensors; at the end with the attributes it had before."""
    before = [
        (module, dict(module.__dict__), dict(module._parameters), dict(module._buffers)) for module in root.modules()
    ]
    try:
        for module, own, parameters, buffers in before:
            _replace(module.__dict__, own, fake)
            _replace(module._parameters, parameters, fake)
            _replace(module._buffers, buffers, fake)
        yield
    finally:
        for module, own, parameters, buffers in before:
            present = module.__dict__
            for name in present.keys() - own.keys() - _ENGINES:
                del present[name]
            present.update({name: value for name, value in own.items() if name not in _ENGINES})
            _put_back(module._parameters, parameters)
            _put_back(module._buffers, buffers)


def _replace(names: dict[str, Any], kept: Mapping[str, Any], fake: Callable[[Tensor], Tensor]) -> None:
    names.update({name: fake(value) for name, value in kept.items() if isinstance(value, Tensor)})


def _put_back(names: dict[str, Any], kept: Mapping[str, Any]) -> None:
    names.clear()  # their order is that of the state dict
    names.update(kept)


def _reason(error: BaseException) -> str | None:
    """Why a forward on fake tensors could not go on; None for an error that real tensors would give as well."""
    from torch._subclasses import fake_tensor

    if isinstance(error, fake_tensor.DataDependentOutputException):
        return f"asks for the value of a tensor ({error.func})."
    if isinstance(error, fake_tensor.DynamicOutputShapeException):
        return f"makes a tensor whose shape depends on the values of another ({error.func})."
    if isinstance(error, (fake_tensor.UnsupportedFakeTensorException, fake_tensor.UnsupportedOperatorException)):
        return f"does something that torch has no shapes for ({str(error).splitlines()[0] if str(error) else error!r})."
    if isinstance(error, RuntimeError) and "not supported for tensor subclasses" in str(error):
        return "asks for a tensor's values as an array (.numpy())."
    return None


def _place(frames: TracebackType | None) -> str:
    """The innermost line that is neither torch's nor the engine's."""
    for frame, number in reversed(list(traceback.walk_tb(frames))):
        code = frame.f_code
        if not code.co_filename.startswith((_OWN, _TORCH)):
            line = linecache.getline(code.co_filename, number, frame.f_globals).strip()
            return f"{code.co_filename}, line {number}, in {code.co_name}: `{line}`"
    return "The forward"
