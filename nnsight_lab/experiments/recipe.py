"""The recipe: an experiment as plain data, and its JSON.

A recipe holds no code and no model, so that it can be stored, sent and compared. `version` says how to read it.
Beside the steps it may hold fingerprints of the functions whose operations it names (see `fingerprint`), by which
a recipe made on one version of a library finds its operations in another.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from .errors import RecipeError
from .fingerprint import Fingerprint
from .metrics import AnyMetric, LogitDiff, TopK
from .steps import AnyStep, Capture, Patch, Step, freeze

if TYPE_CHECKING:
    from .result import Result

VERSION = 1

# Text, or token ids.
Prompt = str | tuple[int, ...]


class Recipe(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An experiment on one prompt.

    >>> from nnsight_lab import demo
    >>> from nnsight_lab.experiments import Capture, LogitDiff, Patch, Recipe
    >>> recipe = Recipe(
    ...     model="atlas",
    ...     base="The Eiffel Tower is in the city of",
    ...     source="The Brandenburg Gate is in the city of",
    ...     steps=[Patch("transformer.h.3", positions=[" Tower"]), Capture("transformer.h.11.mlp")],
    ...     metric=LogitDiff(" Berlin", " Paris"),
    ... )
    >>> result = recipe.run()
    >>> result.metric.clean < 0 < result.metric.edited
    True
    >>> result.rows[0].token
    ' Paris'
    >>> result.activations["transformer.h.11.mlp"].shape
    torch.Size([1, 8, 96])
    >>> Recipe.from_json(recipe.to_json()) == recipe
    True

    `print(result)` shows the table before and after, `result.code()` the same experiment as a script. With a model of
    your own, `Recipe(base=..., steps=...).run(model)`.

    Attributes:
        model: name of the model; "atlas" and "smollm2" are the demo models, others are looked up on the hub or are a
            folder. Needed only where no model is passed to `run`.
        base: the prompt that is run clean and edited. None where the inputs are passed to `run`.
        source: the prompt that `Patch` takes activations from.
        steps: one step or several, in order; at one site they act one after the other, sites act as the forward
            reaches them.
        metric: what the run is judged by; a pair of tokens is `LogitDiff`. None compares the outputs only, for models
            that do not end in logits.
        fingerprints: of the functions whose operations the steps name, by site.
        version: of the format.

    Raises:
        RecipeError: a wrapped model as `model`, or steps in the place of a prompt.
    """

    model: str | None = None
    base: Prompt | None = None
    source: Prompt | None = None
    steps: tuple[AnyStep, ...] = ()
    metric: AnyMetric | None = TopK()
    fingerprints: dict[str, Fingerprint] = {}
    version: int = VERSION

    def __post_init__(self) -> None:
        if self.model is not None and not isinstance(self.model, str):
            raise RecipeError(
                f"model: the name of a model, not {type(self.model).__name__}: give a wrapped model to run, "
                "recipe.run(model)."
            )
        freeze(self, "steps", Step)
        for field in ("base", "source"):
            freeze(self, field)
            value = getattr(self, field)
            first = value[0] if isinstance(value, tuple) and value else value
            if isinstance(first, Step):
                raise RecipeError(f"{field}: text or token ids, not a step: name the field, steps=[...].")
        if isinstance(self.metric, tuple) and len(self.metric) == 2:
            msgspec.structs.force_setattr(self, "metric", LogitDiff(*self.metric))

    def __repr__(self) -> str:
        """The fields that are not as by default; fingerprints, which only matter to another version, are left out."""
        fields = zip(msgspec.structs.fields(self), msgspec.structs.astuple(self), strict=True)
        shown = [f"{f.name}={value!r}" for f, value in fields if f.name != "fingerprints" and value != f.default]
        return f"Recipe({', '.join(shown)})"

    # Data

    def to_json(self, indent: int = 2) -> str:
        """The recipe as JSON text. Raises RecipeError where a field holds what it cannot."""
        self.validate()
        data = {"version": self.version, **msgspec.to_builtins(self)}
        return msgspec.json.format(msgspec.json.encode(data), indent=indent).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Recipe:
        """Read a recipe.

        Raises:
            RecipeError: not JSON, an unknown version, or a field that is not valid; the field is named.
        """
        try:
            data = msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise RecipeError(f"This is not JSON: {error}") from error
        return _from_builtins(data)

    def save(self, path: str | Path) -> None:
        """Write the recipe's JSON to a file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Recipe:
        """Read a recipe's JSON file. Raises RecipeError, naming the field, and OSError."""
        return cls.from_json(Path(path).read_bytes())

    def validate(self) -> None:
        """Check every field, as loading does.

        Raises:
            RecipeError: naming the first field that is not valid.
        """
        for number, step in enumerate(self.steps):
            if not isinstance(step, AnyStep):
                raise RecipeError(f"steps[{number}]: a step such as Zero(site=...), not {type(step).__name__}")
        if isinstance(self.metric, type):
            raise RecipeError(
                f"metric: {self.metric.__name__} is a kind of metric; make one, {self.metric.__name__}(...)."
            )
        try:
            data = msgspec.to_builtins(self)
        except (TypeError, ValueError) as error:
            raise RecipeError(f"A recipe holds plain data only: {error}") from error
        _from_builtins({"version": self.version, **data})

    # Steps

    @property
    def edits(self) -> tuple[int, ...]:
        """Numbers of the enabled steps that change something."""
        return tuple(i for i, step in enumerate(self.steps) if step.enabled and not isinstance(step, Capture))

    def with_steps(self, *steps: AnyStep) -> Recipe:
        """The same recipe with other steps."""
        return msgspec.structs.replace(self, steps=steps)

    # Use

    def bind(self, model: Any) -> Recipe:
        """The recipe on `model`: sites checked, moved operations found again, fingerprints taken.

        Raises:
            UnknownSiteError, MovedOperationError: a site cannot be found.
        """
        from .binding import bind
        from .inputs import ready

        return bind(self, model, None if self.base is None else ready(model, self.base, "base")).recipe

    def run(self, model: Any = None, **options: Any) -> Result:
        """Run the recipe; see `nnsight_lab.experiments.run`."""
        from .execute import run

        return run(self, model, **options)

    def code(self, model: Any = None, **options: Any) -> str:
        """A script in the trace API that does what the recipe does; see `Result.code`. The recipe is run once, because
        the order of the sites and the shapes of their values are known from a run only."""
        return self.run(model, **options).code()


def _from_builtins(data: Any) -> Recipe:
    if isinstance(data, dict):
        version = data.get("version", VERSION)
        if isinstance(version, int) and version > VERSION:
            raise RecipeError(
                f"version: this recipe has version {version}, but this nnsight-lab reads up to {VERSION}: upgrade it."
            )
    try:
        recipe = msgspec.convert(data, Recipe)
    except msgspec.ValidationError as error:
        raise RecipeError(_with_path(error)) from error
    for number, step in enumerate(recipe.steps):
        if step.generation_step is not None:
            raise RecipeError(
                f"steps[{number}].generation_step: recipes run one forward, not a generation; remove the field."
            )
        patches = isinstance(step, Patch) and step.enabled and step.from_prompt == "source"
        if patches and recipe.source is None and recipe.base is not None:
            raise RecipeError(
                f'steps[{number}].from_prompt: the step patches from "source", but the recipe has no source prompt.'
            )
    return recipe


_AT = re.compile(r"(?s)(.*) - at `\$\.?(.*)`")


def _with_path(error: msgspec.ValidationError) -> str:
    """The error with the field's path first, and the kinds there are where the kind is unknown."""
    found = _AT.fullmatch(str(error))
    message, path = found.groups() if found else (str(error), "")
    if path.endswith("kind") and message.startswith("Invalid value"):
        family = AnyMetric if path.startswith("metric") else AnyStep
        kinds = ", ".join(sorted(kind.__struct_config__.tag for kind in family.__args__))
        message = f"{message}; there are: {kinds}"
    return f"{path or 'recipe'}: {message}"
