"""What is known of a Lab's model and prompts, as the page is shown it: drawn once, and kept until it changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..engine import NNsight, SourceUnavailableError
from ..experiments import Result, SiteReport
from ..experiments.tokens import token_texts
from . import wire
from .history import Captured
from .loading import needs_loading
from .naming import short_site
from .state import AnyPrompt, Experiment, Given
from .wire import Target


class Sights:
    def __init__(self, model: NNsight) -> None:
        self._model = model
        self._prompts: dict[Any, wire.PromptView] = {}

    @property
    def model(self) -> wire.ModelFacts:
        module = self._model._model
        first = next(module.parameters(), None)
        return wire.ModelFacts(
            name=self._model._instruments.label,
            kind=type(module).__name__,
            parameters=sum(p.numel() for p in module.parameters()),
            dtype="" if first is None else str(first.dtype).removeprefix("torch."),
            device="" if first is None else str(first.device),
            loaded=not needs_loading(self._model),
            takes_text=getattr(self._model, "tokenizer", None) is not None,
            module_count=sum(1 for _ in module.modules()),
        )

    def prompt(self, prompt: AnyPrompt | None) -> wire.PromptView:
        if prompt is None or isinstance(prompt, Given):
            return wire.PromptView()
        tokenizer = getattr(self._model, "tokenizer", None)
        ids = tokenizer(prompt)["input_ids"] if isinstance(prompt, str) else list(prompt)
        if not ids:
            return wire.PromptView(
                text=prompt if isinstance(prompt, str) else None, length=0, error="The prompt has no tokens."
            )
        tokens = tuple(wire.TokenText(i, t) for i, t in zip(ids, token_texts(tokenizer, ids), strict=False))
        return wire.PromptView(prompt if isinstance(prompt, str) else "".join(t.text for t in tokens), tokens, len(ids))

    def alignment(self, experiment: Experiment) -> wire.Alignment:
        return wire.Alignment()

    def steps(self, experiment: Experiment, reports: Sequence[SiteReport]) -> tuple[wire.StepView, ...]:
        by = {r.step: r for r in reports}
        return tuple(
            wire.StepView(
                s,
                f"{type(s).__name__} {s.site.rpartition('.')[2]}",
                short_site(s.site),
                report=by.get(n),
                error="there is no source prompt to patch from"
                if s.enabled and experiment.source is None and getattr(s, "from_prompt", "") == "source"
                else "",
            )
            for n, s in enumerate(experiment.steps)
        )

    def listing(self, module: str, opened: Sequence[str]) -> wire.ListingView:
        try:
            listing = self._model.get(module).source(everything=True).listing
        except SourceUnavailableError as error:
            return wire.ListingView(module, (wire.ListingBlock(module, module, error=str(error)),))
        prefix = f"{module}.source." if module else "source."
        return wire.ListingView(
            module,
            (
                wire.ListingBlock(
                    module,
                    listing.name,
                    listing.filename,
                    listing.first_line,
                    tuple((wire.Span("plain", row),) for row in listing.rows),
                    tuple(
                        wire.OperationView(
                            o.label, o.kind, o.line, o.column, o.end_line, o.end_column, prefix + o.label
                        )
                        for o in listing.operations
                    ),
                ),
            ),
        )

    def answer(self, run: str, result: Result, captured: dict[Target, Captured]) -> wire.Answer:
        from ..experiments.views import headline

        return wire.Answer(
            run,
            headline(result),
            result.rows,
            result.kl,
            result.max_difference,
            result.has_edits,
            result.sites,
            tuple(
                wire.CapturedView(
                    t,
                    short_site(t.site),
                    (wire.TensorFacts((), tuple(v.edited.shape), str(v.edited.dtype).removeprefix("torch.")),),
                )
                for t, v in captured.items()
            ),
            result.timing.total,
            result.notes,
        )
