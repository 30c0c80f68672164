"""`.source`: the operations of a forward, and of what they call, by name.

`model.x.source` is a `Source`; `model.x.source.self_act_0` an `OperationSite`, which is read and assigned like a
module; `operation.source` is the `Source` of the function that the operation calls. Printing one shows the listing.
Making and printing them changes nothing in the model.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

from torch import nn

from .errors import CalleeUnknownError, SourceUnavailableError, TraceError, UnknownNameError, nearest
from .functions import bound_to, innermost
from .instruments import same_basis
from .listing import Listing, Operation
from .openruns import current_run, outside_trace
from .points import Point
from .render import lab_line, render_html, render_lab_line, render_operation, render_text
from .rewrite import Rewritten, rewritten
from .run import Run
from .sites import Site
from .tables import OperationTable, callee_is_module, unknown_operation

if TYPE_CHECKING:
    from .envoy import Envoy

_NO_FORWARD = nn.Module.forward
_ASSIGNABLE = ("output", "input", "inputs")
_LABEL = re.compile(r"[A-Za-z_]\w*_\d+")


def _is_protocol(name: str) -> bool:
    """Whether Python itself asks for `name`. Labels end with a number: `super().__init__()` is `__init___0`."""
    return name.startswith("__") and name.endswith("__")


def _local_names(code: CodeType) -> set[str]:
    """Every name that is not looked up globally somewhere in a function or in one that it defines."""
    names = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names |= _local_names(inner)
    return names


class Source:
    """The operations of one function: attributes are labels, printing shows the listing.

    `source(everything=True)` lists operators, bound names and returned values as well.
    """

    def __init__(self, address: str, everything: bool) -> None:
        self._address = address
        self._everything = everything

    def _function(self) -> FunctionType:
        """The function listed. Raises SourceUnavailableError or CalleeUnknownError."""
        raise NotImplementedError

    def _receiver(self) -> Any:
        """What the function's first argument is when that is certain without a run (`self`), else None."""
        raise NotImplementedError

    def _table(self, run: Run) -> OperationTable:
        """The function's table in `run`, observed from here on."""
        raise NotImplementedError

    @property
    def _envoy(self) -> Envoy:
        raise NotImplementedError

    @property
    def listing(self) -> Listing:
        """Rows and operations as data."""
        return self._rewritten().listing

    def _rewritten(self) -> Rewritten:
        return rewritten(self._function(), self._everything)

    def _check(self, label: str) -> None:
        found = self._rewritten()
        if label not in found.positions:
            raise unknown_operation(label, found, self._address)

    def __getattr__(self, label: str) -> OperationSite:
        if _is_protocol(label) or label in (
            "_repr_html_",
            "_ipython_display_",
            "_ipython_canary_method_should_not_exist_",
        ):
            raise AttributeError(label)
        self._check(label)
        return OperationSite(self, label)

    def __setattr__(self, label: str, value: Any) -> None:
        if label.startswith("_"):
            object.__setattr__(self, label, value)
            return
        self._check(label)
        raise UnknownNameError(
            f"{self._address}.{label} is an operation, not a value: assign to {self._address}.{label}.output "
            "(or .input, .inputs)."
        )

    def __getitem__(self, label: str) -> OperationSite:
        return getattr(self, label)

    def __iter__(self) -> Iterator[OperationSite]:
        """The operations in evaluation order."""
        return (OperationSite(self, label) for label in self.listing.labels)

    def __len__(self) -> int:
        return len(self.listing.operations)

    def __contains__(self, label: str) -> bool:
        return label in self.listing.labels

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.listing.labels]

    def __str__(self) -> str:
        return render_text(self.listing)

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        html = render_html(self.listing) + render_lab_line(self._lab_line())
        return {"text/plain": str(self), "text/html": html, **self._page_data()}

    def _page_data(self) -> dict[str, Any]:
        """The listing for hosts that draw it themselves, by MIME type."""
        return {}

    def _lab_line(self) -> str:
        """The line of code that opens the Lab with this listing."""
        raise NotImplementedError


class ModuleSource(Source):
    """The operations of a module's forward."""

    def __init__(self, envoy: Envoy, everything: bool = False) -> None:
        super().__init__(f"{envoy.path}.source", everything)
        self._owner = envoy
        self._sites: dict[str, OperationSite] = {}
        self._known: tuple[Any, Rewritten] | None = None

    @property
    def _envoy(self) -> Envoy:
        return self._owner

    # Makes what `_page_data` gives of a model, a module's path and the line that opens the Lab. Set by the package.
    _make_page_data: ClassVar[Callable[[Any, str, str], dict[str, Any]] | None] = None

    def __call__(self, everything: bool = False) -> ModuleSource:
        return self._owner._source_of(everything)

    def _page_data(self) -> dict[str, Any]:
        make = type(self)._make_page_data
        return {} if make is None else make(self._owner._root, self._owner._dotted, self._lab_line())

    def _function(self) -> FunctionType:
        function = innermost(self._forward(), "forward")
        if function is _NO_FORWARD:
            kind = type(self._owner._module).__name__
            raise SourceUnavailableError(
                f"{self._owner.path} is a {kind}, which has no forward; its modules have one each."
            )
        return function

    def _rewritten(self) -> Rewritten:
        owner = self._owner
        basis = owner._instruments.slot(owner._module).basis()
        if self._known is None or not same_basis(self._known[0], basis):
            self._known = (basis, super()._rewritten())
            self._sites.clear()
        return self._known[1]

    def _forward(self) -> Any:
        owner = self._owner
        return owner._instruments.slot(owner._module).callable()

    def _receiver(self) -> Any:
        return bound_to(self._forward())

    def _lab_line(self) -> str:
        return lab_line(self._owner._instruments.label, module=self._owner.path)

    def _table(self, run: Run) -> OperationTable:
        return run.module_table(self._owner._module, self._address, self._everything)

    def __getattr__(self, label: str) -> OperationSite:
        if _is_protocol(label):
            raise AttributeError(label)
        self._rewritten()  # forgets the sites of a forward that is no more
        site = self._sites.get(label)
        if site is None:
            site = self._sites[label] = super().__getattr__(label)
        root, module = self._owner._root, self._owner._module
        run = current_run(root)
        if run is None:
            touched = root._instruments.touched
            everything = self._everything or touched.get(module, ("", False))[1]
            touched[module] = (self._address, everything)
        elif module not in run.tables:
            self._table(run)
        return site


class CalleeSource(Source):
    """The operations of the function that an operation calls, for that call site only."""

    def __init__(self, operation: OperationSite, everything: bool = False) -> None:
        super().__init__(f"{operation._address}.source", everything)
        self._operation = operation

    @property
    def _envoy(self) -> Envoy:
        return self._operation._source._envoy

    def __call__(self, everything: bool = False) -> CalleeSource:
        return CalleeSource(self._operation, everything)

    @property
    def listing(self) -> Listing:
        """Rows and operations as data. In a trace, what only the run can tell is found by running to the call."""
        run = current_run(self._envoy._root)
        if run is not None and not run.finished and self._operation._callee() is None:
            self._operation.inputs  # noqa: B018
        return super().listing

    def _function(self) -> FunctionType:
        callee = self._operation._callee()
        if callee is None:
            raise CalleeUnknownError(
                f"What {self._operation._address} calls is known only from a run. Print {self._address} inside a "
                f"trace, before the model is past it, or once a trace has read `{self._operation._address}.output`."
            )
        return innermost(callee, self._operation.operation.callee_name)

    def _receiver(self) -> Any:
        return bound_to(self._operation._static_callee())

    def _lab_line(self) -> str:
        return self._operation._lab_line()

    def _table(self, run: Run) -> OperationTable:
        inner = self._operation._source._table(run).inner(self._operation._label)
        inner.everything = inner.everything or self._everything
        return inner

    def _check(self, label: str) -> None:
        try:
            super()._check(label)
        except TraceError as error:
            # A callee that only the run can tell: the label is checked when the operation is called.
            known = self._operation._static_callee() is not None
            if known or not _LABEL.fullmatch(label) or current_run(self._envoy._root) is None:
                raise
            del error


class OperationSite(Site):
    """One operation: `.output`, `.input`, `.inputs`, `.skip(value)`, `.source`; `[i]` is its i-th call in the run."""

    def __init__(self, source: Source, label: str, index: int | None = None) -> None:
        self._source = source
        self._label = label
        self._index = index
        self._address = f"{source._address}.{label}"

    def __getitem__(self, index: int) -> OperationSite:
        if not isinstance(index, int) or index < 0:
            raise IndexError(f"{self._address}[{index!r}]: calls are addressed by their number from 0.")
        return OperationSite(self._source, self._label, index)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"{self._address} is not iterable; [i] addresses its i-th call.")

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_") or name in _ASSIGNABLE:
            object.__setattr__(self, name, value)
        else:
            raise UnknownNameError(
                f"{self._address} has nothing called {name!r} to assign to.{nearest(name, _ASSIGNABLE)}"
            )

    def _locate(self, attribute: str) -> tuple[Run, Point, int | None]:
        source = self._source
        run = current_run(source._envoy._root)
        if run is None:
            raise outside_trace(f"{self._address}.{attribute}")
        table = source._table(run)
        return run, table.points.get(self._label) or table.point(self._label), self._index

    @property
    def operation(self) -> Operation:
        """Label, line and kind as data."""
        return self._source._rewritten().listing[self._label]

    @property
    def source(self) -> CalleeSource:
        """The operations of the function this operation calls.

        Raises:
            CalleeIsModuleError: it calls a module, whose own `.source` is named.
            SourceUnavailableError: it calls something without Python source, or this is one numbered call of it.
        """
        if self._index is not None:
            raise SourceUnavailableError(
                f"{self._address}[{self._index}].source: operations are addressed by call site. Use "
                f"{self._address}.source.<operation>[i], where i counts over all its calls."
            )
        callee = self._static_callee()
        if isinstance(callee, nn.Module):
            envoy = self._source._envoy
            path = envoy._root._instruments.path_of(callee)
            raise callee_is_module(self._address, path, callee)
        if callee is not None:
            innermost(callee, self.operation.callee_name)
        return CalleeSource(self)

    def _callee(self) -> Any:
        """What the operation calls, read off its names or known from an earlier run; None when neither tells."""
        callee = self._static_callee()
        if callee is None:
            instruments = self._source._envoy._root._instruments
            callee = instruments.known_callee(self._source.listing, self._label)
        return callee

    def _static_callee(self) -> Any:
        """The callee as the function's names tell it without a run: a global, a builtin, an attribute of `self`."""
        try:
            function = self._source._function()
            operation = self.operation
        except (CalleeUnknownError, KeyError):
            return None
        first, *rest = operation.callee.split(".")
        if not all(part.isidentifier() for part in (first, *rest)):
            return None
        code = function.__code__
        receiver = self._source._receiver()
        if first in _local_names(code):
            if receiver is None or not code.co_argcount or first != code.co_varnames[0]:
                return None
            value: Any = receiver
        elif first in function.__globals__:
            value = function.__globals__[first]
        else:
            value = getattr(builtins, first, None)
        for name in rest:
            value = getattr(value, name, None)
        return value if callable(value) else None

    def __str__(self) -> str:
        return render_operation(self._source.listing, self.operation)

    def __repr__(self) -> str:
        return f"<operation {self._address}{'' if self._index is None else f'[{self._index}]'}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        html = render_html(self._source.listing, self.operation) + render_lab_line(self._lab_line())
        return {"text/plain": str(self), "text/html": html}

    def _lab_line(self) -> str:
        """The line of code that opens the Lab with this operation selected."""
        address = f"{self._source._address}.{self._label}"
        return lab_line(self._source._envoy._instruments.label, selection=address)
