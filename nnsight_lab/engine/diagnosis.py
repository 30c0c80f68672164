"""Why a site could not be had: the words of `OutOfOrderError` and `NotReachedError`.

The two are told apart by what the run recorded, never by guessing: taps count every module's calls, gates count every
call of an observed function's operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import NotReachedError, OutOfOrderError, SkipTooLateError
from .taps import Tap, tap_of

if TYPE_CHECKING:
    from .points import Point
    from .run import Run
    from .tables import OperationTable


def too_late(run: Run, point: Point, phase: str, index: int | None, attribute: str | None = None) -> OutOfOrderError:
    """The error for a site that the forward had passed before it was asked for."""
    what = f"{point.address}.{attribute or phase}" + (f" (pass {index})" if index else "")
    later = run.last_address
    if later is None:
        return OutOfOrderError(f"{what} was asked for after the forward had ended. {_cure(what, later)}")
    step = f" in step {run.steps.present}" if run.steps is not None and index is None else ""
    stands = "" if run.finished else f" (the model now stands at {later})"
    return OutOfOrderError(
        f"{what} was asked for after {later}, but the forward had already passed it{step}{stands}. "
        f"{_cure(what, later)}{_doubt(run)}"
    )


def _cure(what: str, later: str | None) -> str:
    place = f"above the one with {later}" if later else "to the top of the block"
    return (
        "Sites are met in the order in which the forward reaches them: "
        f"move the line with {what} {place}, or read it in a second trace."
    )


def _doubt(run: Run) -> str:
    """What makes the counts uncertain, if anything does."""
    if not run.disturbed:
        return ""
    return (
        " (The model was called from outside this trace at the same time, from another thread or a trace inside the "
        "block, so which modules had run before is not certain.)"
    )


def source_too_late(run: Run, address: str) -> OutOfOrderError:
    """The error for operations of a forward that is running, unobserved, at this moment."""
    at = f", and the model now stands at {run.last_address} inside it" if run.last_address else ""
    return OutOfOrderError(
        f"{address} was first used while that very forward was running{at}: its operations are not being observed. "
        f"Touch {address} before: name one of its operations at the top of the block, or before the trace."
    )


def running_unobserved(run: Run, address: str) -> OutOfOrderError:
    """The error for a module that is running now in a call which began before anyone asked for it."""
    return OutOfOrderError(
        f"{address} was first asked for while it was running, and the model now stands at {run.last_address} inside "
        f"it: its call is not being observed. Read {address}.input at the top of the block, or use a second trace."
    )


def skip_too_late(point: Point) -> SkipTooLateError:
    """The error for a skip of a call that has begun."""
    return SkipTooLateError(
        f"{point.address}.skip(value) came after the call had begun. "
        "Skip it before reading anything that runs inside it."
    )


def missed(
    run: Run, point: Point, phase: str, index: int | None, attribute: str | None = None
) -> OutOfOrderError | NotReachedError:
    """The error for a site that was awaited until the forward ended."""
    if (index is None and point.passes(phase) > point.base) or (not index and ran_unobserved(point)):
        return too_late(run, point, phase, None, attribute)
    what = f"{point.address}.{attribute or phase}"
    if index and point.begun:
        calls = "1 call" if point.begun == 1 else f"{point.begun} calls"
        return NotReachedError(
            f"{what}: call {index} was asked for (they count from 0), but the forward made only {calls}."
        )
    step = f" in step {run.steps.present}" if run.steps is not None and index is None else ""
    return NotReachedError(f"{what} was never reached{step}: {why_not(run, point)}{_doubt(run)}")


def ran_unobserved(point: Point) -> bool:
    """Whether the function that holds the operation ran, but only before it was observed."""
    table = point.table
    if table is None:
        return False
    parent = table.parent
    if table.before == (_calls_before_step(table) if parent is None else parent.base):
        return False
    calls = _calls(table) if parent is None else parent.begun
    return table.calls == 0 and calls == table.before


def _calls(table: OperationTable) -> int:
    """How often the module whose forward `table` observes was called in this run."""
    tap = _tap_of_table(table)
    return 0 if tap is None else table.run.calls_of(tap)


def _calls_before_step(table: OperationTable) -> int:
    """The same until the present step began; 0 in a run of one forward."""
    tap, steps = _tap_of_table(table), table.run.steps
    return 0 if tap is None or steps is None else steps.calls_before(tap)


def _tap_of_table(table: OperationTable) -> Tap | None:
    for module, candidate in table.run.tables.items():
        if candidate is table:
            return tap_of(module)
    return None


def why_not(run: Run, point: Point) -> str:
    """The reason, as far as it is known, why the forward did not reach `point`."""
    if run.error is not None:
        return f"the model had raised {run.error} before."
    if point.begun > point.ended:
        return "its call began but did not return."
    skipped = _skipped_around(run, point)
    if skipped is not None:
        return f"the call of {skipped} was skipped."
    table = point.table
    if table is None:
        return f"{_this(run)} did not call {point.address}."
    if table.parent is not None and table.calls == 0 and table.parent.begun == 0:
        return why_not(run, table.parent)
    if table.gate is None or (table.parent is None and _calls(table) == table.before):
        return f"this forward did not call {table.address.removesuffix('.source')}."
    listing = table.gate.rewritten.listing
    if not table.gate.ran() and not any(other.begun for other in table.points.values()):
        return (
            f"no operation of {listing.name} ran, although it was called: it returned before the first of them, or a "
            "decorator around it ran something else in its place (as transformers does for chosen kernels)."
        )
    if point.label not in table.gate.rewritten.positions:
        return f"{listing.name}, the function called last, has no such operation."
    operation = listing[point.label]
    row = listing.rows[operation.line + 1].strip()
    return f"line {operation.line} of {listing.name} is on a branch this forward did not take (`{row}`)."


def _this(run: Run) -> str:
    return "this forward" if run.steps is None else "the model's forward in this step"


def _skipped_around(run: Run, point: Point) -> str | None:
    """The address of a skipped call that `point` lies inside, if there is one."""
    for other in run.all_points():
        inside = point.address.removeprefix(other.address)
        if other.skipped and other is not point and inside != point.address and inside[:1] in (".", "["):
            return other.address
    return None
