"""Gradients inside a trace: plain torch, with two additions to `torch.Tensor`.

`backward` called by a trace's body runs at once, as ever. Around it the tensors that the body has read from sites are
watched by hooks of that one pass, and get their gradient as `.grad`, as if they retained it; and the call returns a
context, so that `with loss.backward():` is accepted. `retain_grad` notes what it was called on, because a view of a
site's value (`block.output[0]`) looks as if it could have a gradient and lies beside the model's path: the pass warns
of one that stayed without.

Both are set when the engine is imported and cost one look at a context variable outside traces, where they are torch's
own. A run refers to what was read weakly, keeps no graph alive, and forgets everything when it closes.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NamedTuple
from weakref import ref

import torch
from greenlet import getcurrent
from torch import Tensor

from .errors import GradientEditError
from .openruns import open_runs

_torch_backward = Tensor.backward
_torch_retain_grad = Tensor.retain_grad


_Read = tuple[ref[Tensor], str, str]  # a tensor that the body has read, and where: address and attribute


class _Given(NamedTuple):
    """A gradient that a pass left at a tensor that was read."""

    tensor: ref[Tensor]
    address: str
    gradient: ref[Tensor]
    version: int


class Gradients:
    """What one run knows about gradients: the tensors read, those asked to retain theirs, those that were given one."""

    __slots__ = ("_given", "_read", "_retained")

    def __init__(self) -> None:
        self._read: dict[int, _Read] = {}
        self._retained: dict[int, ref[Tensor]] = {}
        self._given: list[_Given] = []

    def note(self, value: Any, address: str, attribute: str) -> None:
        """Take notice of what a read returned: a tensor, or a container of some."""
        if isinstance(value, Tensor):
            if value.requires_grad:
                self._read[id(value)] = (ref(value), address, attribute)
        else:
            found: list[Tensor] = []
            _collect(value, found, 3)
            for tensor in found:
                self._read[id(tensor)] = (ref(tensor), address, attribute)

    def retained(self, tensor: Tensor) -> None:
        """Take notice of a `retain_grad()` of the body's."""
        self._retained[id(tensor)] = ref(tensor)

    def begin(self) -> _Watch:
        """Watch the tensors read so far during one backward pass."""
        for given in self._given:
            tensor = given.tensor()
            # `.grad` is the last pass's alone, unless it has been asked to retain it, which begins with none.
            if tensor is not None and (not tensor.retains_grad or tensor.grad is given.gradient()):
                tensor.grad = None
        self._given = []
        reads = [
            (tensor, f"{site}.{attribute}")
            for entry, site, attribute in self._read.values()
            if (tensor := entry()) is not None
        ]
        return _Watch([(tensor, address) for tensor, address in reads if tensor.requires_grad and not tensor.is_leaf])

    def end(self, watch: _Watch) -> list[_Given]:
        """Hand the watched pass's gradients out. Returns what the tensors read have now."""
        found: list[_Given] = []
        for tensor, address in watch.tensors:
            if not watch.reached(tensor):
                continue
            retains = tensor.retains_grad
            if not retains:
                tensor.grad = watch.gradient(tensor)
            gradient = tensor.grad
            if gradient is None:  # a hook of the body's has taken it away
                continue
            given = _Given(ref(tensor), address, ref(gradient), gradient._version)
            found.append(given)
            if not retains:
                self._given.append(given)
        return found

    def views_left_out(self, watch: _Watch) -> Iterator[tuple[Tensor, str]]:
        """Tensors that should retain a gradient and got none, being views of a value that did get one."""
        asked = [tensor for entry in self._retained.values() if (tensor := entry()) is not None]
        for view in asked:
            if view._is_view() and view.grad is None:
                for tensor, address in watch.tensors:
                    if _origin(tensor) is view._base and watch.reached(tensor):
                        yield view, address
                        break

    def clear(self) -> None:
        self._read.clear()
        self._retained.clear()
        self._given.clear()


class _Watch:
    """The hooks of one backward pass. They see what is left when the body's own hooks have run."""

    def __init__(self, tensors: list[tuple[Tensor, str]]) -> None:
        self.tensors = tensors
        self._gradients: dict[int, Tensor | None] = {}
        self._handles: list[Any] = []
        try:
            for tensor, _ in tensors:
                self._handles.append(
                    tensor.register_hook(functools.partial(self._see, id(tensor), tensor.retains_grad))
                )
        except BaseException:
            self.remove()
            raise

    def _see(self, key: int, retains: bool, gradient: Tensor) -> None:
        # A copy, as `retain_grad` makes it: the engine may give one tensor to several places.
        self._gradients[key] = None if retains else gradient.clone()

    def reached(self, tensor: Tensor) -> bool:
        return id(tensor) in self._gradients

    def gradient(self, tensor: Tensor) -> Tensor | None:
        return self._gradients[id(tensor)]

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()


class BackwardContext:
    """What `loss.backward()` returns inside a trace, for `with loss.backward():`. The pass has run already."""

    __slots__ = ("_given",)

    def __init__(self, given: list[_Given]) -> None:
        self._given = given

    def __enter__(self) -> BackwardContext:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            return
        for given in self._given:
            tensor = given.tensor()
            if tensor is None:
                continue
            gradient = given.gradient()
            if gradient is None or tensor.grad is not gradient or gradient._version != given.version:
                raise GradientEditError(
                    f"The .grad of {given.address} was changed inside `with loss.backward():`, where that changes "
                    "nothing upstream: the pass had run when the block began. To edit a gradient on its way, call "
                    ".register_hook(lambda gradient: ...) on the tensor before backward()."
                )


def _collect(value: Any, found: list[Tensor], depth: int) -> None:
    """Find the tensors that require gradients in a container, and in the containers in it down to `depth`."""
    if isinstance(value, (tuple, list)):
        parts: Any = value
    elif isinstance(value, dict):  # as the outputs of transformers are
        parts = value.values()
    elif hasattr(type(value), "__dataclass_fields__"):
        parts = [getattr(value, name, None) for name in type(value).__dataclass_fields__]
    else:
        return
    for part in parts:
        if isinstance(part, Tensor):
            if part.requires_grad:
                found.append(part)
        elif depth and part is not None and not isinstance(part, (bool, int, float, str)):
            _collect(part, found, depth - 1)


def _origin(tensor: Tensor) -> Tensor:
    """The tensor whose memory this one shows: itself, or the one that it is a view of."""
    base = tensor._base
    return tensor if base is None else base


def _called_by_a_body() -> bool:
    """Whether the calling code is a trace's, and not that of the traced model."""
    run = getattr(getcurrent(), "nnsight_run", None)
    return run is None or run.is_body


@functools.wraps(_torch_backward)
def _backward(self: Tensor, *args: Any, **keywords: Any) -> Any:
    runs = open_runs()
    if not runs or not _called_by_a_body():
        return _torch_backward(self, *args, **keywords)
    watches: list[tuple[Gradients, _Watch]] = []
    try:
        for run in runs:
            watches.append((run.gradients, run.gradients.begin()))
        _torch_backward(self, *args, **keywords)
    finally:
        for _, watch in watches:
            watch.remove()
    given: list[_Given] = []
    for gradients, watch in watches:
        given += gradients.end(watch)
        for view, address in gradients.views_left_out(watch):
            warnings.warn(
                f"A tensor {list(view.shape)} was told to retain its gradient and got none: it is a view made from "
                f"{address}, and the model goes on with that value itself. Call retain_grad() on {address} "
                "and index its .grad instead.",
                stacklevel=2,
            )
    return BackwardContext(given)


@functools.wraps(_torch_retain_grad)
def _retain_grad(self: Tensor) -> None:
    _torch_retain_grad(self)
    for run in open_runs():
        run.gradients.retained(self)


_backward.__doc__ = (
    (_torch_backward.__doc__ or "")
    + """
        Inside a trace of nnsight-lab, tensors that the block has read from sites get their gradient of this pass as
        ``.grad`` without ``retain_grad()`` (one copy of memory for each), and the call returns a context, so that
        ``with loss.backward():`` can be written; the pass has run when the call returns.
        """
)

if Tensor.backward is not _backward:
    torch.Tensor.backward = _backward  # type: ignore[method-assign]
    torch.Tensor.retain_grad = _retain_grad  # type: ignore[assignment,method-assign]
