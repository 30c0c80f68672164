"""Gradients inside a trace: plain torch, with two additions to `torch.Tensor`.

`backward` called by a trace's body runs at once, as ever. Around it the tensors that the body has read from sites are
watched by hooks of that one pass, and get their gradient as `.grad`, as if they retained it; and the call returns a
context, so that `with loss.backward():` is accepted. `retain_grad` notes what it was called on, because a view of a
site's value (`block.output[0]`) looks as if it could have a gradient and lies beside the model's path: torch gives it
none, so the pass gives it its part of that value's, or warns where it cannot tell which part that is.

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

    __slots__ = ("_filled", "_given", "_read", "_retained")

    def __init__(self) -> None:
        self._read: dict[int, _Read] = {}
        self._retained: dict[int, ref[Tensor]] = {}
        self._given: list[_Given] = []
        self._filled: dict[int, Tensor] = {}  # what views beside the model's path were given in earlier passes

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
        for view in self._asked_views():
            if id(view) in self._filled:  # so that what torch gives in this pass can be told apart
                view.grad = None
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

    def fill_views(self, watch: _Watch) -> Iterator[tuple[Tensor, str]]:
        """Give views that were told to retain their gradient their part of that of the value they are a view of.

        Yields those for which that part is not known, with the value's address. Those that have a gradient of torch's
        own, because the loss depends on the view itself, keep it.
        """
        for view in self._asked_views():
            earlier = self._filled.pop(id(view), None)
            now = view.grad
            if now is None:
                source = next((entry for entry in watch.tensors if _made_from(view, entry[0])), None)
                if source is not None and watch.reached(source[0]):
                    now = _part(view, source[0], watch.gradient(source[0]))
                elif any(_origin(tensor) is view._base and watch.reached(tensor) for tensor, _ in watch.tensors):
                    source = next(entry for entry in watch.tensors if _origin(entry[0]) is view._base)
                if now is not None:
                    self._filled[id(view)] = now if earlier is None else earlier + now
                    view.grad = self._filled[id(view)]
                    continue
                if source is not None and watch.reached(source[0]):
                    yield view, source[1]
            if earlier is not None:
                self._filled[id(view)] = view.grad = earlier if now is None else earlier + now

    def _asked_views(self) -> list[Tensor]:
        asked = [tensor for entry in self._retained.values() if (tensor := entry()) is not None]
        return [tensor for tensor in asked if tensor._is_view()]

    def clear(self) -> None:
        self._read.clear()
        self._retained.clear()
        self._given.clear()
        self._filled.clear()


class _Watch:
    """The hooks of one backward pass. They see what is left when the body's own hooks have run."""

    def __init__(self, tensors: list[tuple[Tensor, str]]) -> None:
        self.tensors = tensors
        self._gradients: dict[int, Tensor] = {}
        self._handles: list[Any] = []
        try:
            for tensor, _ in tensors:
                self._handles.append(tensor.register_hook(functools.partial(self._see, id(tensor))))
        except BaseException:
            self.remove()
            raise

    def _see(self, key: int, gradient: Tensor) -> None:
        # A copy, as `retain_grad` makes it: the engine may give one tensor to several places.
        self._gradients[key] = gradient.clone()

    def reached(self, tensor: Tensor) -> bool:
        return id(tensor) in self._gradients

    def gradient(self, tensor: Tensor) -> Tensor:
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


def _made_from(view: Tensor, tensor: Tensor) -> bool:
    """Whether `view` was made from `tensor` by operations that give views."""
    if _origin(tensor) is not view._base:
        return False
    node = view.grad_fn
    while node is not None and node is not tensor.grad_fn:
        node = node.next_functions[0][0] if len(node.next_functions) == 1 else None
    return node is not None


def _part(view: Tensor, whole: Tensor, gradient: Tensor) -> Tensor | None:
    """The part of `whole`'s gradient that lies where `view` shows `whole`; None where memory does not tell."""
    first = view.storage_offset() - whole.storage_offset()
    reach = sum((size - 1) * stride for size, stride in zip(view.shape, view.stride(), strict=True))
    dense = sorted(zip(whole.stride(), whole.shape, strict=True))
    expected = 1
    for stride, size in dense:
        if size > 1:
            if stride != expected:
                return None
            expected *= size
    if view.dtype != whole.dtype or not view.numel() or first < 0 or first + reach >= whole.numel():
        return None
    laid = torch.empty_strided(whole.shape, whole.stride(), dtype=gradient.dtype, device=gradient.device)
    return laid.copy_(gradient).as_strided(view.shape, view.stride(), first).clone()


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
        for view, address in gradients.fill_views(watch):
            warnings.warn(
                f"A tensor {list(view.shape)} was told to retain its gradient and got none: it shares the memory of "
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
