"""Logit lens: what the model would answer if it stopped after each layer (nostalgebraist 2020, "interpreting GPT: the
logit lens").

The model's own forward is run with all its layers skipped and the value looked at in the place of what the last layer
returns; so the final norm, the unembedding and whatever the model does to its logits afterwards (scaling, capping) are
the model's own, wherever they are and whatever they are called. Seen through it, the residual stream after the last
layer is the model's answer, bit for bit. `norm` and `head` replace this by two modules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from ..engine import NNsight
from ..engine.points import LEAVE
from .cellrows import keywords_of, refuse_unreached
from .errors import ExperimentError, ScopeError, UnknownSiteError
from .grid import expand_sites
from .inputs import Inputs, ready
from .lensresult import LensResult
from .metrics import Answer
from .passes import Place
from .prefix import Prefix, record, takes_use_cache, with_hidden
from .recipe import Prompt
from .sites import parse_site
from .survey import survey
from .tokens import answer_reader, token_texts

# Names of the attention and of the feed-forward part of a layer, in the architectures that transformers has.
_PARTS = {
    "attention": ("self_attn", "attn", "attention", "self_attention", "linear_attn", "mixer"),
    "mlp": ("mlp", "feed_forward", "ffn", "block_sparse_moe", "moe", "mlp_block"),
}
Stream = Literal["residual", "attention", "mlp"]


def lens(
    model: NNsight,
    prompt: Prompt,
    *,
    stream: Stream = "residual",
    sites: str | tuple[str, ...] | None = None,
    token: Answer | None = None,
    norm: str | None = None,
    head: str | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> LensResult:
    """Look at every layer and position through the model's unembedding.

    Args:
        model: a wrapped language model whose layers are a list.
        prompt: text or token ids.
        stream: the residual stream (the embedding, then after each layer), or what each layer's attention or
            feed-forward part puts out.
        sites: a site pattern in place of `stream`; their values are `[1, position, d_model]`.
        token: a token whose logit and rank are kept.
        norm, head: paths of a final norm and an unembedding to use in place of the model's own end; without
            `norm`, `head` alone is applied.
        progress: a function of (sites done, all sites), called between the forwards. What it raises ends the lens.

    Raises:
        ExperimentError: the model has no list of layers that the end could be run after.
        UnknownSiteError: no part of that name; name it with `sites`.
        ScopeError: a value of another shape than the residual stream.
    """
    inputs = ready(model, prompt, "prompt")
    if inputs.ids is None or inputs.ids.shape[0] != 1 or inputs.length is None:
        raise ExperimentError("prompt: a lens needs one prompt of tokens.")
    keywords = keywords_of(model, inputs)
    prefix = record(model._model, keywords, inputs.length, cache=False)
    if not prefix.path:
        raise ExperimentError(f"The model has no layers to look through: {prefix.why_not[-1]}.")
    end = _modules_end(model, norm, head) if head is not None else _own_end(model, prefix)
    if head is None and norm is not None:
        raise ExperimentError("norm: give head as well; the model's own end brings its norm with it.")
    final = end(prefix.hidden(len(prefix.layers)))[0].double()
    vocabulary = final.shape[-1]
    tokenizer = getattr(model, "tokenizer", None)
    chosen = None if token is None else answer_reader(tokenizer, vocabulary)(token)
    values = _values(model, inputs, prefix, stream, sites)
    rows = []
    for _, hidden in values:
        rows.append(_read(end(hidden)[0].double(), final, chosen))
        if progress is not None:
            progress(len(rows), len(values))
    columns = [torch.stack(column) for column in zip(*rows, strict=True)]
    top, probability, logit, rank, kl = columns
    return LensResult(
        sites=tuple(label for label, _ in values),
        tokens=inputs.tokens,
        top=top,
        top_tokens=tuple(token_texts(tokenizer, row) for row in top.tolist()),
        probability=probability,
        kl=kl,
        token=None if chosen is None else token_texts(tokenizer, [chosen])[0],
        token_id=chosen,
        logit=None if chosen is None else logit,
        rank=None if chosen is None else rank.long(),
        final_logits=final,
    )


def _read(logits: Tensor, final: Tensor, token: int | None) -> tuple[Tensor, ...]:
    """Top-1 token, its probability, the token's logit and rank, KL(final || here); `[position]` each."""
    log_p, log_q = final.log_softmax(-1), logits.log_softmax(-1)
    probability, top = log_q.exp().max(-1)
    terms = torch.where(log_p.isneginf(), torch.zeros_like(log_p), log_p.exp() * (log_p - log_q))
    kl = terms.sum(-1).clamp(min=0)
    mine = logits[:, 0 if token is None else token]
    rank = (logits > mine[:, None]).sum(-1)
    return top, probability, mine, rank, kl


def _values(
    model: NNsight, inputs: Inputs, prefix: Prefix, stream: Stream, sites: str | tuple[str, ...] | None
) -> list[tuple[str, Tensor]]:
    if sites is None and stream == "residual":
        after = [(f"{prefix.path}.{layer}", prefix.hidden(layer + 1)) for layer in range(len(prefix.layers))]
        return [("embedding", prefix.hidden(0)), *after]
    paths = expand_sites(model, sites if sites is not None else _part(prefix, stream), "sites")
    wanted: Any = {Place(site, "output"): [(None, "sites")] for site in paths}
    found = survey(model, inputs, wanted, paths, list(wanted))
    refuse_unreached(found, "given")
    values = []
    for number, visit in enumerate(found.visits):
        value = found.values[number]
        if value.shape != prefix.hidden(0).shape:
            raise ScopeError(
                f"sites: {visit.site} has shape {list(value.shape)}; the unembedding takes the residual stream's, "
                f"{list(prefix.hidden(0).shape)}."
            )
        values.append((visit.site, value))
    return values


def _part(prefix: Prefix, stream: Stream) -> str:
    if stream not in _PARTS:
        raise ExperimentError(f'stream: "residual", "attention" or "mlp", not {stream!r}.')
    names = [name for layer in prefix.layers for name in layer._modules]
    for name in _PARTS[stream]:
        if name in names:
            return f"{prefix.path}.*.{name}"
    known = ", ".join(dict.fromkeys(names))
    raise UnknownSiteError(
        f"stream: which of {known} is the {stream} is not known; name it, sites='{prefix.path}.*....'"
    )


def _own_end(model: NNsight, prefix: Prefix) -> Any:
    """The rest of the model's forward after the layers, as a function of what leaves the last of them."""
    keywords = dict(prefix.inputs)
    if takes_use_cache(model._model):
        keywords["use_cache"] = False
    last = len(prefix.layers) - 1

    def end(hidden: Tensor) -> Tensor:
        with torch.no_grad(), model.trace(**keywords) as tracer:
            run = tracer._run
            for layer, call in enumerate(prefix.calls):
                _, point, _ = model.get(f"{prefix.path}.{layer}")._locate("output")
                run.skip(point, call.output)
                if layer == last:
                    run.write(point, LEAVE, lambda output: with_hidden(output, hidden))
            run.finish()
            output = run.result
        return _all_logits(output)

    return end


def _modules_end(model: NNsight, norm: str | None, head: str) -> Any:
    modules = []
    for path, field in ((norm, "norm"), (head, "head")):
        if path:
            site = parse_site(model, path, field)
            if site.operations:
                raise UnknownSiteError(f"{field}: {path!r} is an operation; a module is needed.")
            modules.append(model._model.get_submodule(site.module))

    def end(hidden: Tensor) -> Tensor:
        with torch.no_grad():
            for module in modules:
                hidden = module(hidden)
        return hidden

    return end


def _all_logits(output: Any) -> Tensor:
    logits = getattr(output, "logits", output)
    if not isinstance(logits, Tensor) or logits.dim() != 3:
        raise ExperimentError("The model returns no logits of shape [batch, position, vocabulary] to look through.")
    return logits
