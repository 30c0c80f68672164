"""`NNsight`: the root of a wrapped tree, on which traces are opened."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self, overload

from torch import nn

from .batch import concatenate
from .editblock import EditBlock
from .edits import Edit, EditFunction
from .envoy import Envoy
from .errors import UnknownNameError
from .instruments import Instruments
from .points import Arguments
from .renaming import RenameKey, Renaming
from .scanning import FakeForward, ScanTracer
from .session import Session
from .trace import TraceOptions, Tracer, refuse_unready, take_options


class ForwardOfBlocks:
    """One forward for all blocks of a trace."""

    def __init__(self, owner: NNsight, scan: bool) -> None:
        self._owner = owner
        self._scan = scan
        self.prepare = owner._invoked

    def together(self, inputs: list[Arguments]) -> tuple[Callable[[], Any], list[int]]:
        (args, kwargs), counts = self._owner._join(inputs)
        module = self._owner._module
        if self._scan:
            FakeForward(module, args, kwargs)()
        return lambda: module(*args, **kwargs), counts


class NNsight(Envoy):
    """Any `torch.nn.Module`, wrapped: its sites can be read and edited inside `with wrapped.trace(...)`.

    The module is untouched: the wrapper holds it as `._model` and passes everything it does not define on to it.

    Args:
        module: the module to wrap. Wrapping the same module twice is fine.
        name: how error messages and listings call it.
        rename: further names for modules: `{"transformer.h": "layers"}` makes `model.layers` another way to write
            `model.transformer.h`; a single name, `{"attn": "attention"}`, is renamed wherever it occurs, and a list
            gives several aliases. Messages, listings and keys keep the real names. See `Renaming`.

    Raises:
        TypeError: `module` is not a `torch.nn.Module`.
        ValueError: an alias is no name, hides one that is there, or means two modules.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        name: str = "model",
        rename: Mapping[RenameKey, str | Sequence[str]] | None = None,
    ) -> None:
        if isinstance(module, Envoy):
            module = module._module
        if not isinstance(module, nn.Module):
            raise TypeError(f"NNsight wraps a torch.nn.Module, not {type(module).__name__}.")
        super().__init__(module, None, "")
        self.__dict__["_own_instruments"] = Instruments(module, name)
        self.__dict__["_edits"] = ()
        if rename:
            self.__dict__["_renaming"] = Renaming(rename, module, name, type(self))

    @property
    def _model(self) -> nn.Module:
        return self._module

    def trace(self, *args: Any, **kwargs: Any) -> Tracer:
        """A context in which the model runs on the given arguments while the block reads and edits its sites.

        Arguments are those of the module's forward; one that it does not take is refused by the module itself.
        Without arguments, inputs can be given to `tracer.invoke(...)` blocks, whose tensors make up one batch. The
        trace has options of its own, which go to the forward instead where it names a parameter so:

        - `validate=True`: an assignment of another structure, shape, dtype or device than the site's own value raises
          ValidationError before it takes effect. In-place changes are torch's to check, and a skipped call has no
          value to compare with.
        - `scan=True`: the forward is run on fake tensors first, so that arguments which do not fit, and forwards that
          cannot be scanned, are found at this line, before the block; `model.scan(...)` is that alone.

        Raises:
            ScanError: with `scan=True`, the forward needs the values of tensors.
            NotImplementedError: `remote` was asked for.
        """
        return self._tracer(take_options(self._module, kwargs), args, kwargs)

    def scan(self, *args: Any, **kwargs: Any) -> Tracer:
        """A trace on fake tensors: shapes, dtypes and devices at every site, no computation, no weights.

        Arguments are those of the module's forward. The model is as it was afterwards, but it must not be used outside
        the block meanwhile. Values read are torch's FakeTensors: they have no numbers.

        Raises:
            ScanError: inside the block, when the forward or the block needs the values of tensors.
        """
        return ScanTracer(self, self._instruments, FakeForward(self._module, args, kwargs))

    def session(self, *, remote: Any = False) -> Session:
        """Several traces as one piece of work: `with model.session() as session:` around their blocks.

        Here each trace runs in place when it is reached, and values go from one to the next like any others.

        Raises:
            NotImplementedError: `remote` was asked for.
        """
        refuse_unready({"remote": remote}, "session")
        return Session(self)

    @overload
    def edit(self, function: None = None, *, inplace: bool = False) -> EditBlock[Self]: ...
    @overload
    def edit(self, function: EditFunction, *, inplace: bool = False) -> Self: ...
    def edit(self, function: EditFunction | None = None, *, inplace: bool = False) -> Any:
        """Let a function take part in every trace, before the block's own reads: `edited = model.edit(function)`.

        The function is given the model and does what a block does: reads sites, in the forward's order, changes and
        assigns them, skips. It is called at the beginning of each trace (scan, generation), and again for each further
        call of the model in it, and has its turns when the forward reaches what it asks for. Several edits take part in
        the order in which they were made.

        Two more ways to write it: as a decorator, `@model.edit()`, whose name is then the edited model; and as a block,
        `with model.edit() as (tracer, edited):`, whose statements do not run there but in every trace of `edited`, with
        the values that their names had there.

        Args:
            function: takes the model; what it returns is not used.
            inplace: edit this model. Otherwise the edit belongs to a further wrapper of the same module, which is
                returned, and this one stays as it is. A LanguageModel loads its weights for that, as both share them.

        Returns:
            The edited model, or without a function what takes one.
        """
        if function is None:
            return EditBlock(lambda function: self.edit(function, inplace=inplace))
        if not callable(function):
            raise TypeError(f"model.edit takes a function of the model, not {function!r:.80}.")
        edited = self if inplace else self._sibling()
        edited.__dict__["_edits"] = (*self.__dict__["_edits"], Edit(function, self))
        return edited

    def clear_edits(self) -> None:
        """Take back every edit that was made to this wrapper. Traces that are open keep theirs."""
        self.__dict__["_edits"] = ()

    def _sibling(self) -> Self:
        """A further wrapper of the same module."""
        return copy.copy(self)

    def _tracer(self, options: TraceOptions, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tracer:
        module = self._module
        if not args and not kwargs:
            return self._tracer_of_blocks(options, module)
        if options.scan:
            FakeForward(module, args, kwargs)()
        return Tracer(self, self._instruments, lambda: module(*args, **kwargs), options.validate)

    def generate(self, *args: Any, **kwargs: Any) -> Tracer:
        """A context in which the module's own `generate` runs while the block reads and edits sites of its forwards.

        Arguments are those of that method. `tracer.result` is what it returned.

        Raises:
            UnknownNameError: the module has no such method.
        """
        method = getattr(self._module, "generate", None)
        if method is None:
            kind = type(self._module).__name__
            raise UnknownNameError(f"{self.path} ({kind}) has no method 'generate': open {self.path}.trace(...).")
        return Tracer(self, self._instruments, lambda: method(*args, **kwargs), stepwise=True)

    def _tracer_of_blocks(self, options: TraceOptions, alone: Callable[[], Any]) -> Tracer:
        """A trace without an input of its own; `alone` runs the model when it has no `tracer.invoke(...)` block."""
        return Tracer(self, self._instruments, alone, options.validate, joining=ForwardOfBlocks(self, options.scan))

    def _invoked(self, *args: Any, **kwargs: Any) -> Arguments:
        """The arguments of the model's forward for the input of one block."""
        return args, kwargs

    def _join(self, inputs: list[Arguments]) -> tuple[Arguments, list[int]]:
        """The arguments for all blocks together, and how many rows each has."""
        return concatenate(inputs)

    # Opens the Lab. Set by the package: the engine knows of no notebook.
    _open_lab: ClassVar[Callable[..., Any] | None] = None

    def lab(self, *args: Any, **options: Any) -> Any:
        """The Lab on this model, for a notebook: `model.lab("The Eiffel Tower is in the city of")`.

        Arguments are those of `nnsight_lab.Lab` after the model.
        """
        opener = type(self)._open_lab
        if opener is None:
            raise RuntimeError("The Lab comes with the package: import nnsight_lab, not its engine alone.")
        return opener(self, *args, **options)

    def _replace_module(self, module: nn.Module) -> None:
        """Put another module of the same architecture in place; envoys that were taken before follow."""
        self._instruments.root = module
        self._instruments.touched.clear()
        self._instruments.refresh()
        self._repoint(module)

    def __deepcopy__(self, memo: dict[int, Any]) -> NNsight:
        return self._edited_as(self._rewrapped(copy.deepcopy(self._module, memo)))

    def __copy__(self) -> Self:
        return self._edited_as(self._rewrapped(self._module))

    def _edited_as(self, other: Any) -> Any:
        """`other` with the edits that were made to this wrapper."""
        other.__dict__["_edits"] = self.__dict__["_edits"]
        return other

    def _rewrapped(self, module: nn.Module) -> NNsight:
        """A wrapper like this one around another module."""
        return type(self)(module, name=self._instruments.label, rename=self._given_names)

    @property
    def _given_names(self) -> dict[Any, Any] | None:
        """The mapping that was given as `rename`."""
        renaming = self.__dict__.get("_renaming")
        return None if renaming is None else renaming.given

    def __reduce__(self) -> Any:
        made = (type(self), self._module, self._instruments.label, self._given_names)
        return _unpickled, made, {"_edits": self.__dict__["_edits"]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _unpickled(kind: type[NNsight], module: nn.Module, name: str, rename: Any = None) -> NNsight:
    return kind(module, name=name, rename=rename)
