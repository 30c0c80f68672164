"""A site as the body sees it: `.output`, `.input`, `.inputs` to read and assign, `.skip(value)`.

Sites only address; `Run` executes. A site finds the innermost open run of its model each time it is used, so the
same object serves any number of traces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from .errors import InputAccessError
from .points import ENTER, LEAVE, Arguments, Point
from .save import with_save

if TYPE_CHECKING:
    from .run import Run


class Site:
    """Base of wrapped modules and operations."""

    def _locate(self, attribute: str) -> tuple[Run, Point, int | None]:
        """The open run, this site's point in it, and the pass meant (None: the present or next one)."""
        raise NotImplementedError

    def _read_output(self) -> Any:
        run, point, index = self._locate("output")
        value = run.read(point, LEAVE, index)
        return value if isinstance(value, Tensor) else with_save(value)

    def _write_output(self, value: Any) -> None:
        run, point, index = self._locate("output")
        run.write(point, LEAVE, lambda _: value, index)
        run.assigned.append((f"{point.address}.output", value))

    def _read_inputs(self) -> Arguments:
        run, point, index = self._locate("inputs")
        return with_save(run.read(point, ENTER, index))

    def _write_inputs(self, value: Arguments) -> None:
        if not (
            isinstance(value, tuple)
            and len(value) == 2
            and isinstance(value[0], (tuple, list))
            and isinstance(value[1], dict)
        ):
            raise TypeError(
                f".inputs takes a pair (args, kwargs) of a tuple and a dict, not {type(value).__name__}; "
                ".input takes one value."
            )
        run, point, index = self._locate("inputs")
        args, kwargs = value
        run.write(point, ENTER, lambda _: (tuple(args), dict(kwargs)), index)
        run.assigned.append((f"{point.address}.inputs", value))

    def _read_input(self) -> Any:
        run, point, index = self._locate("input")
        return with_save(run.first_input(point, index))

    def _write_input(self, value: Any) -> None:
        run, point, index = self._locate("input")
        address = point.address

        def replace(arguments: Arguments) -> Arguments:
            args, kwargs = arguments
            if args:
                return (value, *args[1:]), kwargs
            if kwargs:
                return args, {**kwargs, next(iter(kwargs)): value}
            raise InputAccessError(f"{address} was called without arguments, so there is no .input to replace.")

        run.write(point, ENTER, replace, index)
        run.assigned.append((f"{address}.input", value))

    output = property(_read_output, _write_output)
    input = property(_read_input, _write_input)
    inputs = property(_read_inputs, _write_inputs)

    output.__doc__ = """The value of the call: the model's own object. An in-place change counts until the
        next site is read: after that the model has gone on.

        Raises:
            OutsideTraceError: no trace is open.
            OutOfOrderError: the forward had passed the site before.
            NotReachedError: the forward never reached it.
        """
    inputs.__doc__ = "The call's arguments: (positional arguments, keyword arguments). Raises as `output` does."
    input.__doc__ = """The call's first argument: the first positional one, else the first keyword's.

        Raises as `output` does, and InputAccessError for a call without arguments.
        """

    def skip(self, value: Any) -> None:
        """Let the call return `value` without running. Sites inside it are then not reached.

        Raises:
            SkipTooLateError: the call has begun already.
        """
        run, point, index = self._locate("skip")
        run.skip(point, value, index)
