"""One forward of the model with functions at some of its sites.

The engine carries out assignments when the forward reaches their site. `forward_pass` leaves one at every site that a
recipe names, before the model starts; so it needs no knowledge of the order of the sites, and finds it out. Beside it
only sweeps, lenses and attribution, which skip layers or keep gradients, talk to the engine's runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ..engine import NNsight, TraceError, diagnosis
from ..engine.points import ENTER, LEAVE
from .errors import ScopeError
from .sites import SitePath, locate

# Called with the value at a site and the number of the call; returns the value that goes on.
Handler = Callable[[Any, int], Any]


@dataclass(frozen=True, order=True)
class Place:
    """A site's output or input; "arguments" is all that its call was given, `(args, kwargs)`."""

    site: str
    io: str

    def __str__(self) -> str:
        return f"{self.site or 'model'}.{self.io}"


@dataclass(frozen=True)
class Pass:
    """What a forward gave.

    Attributes:
        output: what the model returned.
        calls: how often each place was reached.
        reasons: why the places that were not reached were not.
        seconds: time that the forward took.
    """

    output: Any
    calls: Mapping[Place, int]
    reasons: Mapping[Place, str]
    seconds: float


@dataclass
class _Watch:
    place: Place
    handler: Handler
    run: Any
    point: Any
    phase: str
    calls: int = field(default=0)

    def arm(self) -> None:
        """Leave the handler at the site's next call."""
        self.run.write(self.point, self.phase, self._arrive, self.calls)

    def _arrive(self, value: Any) -> Any:
        call, self.calls = self.calls, self.calls + 1
        self.arm()
        if self.phase == LEAVE or self.place.io == "arguments":
            return self.handler(value, call)
        args, kwargs = value
        if args:
            return (self.handler(args[0], call), *args[1:]), kwargs
        if kwargs:
            first = next(iter(kwargs))
            return args, {**kwargs, first: self.handler(kwargs[first], call)}
        raise ScopeError(f"{self.point.address} is called without arguments, so it has no input.")


def reveal_callee(model: NNsight, args: tuple[Any, ...], kwargs: Mapping[str, Any], path: SitePath) -> None:
    """Run the model so that the function which an operation calls is known from then on, if it is called at all.

    Raises:
        TraceError: the operation calls something without Python source.
    """
    with torch.no_grad(), model.trace(*args, **kwargs) as tracer:
        run = tracer._run
        locate(model, path, f"site {path}").source._table(run)
        try:
            run.finish()
        except TraceError:
            if not run.returned:
                raise
        tracer.stop()


def forward_pass(
    model: NNsight, args: tuple[Any, ...], kwargs: Mapping[str, Any], handlers: Mapping[Place, tuple[SitePath, Handler]]
) -> Pass:
    """Run the model without gradients, with a handler at each place.

    Args:
        args, kwargs: of `model.trace`.
        handlers: by place: the site and what to do there, in the order in which they act where places coincide.

    Raises:
        UnknownSiteError: a site that the model does not have.
    """
    with torch.no_grad(), model.trace(*args, **kwargs) as tracer:
        run = tracer._run
        watches = []
        for place, (path, handler) in handlers.items():
            site = locate(model, path, f"site {place.site!r}")
            _, point, _ = site._locate("inputs" if place.io == "arguments" else place.io)
            watches.append(_Watch(place, handler, run, point, LEAVE if place.io == "output" else ENTER))
        for watch in watches:
            watch.arm()
        start = time.perf_counter()
        try:
            run.finish()
        except TraceError:
            # The handlers for calls that did not come are reported one by one below.
            if not run.returned:
                raise
        seconds = time.perf_counter() - start
        output = run.result
        reasons = {
            watch.place: str(diagnosis.missed(run, watch.point, watch.phase, None, watch.place.io))
            for watch in watches
            if not watch.calls
        }
        calls = {watch.place: watch.calls for watch in watches}
        tracer.stop()
    return Pass(output, calls, reasons, seconds)
