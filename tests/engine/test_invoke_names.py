"""What names mean in a lifted block: the same as in the block left where it stands.

Each body is run twice as source from a file, in a function and at module level: under `tracer.invoke` and under a context
that does nothing. What it leaves in its names must be equal.
"""

from __future__ import annotations

import contextlib
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch

from nnsight_lab import NNsight

from .trace_toys import sample, toy

_BODIES = {
    "augmented assignment": "x = 1\nx += base\nitems[0] += 5",
    "unpacking": "a, (b, *c) = 1, (2, 3, 4)\n[d, e] = a, b",
    "walrus": "if (n := len(items)) > 1:\n    kept = n\nfound = [y for x in items if (y := x * 2)]",
    "loop with else": "for i in range(3):\n    if i == 1:\n        continue\n    last = i\nelse:\n    ended = True",
    "while with break": "n = 0\nwhile True:\n    n += 1\n    if n > 4:\n        break",
    "comprehensions": "s = {x % 2 for x in items}\nd = {x: base * x for x in items}\ng = sum(x + base for x in items)",
    "nested comprehension": "m = [[x * y * base for y in items if y != x] for x in items]",
    "lambda": "f = lambda x, k=base: x * k + base\nr = f(3)\ndel f",
    "function": "def f(x, *rest, k=base, **more):\n    y = x + k + base\n    return y + len(rest)\nr = f(1, 2)\ndel f",
    "recursion": "def fact(n):\n    return 1 if n < 2 else n * fact(n - 1)\nr = fact(5)\ndel fact",
    "class": "class P:\n    size = base\n    def double(self):\n        return self.size * 2\nr = P().double()\ndel P",
    "import": "import math\nfrom os.path import join as put\nr = math.floor(2.5), put('a', 'b')\ndel math, put",
    "exception": "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    r = str(error)\nfinally:\n    done = True",
    "deletion": "gone = 1\ndel gone\nr = items.copy()\ndel r[0]",
    "match": "match items:\n    case [first, *others]:\n        r = first, others\n    case _:\n        r = None",
    "inner with": "with contextlib.nullcontext(4) as four, contextlib.nullcontext() as none:\n    r = four",
    "f-string": "r = f'{base!r:>4}|{items[0] + base}|{[x for x in items]}'",
    "starred call": "r = max(*items, *[base], **{'key': lambda v: -v})",
    "conditional": "r = 'big' if base > 1 else 'small'\nassert r",
    "annotation": "n: int = base\nm: list[int]",
    "attribute and slice": "box.field = base\nbox.rows = items[::-1]\nitems[1:] = [7]",
    "locals": "v = base\nr = sorted(k for k in locals() if k in ('v', 'base'))\ne = eval('base + v')",
    "generator": "gen = (x + base for x in items)\nr = list(gen)\ndel gen",
    "shadowing": "items2 = [base for base in items]\nr = base",
}
_HEAD = "base = 3\nitems = [1, 2, 3]\nbox = Box()\n"
_HIDDEN = {"Box", "contextlib", "model", "given", "tracer", "enter", "torch"}


class Box:
    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


def run(path: Path, body: str, lifted: bool, in_function: bool) -> dict[str, Any]:
    enter = "tracer.invoke(given)" if lifted else "contextlib.nullcontext()"
    text = _HEAD + f"with model.trace() as tracer:\n    with {enter}:\n" + textwrap.indent(body, " " * 8) + "\n"
    if not lifted:
        text += "        tracer.stop()\n"
    if in_function:
        text = "def study():\n" + textwrap.indent(text, "    ") + "    return locals()\nkept = study()\n"
    path.write_text(text)
    names: dict[str, Any] = {"Box": Box, "contextlib": contextlib, "model": NNsight(toy()), "given": sample(1)}
    exec(compile(text, str(path), "exec"), names)
    kept = names["kept"] if in_function else names
    return {k: v for k, v in kept.items() if k not in _HIDDEN and not k.startswith("__")}


@pytest.mark.parametrize("in_function", [True, False], ids=["function", "module"])
@pytest.mark.parametrize("body", _BODIES.values(), ids=list(_BODIES))
def test_a_lifted_block_leaves_the_names_that_it_would_in_place(tmp_path: Path, body: str, in_function: bool) -> None:
    lifted = run(tmp_path / "lifted.py", body, True, in_function)
    in_place = run(tmp_path / "in_place.py", body, False, in_function)
    assert lifted == in_place


def test_nonlocal_and_global_names_are_those_of_the_code_around() -> None:
    model = NNsight(toy())
    counted = 0

    def study() -> int:
        nonlocal counted
        global _counted_here
        with model.trace() as tracer:
            for _ in range(3):
                with tracer.invoke(sample(1)):
                    counted += 1
                    _counted_here = counted
        return counted

    assert study() == 3
    assert counted == 3
    assert globals().pop("_counted_here") == 3


def test_a_function_defined_in_a_block_keeps_the_values_of_its_turn_of_the_loop() -> None:
    model = NNsight(toy())
    kept = []
    with torch.no_grad(), model.trace() as tracer:
        for scale in (1, 2, 3):
            with tracer.invoke(sample(scale)):
                value = model.output * scale
                kept.append(lambda: value.sum())  # noqa: B023
    in_batch = [sample(scale) for scale in (1, 2, 3)]
    with torch.no_grad():
        expected = [(model._model(x) * (i + 1)).sum() for i, x in enumerate(in_batch)]
    assert all(torch.allclose(f(), e, atol=1e-4) for f, e in zip(kept, expected, strict=True))


def test_a_name_that_is_not_there_is_a_name_error_at_its_line() -> None:
    model = NNsight(toy())
    with pytest.raises(NameError, match="name 'nowhere' is not defined") as caught, model.trace() as tracer:
        with tracer.invoke(sample(1)):
            nowhere  # type: ignore[name-defined]  # noqa: F821
    lines = [str(e.statement).strip() for e in caught.traceback if str(e.path) == __file__]
    assert lines[-1].startswith("nowhere")


def test_super_in_a_block_of_a_method() -> None:
    class Base:
        def scale(self) -> int:
            return 4

    class Derived(Base):
        def scale(self) -> int:
            model = NNsight(toy())
            with model.trace() as tracer:
                with tracer.invoke(sample(1)):
                    found = super().scale()
            return found

    assert Derived().scale() == 4
