"""`LanguageModel`: a wrapped Hugging Face language model with its tokenizer.

Given a name or path, only the configuration and the tokenizer are read at first: the tree and every `.source` can be
browsed without weights. The first trace loads them; envoys that were taken before stay valid.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Self

from torch import Tensor, nn

from ..engine import NNsight, Tracer
from ..engine.errors import InvokeError
from ..engine.openruns import current_run
from ..engine.points import Arguments
from ..engine.renaming import RenameKey
from ..engine.save import with_save
from ..engine.sharedrun import SharedRun
from ..engine.trace import refuse_unready, take_options
from .decoders import is_encoder_decoder
from .generation import GenerationOfBlocks, Generator, generation_batch, plain_generate
from .joining import join
from .loading import build_empty, default_automodel, load_config, load_tokenizer, load_weights
from .origin import loading_line, remember_origin
from .outputs import index_logits_by_position
from .prompts import PromptError, prepare

_CONFIG_OPTIONS = ("trust_remote_code", "revision", "token", "cache_dir", "local_files_only", "subfolder")


class LanguageModel(NNsight):
    """A language model, causal or encoder-decoder, and its tokenizer.

    Its output is transformers' own object; `output[0, -1, token]`, by a tuple, indexes `output.logits`.

    Args:
        model: a name on the Hugging Face hub, the path of a local folder, or a module.
        tokenizer: a tokenizer, or a name or path of one; by default the model's own. For a module without one, text
            prompts are refused with an error.
        device_map: as in transformers, used when the weights are loaded.
        dispatch: load the weights now instead of at the first trace.
        dtype: weights' dtype, as in transformers (`torch_dtype` is the same).
        automodel: the transformers class that makes the model; by default AutoModelForCausalLM, or
            AutoModelForSeq2SeqLM where the configuration is of an encoder-decoder model.
        name: how messages and listings call it.
        rename: further names for modules, as in `NNsight`: `{"transformer.h": "layers"}`.
        options: further arguments of `from_pretrained`.

    Raises:
        ModelUnavailableError: the model is not on this machine and the hub cannot be reached.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | nn.Module,
        *,
        tokenizer: Any = None,
        device_map: Any = None,
        dispatch: bool = False,
        dtype: Any = None,
        torch_dtype: Any = None,
        automodel: Any = None,
        name: str = "model",
        rename: Mapping[RenameKey, str | Sequence[str]] | None = None,
        **options: Any,
    ) -> None:
        if dtype is not None and torch_dtype is not None and dtype != torch_dtype:
            raise ValueError(f"dtype={dtype} and torch_dtype={torch_dtype} are two names of one option; give one.")
        if isinstance(model, NNsight):
            model = model._model
        if not isinstance(model, (str, os.PathLike, nn.Module)):
            raise TypeError(
                f"LanguageModel takes a hub name, the path of a local folder or a torch.nn.Module, not {model!r}."
            )
        load: dict[str, Any] | None = None
        made_by = ""
        if isinstance(model, nn.Module):
            loading = dict(options, device_map=device_map, dtype=dtype or torch_dtype, automodel=automodel)
            given = sorted(key for key, value in loading.items() if value is not None)
            if given:
                raise TypeError(f"{', '.join(given)}: options of loading, but the model was given as a module.")
            module = model
        else:
            named = {"tokenizer": tokenizer, "device_map": device_map, "dtype": dtype or torch_dtype}
            made_by = loading_line(os.fspath(model), {**named, "automodel": automodel, **options})
            where = os.fspath(model)
            about = {key: options[key] for key in _CONFIG_OPTIONS if key in options}
            config = options.pop("config", None) or load_config(where, **about)
            if automodel is None:
                automodel = default_automodel(config)
            if tokenizer is None:
                tokenizer = load_tokenizer(where, **about)
            load = dict(options, config=config)
            if device_map is not None:
                load["device_map"] = device_map
            if dtype is not None or torch_dtype is not None:
                load["dtype"] = dtype if dtype is not None else torch_dtype
            remote = {"trust_remote_code": options["trust_remote_code"]} if "trust_remote_code" in options else {}
            module = build_empty(automodel, config, **remote)
            load = {"automodel": automodel, "name": where, "options": load}
        if isinstance(tokenizer, (str, os.PathLike)):
            tokenizer = load_tokenizer(os.fspath(tokenizer))
        super().__init__(module, name=name, rename=rename)
        if "transformers" in sys.modules:
            index_logits_by_position()
        self.__dict__["_tokenizer"] = _for_batches(tokenizer, module)
        self.__dict__["_load"] = load
        remember_origin(self, made_by)
        if dispatch:
            self.dispatch()

    @property
    def tokenizer(self) -> Any:
        """The tokenizer; pads on the left (for an encoder on the right), with its end-of-text token where it has no
        pad token."""
        return self.__dict__["_tokenizer"]

    @tokenizer.setter
    def tokenizer(self, value: Any) -> None:
        self.__dict__["_tokenizer"] = _for_batches(value, self._module)

    @property
    def dispatched(self) -> bool:
        """Whether the weights are loaded."""
        return self.__dict__["_load"] is None

    def dispatch(self) -> None:
        """Load the weights now. Does nothing when they are loaded."""
        load = self.__dict__["_load"]
        if load is not None:
            self._replace_module(load_weights(load["automodel"], load["name"], **load["options"]))
            self.__dict__["_load"] = None

    def trace(self, inputs: Any = None, **keywords: Any) -> Tracer:
        """A context in which the model runs on a prompt while the block reads and edits its sites.

        Args:
            inputs: str, list of str (one batch, padded on the left), token ids as int, list or tensor, or a mapping
                of the forward's keywords. Without any, prompts are given to `tracer.invoke(...)` blocks.
            keywords: keywords of the forward; one that it does not take is refused by the model itself.

                The trace's own options `validate` and `scan` are those of `NNsight.trace`.

        Raises:
            PromptError: a prompt without tokens, text without a tokenizer, or something that is no prompt.
            ScanError: with `scan=True`, the forward needs the values of tensors.
            NotImplementedError: `remote` was asked for.
        """
        options = take_options(self._module, keywords)
        if inputs is None and not keywords:
            return self._tracer_of_blocks(options, lambda: _refuse_nothing(None, {}, "trace"))
        args, kwargs = self._invoked(inputs, **keywords)
        return self._tracer(options, args, kwargs)

    def _invoked(self, inputs: Any = None, **keywords: Any) -> Arguments:
        _refuse_nothing(inputs, keywords, "trace")
        self.dispatch()
        return (), prepare(self._module, self.tokenizer, inputs, keywords)

    def _join(self, inputs: list[Arguments]) -> tuple[Arguments, list[int]]:
        joined, counts = join(self._module, self.tokenizer, [keywords for _, keywords in inputs])
        return ((), joined), counts

    def scan(self, inputs: Any = None, **keywords: Any) -> Tracer:
        """A trace of a prompt on fake tensors: shapes at every site, no computation; the weights are not loaded for it.

        Arguments are those of `trace`. See `NNsight.scan`.

        Raises:
            PromptError: as in `trace`.
            ScanError: inside the block, when the forward or the block needs the values of tensors.
        """
        _refuse_nothing(inputs, keywords, "scan")
        return super().scan(**prepare(self._module, self.tokenizer, inputs, keywords))

    def _sibling(self) -> Self:
        self.dispatch()
        return super()._sibling()

    def generate(self, inputs: Any = None, *, progress: bool = False, validate: bool = False, **options: Any) -> Any:
        """A context in which the model generates from a prompt while the block reads and edits its steps' sites.

        Step i is the model's i-th forward; `for step in tracer.iter[:]` goes through them. Outside such loops, sites
        are those of the first step. Everything else is as in transformers: the cache, sampling, beams (whose rows the
        block sees, `num_beams` for each prompt), the end at an end-of-text token.

        Args:
            inputs: what `trace` takes.
            progress: show a bar that counts the steps.
            validate: check assignments against what they replace, as in `trace`.
            options: arguments of transformers' `generate`: max_new_tokens, do_sample, eos_token_id, ...

        Without a prompt, `tracer.invoke(...)` blocks give some: those inside this context, or those that stand before
        the call in an open trace without an input, `with model.trace() as tracer:`. The call then runs them, as the
        steps of one generation, and returns the ids.

        Returns:
            The trace: `tracer.result` is what `generate` returned, token ids `[batch, position]`. Where it runs the
            blocks of an open trace, those ids themselves.

        Raises:
            PromptError: as `trace`, and for a model that cannot generate.
            InvokeError: several blocks together with beams or several sequences for each prompt.
            NotImplementedError: `remote` or `scan` was asked for.
        """
        refuse_unready(options, "generate")
        if options.pop("scan", False):
            raise NotImplementedError(
                "generate(scan=...): which token comes next needs numbers, which fake tensors have not. Use model.scan "
                "for the shapes of one forward."
            )
        tensors = {key: options.pop(key) for key in tuple(options) if isinstance(options[key], Tensor)}
        if inputs is None and not tensors:
            return self._generate_blocks(options, progress, validate)
        self.dispatch()
        batch = generation_batch(self, inputs, tensors)
        return Tracer(
            self,
            self._instruments,
            lambda: plain_generate(self, batch, progress=progress, **options),
            validate,
            stepwise=True,
        )

    def _generate_blocks(self, options: dict[str, Any], progress: bool, validate: bool) -> Any:
        joining = GenerationOfBlocks(self, progress, options)
        run = current_run(self)
        if isinstance(run, SharedRun) and run.awaits_model:
            return with_save(run.run_by(joining))
        if isinstance(run, SharedRun) and run.one_by_one:
            raise InvokeError(
                "The source of this trace's blocks cannot be found, so each has run alone already, as one forward: "
                f"open {self.path}.generate(...) for each prompt."
            )
        return Tracer(
            self,
            self._instruments,
            lambda: _refuse_nothing(None, {}, "generate"),
            validate,
            joining=joining,
            stepwise=True,
        )

    @property
    def generator(self) -> Generator:
        """Stands for `generate` in a trace of it: `model.generator.output` is what it returned."""
        return Generator(self)

    def _rewrapped(self, module: nn.Module) -> LanguageModel:
        copied = type(self)(module, tokenizer=self.tokenizer, name=self._instruments.label, rename=self._given_names)
        copied.__dict__["_load"] = self.__dict__["_load"]
        return copied

    def __reduce__(self) -> Any:
        made = (
            type(self),
            self._module,
            self.tokenizer,
            self._instruments.label,
            self.__dict__["_load"],
            self._given_names,
        )
        return _unpickled, made, {"_edits": self.__dict__["_edits"]}


def _refuse_nothing(inputs: Any, keywords: Mapping[str, Any], method: str) -> None:
    if not keywords and (inputs is None or (isinstance(inputs, Mapping) and not inputs)):
        raise PromptError(f"There is nothing to run: give a prompt, model.{method}('The Eiffel Tower is in').")


def _unpickled(
    kind: type[LanguageModel], module: nn.Module, tokenizer: Any, name: str, load: Any, rename: Any = None
) -> LanguageModel:
    model = kind(module, tokenizer=tokenizer, name=name, rename=rename)
    model.__dict__["_load"] = load
    return model


def _for_batches(tokenizer: Any, module: nn.Module) -> Any:
    if tokenizer is not None:
        tokenizer.padding_side = "right" if is_encoder_decoder(module) else "left"
        if tokenizer.pad_token is None and tokenizer.eos_token is not None:
            tokenizer.pad_token = tokenizer.eos_token
    return tokenizer
