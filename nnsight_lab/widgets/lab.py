"""`Lab`: the widget. It is glue: state and work are a `Session`, pages' requests a `Desk`, what is drawn a `Drawing`.

Traits with a leading underscore are the wire's (`wire.TRAITS`) and only the kernel writes them. The others are the
Lab as Python sees it: they are read off the session's state, and assigning one is an action like a click.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import anywidget
import msgspec
import traitlets
from torch import nn

from ..engine import NNsight
from ..experiments import AnyStep, LensResult, Recipe, Result, SweepResult, TopK
from ..experiments.models import load_model
from . import wire
from .assigning import ASSIGN, VALUES
from .drawing import Drawing
from .errors import LabError
from .opened import note_opened
from .requests import Desk
from .session import Session
from .turns import TURNS

_STATIC = Path(__file__).parent / "static"


class _Live(traitlets.TraitType[Any, Any]):
    """A trait whose value is the session's. Assigning is checked and done by the session, which tells observers."""

    default_value = None

    def get(self, obj: Any, cls: Any = None) -> Any:
        return VALUES[str(self.name)](obj._session)

    def set(self, obj: Any, value: Any) -> None:
        assign = ASSIGN.get(str(self.name))
        if assign is None:
            raise LabError(f"lab.{self.name} is what came out of runs; it cannot be set.")
        assign(obj._session, value)


class Lab(anywidget.AnyWidget):
    """A model's forward as clickable lines, and what they do to the answer.

    >>> from nnsight_lab import Lab, demo
    >>> lab = Lab(demo.load(), demo.EIFFEL, module="transformer.h.11.mlp")
    >>> lab.run().rows[0].token
    ' Paris'

    Show it as a cell's last expression. Everything in it can be read, observed (`lab.observe(f, "result")`) and set
    from Python; setting moves the page.

    Args:
        model: an `NNsight` or `LanguageModel`; a module or a Hugging Face model is wrapped.
        base: the prompt: text, token ids, or anything else that `model.trace` takes as its first argument.
        source: the prompt that patches take from.
        steps: of the experiment, such as `Zero(...)`, see `nnsight_lab.experiments`.
        module: path of the module whose listing is shown; by default that of the selection.
        selection: what is looked at: "transformer.h.11.mlp.source.self_act_0", or the site itself.

    Attributes:
        base, source: the prompts; None where there is none.
        selection: the selected site as text, or None.
        steps: tuple of steps.
        metric: what sweeps are judged by; None lets the Lab choose.
        result: the `Result` on screen; None before a run.
        sweep_result, lens_result: the `SweepResult` and `LensResult` on screen.
        history: tuple of entries with `title`, `detail`, `recipe` and `result`.

    Raises:
        LabError, ExperimentError, PromptError: an argument does not fit.
        TypeError: `model` is no module.
    """

    _view = traitlets.Dict().tag(sync=True)
    _listing = traitlets.Dict().tag(sync=True)
    _answer = traitlets.Dict().tag(sync=True)
    _history = traitlets.Dict().tag(sync=True)
    _status = traitlets.Dict().tag(sync=True)
    _code = traitlets.Dict().tag(sync=True)
    _snapshot = traitlets.Dict().tag(sync=True)

    base = _Live(help="the prompt")
    source = _Live(help="the prompt that patches take from")
    selection = _Live(help="the selected site as text")
    steps = _Live(help="tuple of steps")
    metric = _Live(help="what sweeps are judged by")
    result = _Live(help="the result on screen")
    history = _Live(help="tuple of entries")
    sweep_result = _Live(help="the sweep on screen")
    lens_result = _Live(help="the lens on screen")

    def __init__(
        self,
        model: Any,
        base: Any = None,
        source: Any = None,
        *,
        steps: Any = (),
        module: str | None = None,
        selection: Any = None,
    ) -> None:
        self._esm, self._css = _page()
        self._session = Session(_wrapped(model), self)
        self._drawing = Drawing(self._session)
        self._announced: dict[str, Any] = {}
        self._opened = False
        TURNS.note_main_thread()
        TURNS.follow_cells()
        with self._session.lock:
            self._session.start(base, source, steps, module, selection)
            self._announced = self._values()
        super().__init__(**self._drawing.changed())
        self._desk = Desk(self._session, self._reply)
        self.on_msg(lambda _, content, buffers: self._desk.receive(content))
        self._opened = True
        note_opened(self)
        self._session.open()

    def _values(self) -> dict[str, Any]:
        return {name: read(self._session) for name, read in VALUES.items()}

    # The session's outlet

    def redraw(self) -> int:
        """Send the traits that have changed; the view's revision. For the session."""
        if self._opened:
            with self.hold_sync():
                for name, data in self._drawing.changed().items():
                    self.set_trait(name, data)
        return self._drawing.revision

    def announce(self) -> None:
        """Tell observers of the public traits that have changed. For the session."""
        while self._opened:
            with self._session.lock:
                values, before = self._values(), self._announced
                self._announced = values
            changed = [name for name, value in values.items() if not _same(value, before.get(name))]
            if not changed:
                return
            for name in changed:
                self._notify_trait(name, before.get(name), values[name])

    def _reply(self, reply: wire.Reply, buffer: Any) -> None:
        if self.comm is not None:
            self.send(msgspec.to_builtins(reply), None if buffer is None else [buffer])

    # Doing at once

    def run(self) -> Result:
        """Run the present experiment in the calling thread, and show the result.

        Raises:
            LabError: there is no base prompt.
            ExperimentError, TraceError: as `nnsight_lab.experiments.run`.
        """
        return self._session.agenda.run_at_once().result

    def sweep(
        self,
        step: AnyStep | None = None,
        *,
        sites: str = "",
        positions: Literal["each", "own"] = "each",
        heads: bool = False,
    ) -> SweepResult:
        """Sweep a step over layers and positions in the calling thread, and show the grid.

        Args:
            step: the edit; by default the active step.
            sites: a pattern such as `transformer.h.*.mlp`; by default the step's own site in every layer.
            positions: a cell for each position, or the step's own.
            heads: a cell for each head as well.

        Raises:
            LabError: there is no edit to sweep, or no prompt.
            ExperimentError: as `nnsight_lab.experiments.sweep`.
        """
        asked = wire.StartSweep(step, sites, positions, heads)
        result: SweepResult = self._session.agenda.sweep_at_once(asked).result
        return result

    def lens(self, stream: Literal["residual", "attention", "mlp"] = "residual") -> LensResult:
        """Look at the base prompt through the logit lens in the calling thread, and show it.

        Raises:
            LabError: there is no prompt.
            ExperimentError: as `nnsight_lab.experiments.lens`.
        """
        result: LensResult = self._session.agenda.lens_at_once(wire.StartLens(stream)).result
        return result

    def code(self) -> str:
        """The present experiment as a script in the trace API; it is run first where it has not been.

        Raises:
            LabError, ExperimentError: it cannot be run, or has no script.
        """
        session = self._session
        with session.lock:
            known = session.history.find(session.state.experiment)
        result: Result = known.result if known is not None else self.run()
        return result.code()

    def figure(self, kind: Literal["answer", "activation", "sweep", "lens"] = "answer", **options: Any) -> Any:
        """What is on screen as a plotly figure, made by `nnsight_lab.plots` with `options`.

        Args:
            kind: the answer's table, the selected value, the sweep or the lens.

        Raises:
            LabError: nothing of the kind is on screen.
            PlotError: an option that does not fit.
        """
        if kind == "activation":
            return self._session.activation_figure(**options)
        shown = {"answer": self.result, "sweep": self.sweep_result, "lens": self.lens_result}
        if kind not in shown:
            raise LabError(f'kind: "answer", "activation", "sweep" or "lens", not {kind!r}.')
        if shown[kind] is None:
            raise LabError(f"There is no {kind} on screen to draw.")
        return shown[kind].plot(**options)

    @classmethod
    def from_recipe(cls, recipe: Recipe, model: Any = None) -> Lab:
        """A Lab with the prompts, steps and metric of a recipe.

        Args:
            model: by default the one that the recipe names.

        Raises:
            RecipeError, UnknownSiteError, MovedOperationError: the recipe is not valid, or not for this model.
            ExperimentError: there is no model.
        """
        recipe.validate()
        wrapped = load_model(recipe, None)[0] if model is None else _wrapped(model)
        bound = recipe.bind(wrapped)
        lab = cls(wrapped, bound.base, bound.source, steps=bound.steps)
        if bound.metric is not None and not isinstance(bound.metric, TopK):
            lab.metric = bound.metric
        return lab

    @property
    def recipe(self) -> Recipe:
        """The present experiment as a recipe, which `run` and a script carry out to the same numbers."""
        return self._session.state.experiment.recipe(self._session.model_name)

    def undo(self) -> None:
        """Take the last change of steps, scope, prompts or metric back."""
        self._session.act(wire.Undo())

    def redo(self) -> None:
        """Do again what was undone."""
        self._session.act(wire.Redo())

    def close(self) -> None:
        """Take the Lab off the page and drop its work."""
        self._session.close()
        super().close()


def _same(one: Any, other: Any) -> bool:
    plain = (str, tuple, msgspec.Struct)
    return one is other or (isinstance(one, plain) and isinstance(other, plain) and one == other)


def _wrapped(model: Any) -> NNsight:
    """The model, wrapped if it is not. Raises TypeError."""
    if isinstance(model, NNsight):
        return model
    if isinstance(model, str):
        return load_model(Recipe(model=model), None)[0]
    if not isinstance(model, nn.Module):
        raise TypeError(f"Lab takes a wrapped model or a torch.nn.Module, not {type(model).__name__}.")
    return NNsight(model)


def _page() -> tuple[str, str]:
    """The built page: its module and its style. Raises LabError where it is not built."""
    try:
        return (_STATIC / "lab.js").read_text(encoding="utf-8"), (_STATIC / "lab.css").read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise LabError(
            f"The Lab's page is not built: {error.filename} is missing. In a checkout of the sources run "
            "`npm install` and `npm run build`; an installed package has it, so install nnsight-lab again."
        ) from None
