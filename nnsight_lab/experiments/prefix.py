"""The clean run of a prompt, recorded layer by layer, so that other runs can start in its middle.

Most transformers are a list of layers that are called once each, in order, and hand nothing on but the residual
stream. `record` runs the prompt once with hooks on the members of every `ModuleList`, takes the outermost list that
behaves so, and keeps what enters and leaves each of its layers. In the same run it lends the model a key-value cache
whose layers note what is put in: with the clean keys and values a later run can compute the last positions alone.
A cache of any kind but plain (sliding or not) attention is not used. Whether reuse is sound in the model at hand is
not decided here: it is tested on a cell of the sweep, by comparison with a full run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from .errors import ExperimentError

KeyValues = tuple[Tensor, Tensor]

# What transformers calls the keyword of a cache, now and before.
_CACHE_NAMES = ("cache", "past_key_values")


@dataclass(frozen=True, eq=False)
class LayerCall:
    """What one layer received and returned in the clean run."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: Any


@dataclass(frozen=True, eq=False)
class Prefix:
    """A recorded clean run.

    Attributes:
        inputs: the forward's keywords, one prompt of `length` tokens.
        logits: `[vocabulary]` at the last position.
        output: what the model returned.
        path: dotted path of the list of layers; empty when the model has none that prefix reuse could go by.
        layers: the modules of that list, in calling order.
        calls: what each of them received and returned.
        keys_values: clean keys and values of each cache layer, `[1, heads, position, head_dim]`; empty when the
            model's cache cannot be used.
        cache_name: the forward's keyword for the cache.
        why_not: why `path` or `keys_values` is empty.
    """

    inputs: dict[str, Any]
    length: int
    logits: Tensor
    output: Any
    path: str = ""
    layers: tuple[nn.Module, ...] = ()
    calls: tuple[LayerCall, ...] = ()
    keys_values: tuple[KeyValues, ...] = ()
    cache_name: str = ""
    why_not: tuple[str, ...] = ()

    def hidden(self, layer: int) -> Tensor:
        """The residual stream that enters `layer`, `[1, position, d_model]`; or leaves the last."""
        if layer == len(self.layers):
            return hidden_of(self.calls[-1].output)
        call = self.calls[layer]
        return input_hidden(call.args, call.kwargs)


def hidden_of(output: Any) -> Tensor:
    """The residual stream in a layer's output: the tensor itself or a tuple's first element. Raises TypeError."""
    found = output[0] if isinstance(output, (tuple, list)) and output else output
    if not isinstance(found, Tensor):
        raise TypeError(f"a layer returned {type(output).__name__}, in which there is no residual stream")
    return found


def with_hidden(output: Any, hidden: Tensor) -> Any:
    """`output` with its residual stream replaced."""
    return type(output)((hidden, *output[1:])) if isinstance(output, (tuple, list)) else hidden


def input_hidden(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tensor:
    """The residual stream among a layer's arguments: the first of them. Raises TypeError."""
    found = args[0] if args else next(iter(kwargs.values()), None)
    if not isinstance(found, Tensor):
        raise TypeError("a layer's first argument is not a tensor")
    return found


def with_input_hidden(
    args: tuple[Any, ...], kwargs: dict[str, Any], hidden: Tensor
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A layer's arguments with the residual stream replaced."""
    if args:
        return (hidden, *args[1:]), kwargs
    return args, {**kwargs, next(iter(kwargs)): hidden}


def accepts(module: nn.Module, name: str) -> bool:
    """Whether the module's forward names the keyword `name`."""
    return name in inspect.signature(module.forward).parameters


def takes_use_cache(module: nn.Module) -> bool:
    """Whether the module's forward can be told `use_cache`: by name, or beside a cache among other keywords."""
    parameters = inspect.signature(module.forward).parameters
    others = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return "use_cache" in parameters or (others and any(name in parameters for name in _CACHE_NAMES))


def last_logits(output: Any) -> Tensor:
    """Logits `[batch, vocabulary]` at the last position. Raises ExperimentError where the output has none."""
    logits = getattr(output, "logits", None)
    if logits is None:
        logits = next(iter(output.values()), None) if isinstance(output, Mapping) else output
        logits = logits[0] if isinstance(logits, (tuple, list)) and logits else logits
    if not isinstance(logits, Tensor) or logits.dim() not in (2, 3):
        raise ExperimentError("The model returns no logits of shape [batch, position, vocabulary] to judge a cell by.")
    return logits[:, -1] if logits.dim() == 3 else logits


def short_output(module: nn.Module) -> dict[str, Any]:
    """Keywords that make the model compute the last position's logits alone, where it can."""
    return {"logits_to_keep": 1} if accepts(module, "logits_to_keep") else {}


def record(
    module: nn.Module,
    inputs: dict[str, Any],
    length: int,
    forward: Callable[[dict[str, Any]], Any] | None = None,
    cache: bool = True,
) -> Prefix:
    """Run `module` on one prompt and record the run.

    Args:
        inputs: keyword arguments of the forward, for a batch of one prompt.
        length: tokens of the prompt.
        cache: record keys and values.
        forward: runs the model on keywords and returns its output, where the run is to be observed.

    Raises:
        ExperimentError: the model returns no logits.
    """
    notes: list[str] = []
    held, cache_name = _new_cache(module, notes) if cache else (None, "")
    seen: list[KeyValues | None] = []
    extra = dict(short_output(module))
    if held is not None:
        seen = _note_updates(held)
        extra |= {cache_name: held, "use_cache": True}
    elif takes_use_cache(module):
        extra["use_cache"] = False
    try:
        with torch.no_grad(), _recorded(module) as calls:
            keywords = {**inputs, **extra}
            output = module(**keywords) if forward is None else forward(keywords)
    except Exception as error:
        if held is None:
            raise
        # Some models need a cache of their own kind; what else is wrong shows again without one.
        made = record(module, inputs, length, forward, cache=False)
        return replace(made, why_not=(f"it refuses a cache of keys and values: {error}", *made.why_not))
    path, found = _chain(module, calls)
    if not path:
        notes.append("no list of layers is called once each, in order, passing on the residual stream alone")
    keys_values = tuple(pair for pair in seen if pair is not None)
    usable = bool(seen) and len(keys_values) == len(seen)
    if held is not None and not (usable and all(k.shape[-2] == length for k, _ in keys_values)):
        notes.append("its layers do not all put their keys and values in the cache")
        keys_values = ()
    return Prefix(
        inputs=inputs,
        length=length,
        logits=last_logits(output)[0],
        output=output,
        path=path,
        layers=tuple(layer for layer, _ in found),
        calls=tuple(call for _, call in found),
        keys_values=keys_values,
        cache_name=cache_name,
        why_not=tuple(notes),
    )


@contextmanager
def _recorded(root: nn.Module) -> Iterator[list[tuple[nn.Module, LayerCall]]]:
    """Record the calls of all members of module lists, in the order in which they return."""
    calls: list[tuple[nn.Module, LayerCall]] = []

    def note(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        calls.append((module, LayerCall(args, kwargs, output)))

    members = {layer for _, layers in _lists(root) for layer in layers}
    handles = [member.register_forward_hook(note, with_kwargs=True) for member in members]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


def _lists(root: nn.Module) -> list[tuple[str, list[nn.Module]]]:
    named = root.named_modules()
    return [(path, list(module)) for path, module in named if isinstance(module, nn.ModuleList) and len(module)]


def _chain(root: nn.Module, calls: list[tuple[nn.Module, LayerCall]]) -> tuple[str, list[tuple[nn.Module, LayerCall]]]:
    """The list with most parameters whose members ran once each, in order, each on what the one before returned."""
    best: tuple[int, str, list[tuple[nn.Module, LayerCall]]] = (0, "", [])
    for path, layers in _lists(root):
        members = set(layers)
        ran = [(module, call) for module, call in calls if module in members]
        if [module for module, _ in ran] != layers or not _flows([call for _, call in ran]):
            continue
        size = sum(parameter.numel() for layer in layers for parameter in layer.parameters())
        if size > best[0]:
            best = (size, path, ran)
    return best[1], best[2]


def _flows(calls: list[LayerCall]) -> bool:
    try:
        given = [input_hidden(call.args, call.kwargs) for call in calls]
        left = [hidden_of(call.output) for call in calls]
    except TypeError:
        return False
    shapes = {tensor.shape for tensor in (*given, *left)}
    if len(shapes) != 1 or len(given[0].shape) != 3:
        return False
    return all(a is b or torch.equal(a, b) for a, b in zip(left, given[1:], strict=False))


def _new_cache(module: nn.Module, notes: list[str]) -> tuple[Any, str]:
    """A key-value cache for the model and the keyword it goes by, or None with the reason noted."""
    name = next((key for key in _CACHE_NAMES if accepts(module, key)), "")
    config = getattr(module, "config", None)
    if not name or config is None or not takes_use_cache(module):
        notes.append("its forward takes no key-value cache")
        return None, ""
    from transformers import PreTrainedModel
    from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

    if not isinstance(module, PreTrainedModel) or getattr(config, "is_encoder_decoder", False):
        notes.append("its forward takes no decoder's key-value cache")
        return None, ""
    cache = DynamicCache(config=config)
    if not cache.layers or any(type(layer) not in (DynamicLayer, DynamicSlidingWindowLayer) for layer in cache.layers):
        notes.append("its cache holds more than the keys and values of attention")
        return None, ""
    return cache, name


def _note_updates(cache: Any) -> list[KeyValues | None]:
    """Make the cache's layers note the keys and values put in; a second update of one layer voids its note."""
    seen: list[KeyValues | None] = [None] * len(cache.layers)
    done: set[int] = set()

    def noting(index: int, update: Any) -> Any:
        def noted(keys: Tensor, values: Tensor, *args: Any, **kwargs: Any) -> Any:
            seen[index] = None if index in done else (keys, values)
            done.add(index)
            return update(keys, values, *args, **kwargs)

        return noted

    for index, layer in enumerate(cache.layers):
        layer.update = noting(index, layer.update)
    return seen


def cropped_cache(module: nn.Module, prefix: Prefix, start: int, rows: list[int]) -> Any:
    """A cache that holds the clean keys and values of the positions before `start`.

    Args:
        rows: for each cache layer, the batch size it will be used with; the rows share memory.
    """
    from transformers.cache_utils import DynamicCache

    cache = DynamicCache(config=module.config)
    for layer, (keys, values), count in zip(cache.layers, prefix.keys_values, rows, strict=True):
        layer.update(keys[..., :start, :], values[..., :start, :])
        layer.keys = layer.keys.expand(count, -1, -1, -1)
        layer.values = layer.values.expand(count, -1, -1, -1)
    return cache
