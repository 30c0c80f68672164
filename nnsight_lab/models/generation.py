"""Generation: a wrapped model's `generate`, step by step under a trace.

The call of such a trace is transformers' own `generate`, with its cache, its sampling and its beams; a step is one call
of the model in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch import nn

from ..engine.errors import InvokeError, TraceStateError
from ..engine.openruns import current_run, outside_trace
from ..engine.points import Arguments
from ..engine.save import with_save
from .joining import join
from .prompts import PromptError, prepare

if TYPE_CHECKING:
    from .language import LanguageModel


def generation_batch(model: LanguageModel, inputs: Any, keywords: dict[str, Any]) -> dict[str, Any]:
    """The keyword tensors that `generate` gets for a prompt: its ids and their mask.

    Positions of padded rows are left to `generate`, which makes them anew for every step.

    Raises:
        PromptError: as `prepare`, and for a model that cannot generate.
    """
    if not callable(getattr(model._module, "generate", None)):
        raise PromptError(f"{model.path} ({type(model._module).__name__}) has no method 'generate': use .trace(...).")
    batch = prepare(model._module, model.tokenizer, inputs, keywords, decoder=False)
    if not isinstance(inputs, Mapping) and "position_ids" not in keywords:
        batch.pop("position_ids", None)
    return batch


def plain_generate(model: LanguageModel, batch: dict[str, Any], *, progress: bool = False, **options: Any) -> Any:
    """Call the module's `generate` on a batch of keyword tensors.

    Args:
        model: the wrapper; its weights are loaded.
        batch: `input_ids`, `attention_mask` and whatever else the module's `generate` takes as tensors.
        progress: show a bar that counts the steps.
        options: further arguments of `generate`.

    Returns:
        What `generate` returns: token ids `[batch, position]`, or transformers' output object when asked for.
    """
    module: Any = model._module
    if not progress:
        return module.generate(**batch, **options)
    with _bar(module, options):
        return module.generate(**batch, **options)


class GenerationOfBlocks:
    """One generation for all invoke blocks of a trace: each has its rows of every step, and of the ids at the end.

    Args:
        model: the wrapper.
        progress: as in `plain_generate`.
        options: further arguments of `generate`.
    """

    def __init__(self, model: LanguageModel, progress: bool, options: dict[str, Any]) -> None:
        self._model = model
        self._progress = progress
        self._options = options

    def prepare(self, inputs: Any = None, **keywords: Any) -> Arguments:
        if inputs is None and not keywords:
            raise PromptError("A block with options only has nothing to run: give it a prompt.")
        self._model.dispatch()
        return (), generation_batch(self._model, inputs, keywords)

    def together(self, inputs: list[Arguments]) -> tuple[Callable[[], Any], list[int]]:
        model, options = self._model, self._options
        batch, counts = join(model._module, model.tokenizer, [keywords for _, keywords in inputs], positions=False)
        if len(inputs) > 1:
            self._refuse_several_rows()
        return lambda: plain_generate(model, batch, progress=self._progress, **options), counts

    def _refuse_several_rows(self) -> None:
        configured = self._options.get("generation_config") or getattr(self._model._module, "generation_config", None)
        for name in ("num_beams", "num_return_sequences"):
            count = self._options.get(name, getattr(configured, name, None)) or 1
            if count > 1:
                raise InvokeError(
                    f"{name}={count} gives each prompt several rows that change places, so blocks cannot keep theirs. "
                    f"Use one block for each generation, or {name}=1."
                )


@contextmanager
def _bar(module: nn.Module, options: Mapping[str, Any]) -> Iterator[None]:
    from tqdm.auto import tqdm

    config = options.get("generation_config") or getattr(module, "generation_config", None)
    total = options.get("max_new_tokens", getattr(config, "max_new_tokens", None))
    with tqdm(total=total, desc="generating", unit="step") as bar:
        handle = module.register_forward_hook(lambda *_: bar.update() and None)
        try:
            yield
        finally:
            handle.remove()


class Generator:
    """`model.generator`: what the model's `generate` gives, addressed like a module."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    @property
    def output(self) -> Any:
        """What `generate` returned: token ids `[batch, position]`. Asking runs the model to its end.

        Raises:
            OutsideTraceError: no trace is open.
            TraceStateError: the open trace is not one of `generate`.
        """
        address = f"{self._model.path}.generator.output"
        run = current_run(self._model)
        if run is None:
            raise outside_trace(address)
        if not run.stepwise:
            raise TraceStateError(
                f"{address} is there in a generation: open {self._model.path}.generate(...). In this trace, of one "
                f"forward, {self._model.path}.output is what the model returned."
            )
        run.ensure_taps()
        run.finish()
        return with_save(run.outcome())

    def __repr__(self) -> str:
        return f"{self._model.path}.generator: .output is what {self._model.path}.generate(...) returned"
