"""`with wrapped.trace(...) as tracer:` - the context that runs a model with the block as its observer.

Mechanism: the body is ordinary code in the user's own frame; the model is the coroutine. Entering prepares a run,
the first value asked for starts the model, the end of the block lets it run to its end. See `Run`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, NamedTuple

import torch
from torch import nn

from .bodies import Input
from .cache import Cache, keeper, make_cache
from .errors import InvokeError, TraceStateError
from .instruments import Instruments
from .invoke import Invoker
from .run import Run, StopTrace
from .save import with_save
from .sharedrun import Joining, SharedRun
from .steps import StepLoop, Steps, StepSelector


def refuse_unready(options: dict[str, Any], method: str = "trace") -> None:
    """Take nnsight's options of `method` that this version does not carry out yet off a call's keywords.

    A model that swallows any keyword would otherwise run here what was meant to run elsewhere.

    Raises:
        NotImplementedError: one of them was asked for.
    """
    if options.pop("remote", False):
        raise NotImplementedError(
            f"{method}(remote=...) is not available in this version of nnsight-lab: leave it out to run here."
        )


class TraceOptions(NamedTuple):
    """How a trace is run, apart from what the model is given.

    Attributes:
        scan: run the forward on fake tensors first.
        validate: check assignments against what they replace.
    """

    scan: bool = False
    validate: bool = False


def take_options(module: nn.Module, keywords: dict[str, Any]) -> TraceOptions:
    """Take the trace's own options off a call's keywords; those that the module's forward names stay with it.

    Raises:
        NotImplementedError: `remote` was asked for.
    """
    if not any(name in keywords for name in ("remote", *TraceOptions._fields)):
        return TraceOptions()
    named = inspect.signature(module.forward).parameters
    given = [name for name in ("remote", *TraceOptions._fields) if name in keywords and name not in named]
    own = {name: keywords.pop(name) for name in given}
    refuse_unready(own)
    return TraceOptions(**own)


class Tracer:
    """The trace's handle. Made by `.trace(...)`; used once."""

    __slots__ = ("__weakref__", "_run", "_state")

    def __init__(
        self,
        owner: Any,
        instruments: Instruments,
        call: Callable[[], Any],
        validate: bool = False,
        *,
        joining: Joining | None = None,
        stepwise: bool = False,
    ) -> None:
        self._run = Run(owner, instruments, call) if joining is None else SharedRun(owner, instruments, call, joining)
        self._run.validate = validate
        self._run.stepwise = stepwise
        self._state = "new"

    def __enter__(self) -> Tracer:
        if self._state != "new":
            raise TraceStateError("This trace has been used already. Call .trace(...) again for another run.")
        self._state = "open"
        try:
            self._run.open(_block_frame())
            return self
        except BaseException:  # an interrupt: `__exit__` will not be called
            self._run.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        try:
            if error is None:
                self._run.finish()
        finally:
            self._state = "closed"
            try:
                self._run.close()
            except BaseException as later:
                self._run.close()  # for an interrupt that came before it began
                _chain(later, error)
                raise
        return isinstance(error, StopTrace) and error.stopped is self._run

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"A tracer has no {name!r}; it has .invoke(), .barrier(), .cache(), .iter[...], .all(), .next(), .stop() "
            "and .result."
        )

    def stop(self) -> None:
        """End the block and the model here. What was read before stays; code after the block goes on."""
        if self._state != "open":
            raise TraceStateError("tracer.stop() works inside its own `with` block only.")
        raise StopTrace(self._run)

    def invoke(self, *inputs: Any, **keywords: Any) -> Invoker:
        """A block with a prompt of its own; all blocks of a trace run in one forward, over one batch.

        In the block, sites give the rows of its prompt, and what is assigned or changed in place concerns those rows
        alone. Blocks run when the trace ends, interleaved; a name that an earlier block binds can be read in a later
        one. Prompts are padded on the left to one length. Without arguments the block sees the whole batch.

        Args:
            inputs: what `model.trace` takes.
            keywords: keywords of the forward.

        Raises:
            InvokeError: the trace was given an input of its own, or its model runs already.
        """
        run = self._shared("invoke")
        if not inputs and not keywords:
            return Invoker(run, None)
        assert run.joining is not None
        return Invoker(run, Input(inputs, keywords, run.joining.prepare(*inputs, **keywords)))

    def barrier(self, count: int) -> Callable[[], None]:
        """What `count` invoke blocks call to wait for one another: each goes on when all have called it."""
        if count < 1:
            raise ValueError(f"A barrier is for 1 block or more, not {count}.")
        return self._shared("barrier").barrier(count)

    def _shared(self, name: str) -> SharedRun:
        run = self._run
        if not isinstance(run, SharedRun):
            raise InvokeError(
                f"This trace was given an input, so it has no tracer.{name}(...). Open it without one: "
                "`with model.trace() as tracer:`, and give each prompt to `tracer.invoke(prompt)`."
            )
        if self._state != "open":
            raise TraceStateError(f"tracer.{name}(...) works inside the trace's `with` block only.")
        return run

    def cache(
        self,
        modules: Any = None,
        sources: Any = None,
        include_inputs: bool = False,
        *,
        detach: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> Cache:
        """Keep what sites hold at every one of their calls from here on, without the block pausing for them.

        The cache is filled while the model runs and is complete when the block is over:
        `cache["transformer.h.5"].output`, and `cache["transformer.h.5"][i].output` for call i of several.

        Args:
            modules: wrapped modules or their addresses. None: all of them, or none when `sources` are given.
            sources: operations, their addresses, or whole `.source`s.
            include_inputs: keep the calls' arguments too, as `.inputs` and `.input`.
            detach: take kept tensors out of the gradient graph. Without any of these three options the cache holds the
                model's own tensors, graph and later in-place changes included; `device` or `dtype` make copies only
                where they differ.
            device: move kept tensors there.
            dtype: convert kept floating-point tensors to it.

        Raises:
            UnknownNameError: an address does not exist.
            OutOfOrderError: a module of the list is running now, unobserved.
            TraceStateError: the trace's block is not open.
        """
        if self._state != "open":
            raise TraceStateError("tracer.cache(...) works inside its own `with` block only.")
        if isinstance(self._run, SharedRun) and self._run.turn is not None:
            raise InvokeError(
                "tracer.cache(...) keeps the values of the whole batch: open it above the invoke blocks, not in one."
            )
        keep = keeper(detach, device, dtype)
        return make_cache(self._run.owner, modules, sources, include_inputs, keep)

    @property
    def iter(self) -> StepSelector:
        """Steps of a generation: `for step in tracer.iter[:]` (a slice, a number, or a list of numbers).

        Step i is the model's i-th forward. In the loop's body, reads and assignments of every module and operation mean
        the call in that step. The loop ends where the generation does; the code after it runs in any case.
        """
        return StepSelector(self._steps("iter[...]"))

    def all(self) -> StepLoop:
        """All steps that are still to come, the present one included: `for step in tracer.all()`."""
        return StepSelector(self._steps("all()"))[:]

    def next(self, step: int = 1) -> Tracer:
        """Go on to the next step of a generation, or the one `step` further on, whose sites are meant from here on.

        Raises:
            NotReachedError: the generation ended before.
        """
        if step < 1:
            raise ValueError(f"tracer.next({step}): steps go forward, by 1 or more.")
        self._steps("next()").forward(step)
        return self

    def _steps(self, name: str) -> Steps:
        if self._state != "open":
            raise TraceStateError(f"tracer.{name} works inside its own `with` block only.")
        return self._run.innermost().in_steps()

    @property
    def result(self) -> Any:
        """What the model returned. Inside the block, asking runs the model to its end.

        Raises:
            TraceStateError: the trace was not entered, or it was stopped before the model returned.
        """
        run = self._run.innermost()
        if self._state == "new":
            raise TraceStateError("tracer.result is there once the `with` block has been entered.")
        if not run.finished:
            run.ensure_taps()  # so that a site asked for later is known to have been passed
            run.finish()
        if not run.returned:
            raise TraceStateError(
                "The model did not return in this trace (it was stopped or raised), so there is no result."
            )
        value = run.outcome()
        run.gradients.note(value, "tracer", "result")
        return with_save(value)


def _block_frame() -> FrameType:
    """The frame that executes the `with` statement; `contextlib.ExitStack` and its like are looked through."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__") == "contextlib":
        frame = frame.f_back
    return frame


def _chain(later: BaseException, earlier: BaseException | None) -> None:
    """Give an error of the model's clean-up the body's error as its context, as Python does within one stack."""
    if earlier is None or isinstance(earlier, StopTrace):
        return
    last = later
    while last is not earlier and last.__context__ is not None:
        last = last.__context__
    if last is not earlier:
        last.__context__ = earlier
