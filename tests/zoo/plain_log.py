"""What a plain forward computes, recorded without the engine.

While a model runs as it is, every result of a torch function or tensor method and every return of a Python function is
noted under the code object of the function that called it, as a hash of its bytes at that moment. It is the reference
against which values read at operations are checked.
"""

from __future__ import annotations

import hashlib
import sys
from collections import defaultdict
from types import CodeType, FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

Digest = tuple[tuple[int, ...], torch.dtype, bytes]


def digest(value: Any) -> Digest | None:
    """Shape, dtype and a hash of the bytes of a tensor that holds data; None for anything else."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or value.device.type == "meta":
        return None
    if torch._C._functorch.is_functorch_wrapped_tensor(value):
        return None
    with torch._C.DisableTorchFunction():
        plain = value.detach().resolve_conj().resolve_neg()
        flat = torch.empty(plain.shape, dtype=plain.dtype).copy_(plain).reshape(-1)
        data = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return tuple(value.shape), value.dtype, hashlib.blake2b(data, digest_size=12).digest()


class PlainLog(TorchFunctionMode):
    """Digests of tensors by the code object of the function in which they came about."""

    def __init__(self) -> None:
        super().__init__()
        self.by_code: defaultdict[CodeType, set[Digest]] = defaultdict(set)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        value = func(*args, **(kwargs or {}))
        self._note(sys._getframe(1).f_code, value)
        return value

    def __enter__(self) -> PlainLog:
        super().__enter__()
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *error: Any) -> None:
        sys.setprofile(None)
        super().__exit__(*error)

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "return" and frame.f_back is not None and argument is not None:
            self._note(frame.f_back.f_code, argument)

    def of(self, code: CodeType) -> set[Digest]:
        """What came about in a function, its comprehensions, lambdas and nested functions included."""
        found = set(self.by_code[code])
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                found |= self.of(constant)
        return found

    def _note(self, code: CodeType, value: Any) -> None:
        for part in value if isinstance(value, (tuple, list)) else (value,):
            found = digest(part)
            if found is not None:
                self.by_code[code].add(found)
