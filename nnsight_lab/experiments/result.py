"""What running a recipe gives.

All of it is data on the CPU: tensors, and frozen structs that go to JSON. Views (tables, frames, code, files) are
made from it by the modules that the methods import.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from .errors import ExperimentError
from .metrics import kl_divergence
from .plotted import Plotted
from .recipe import Recipe
from .steps import Capture

if TYPE_CHECKING:
    from torch import Tensor

    from .plan import Plan


class TokenRow(Struct, frozen=True):
    """One token of the top-k table, before and after the edits. Probabilities from 0 to 1, rank 0 is the likeliest."""

    token_id: int
    token: str
    clean_logit: float
    edited_logit: float
    clean_probability: float
    edited_probability: float
    clean_rank: int
    edited_rank: int

    @property
    def logit_difference(self) -> float:
        """Edited minus clean."""
        return self.edited_logit - self.clean_logit

    @property
    def probability_difference(self) -> float:
        """Edited minus clean."""
        return self.edited_probability - self.clean_probability


# captured: the step keeps a value. changed: the edits changed the logits and this one reached them. The other three are
# the three ways of having no effect, and disabled.
Outcome = Literal["captured", "changed", "never ran", "no downstream effect", "effect zero to rounding", "disabled"]


class SiteReport(Struct, frozen=True):
    """What became of one step.

    Attributes:
        step: its number in the recipe.
        kind: its kind, "zero".
        site, io: where it acts.
        outcome: see `Outcome`.
        message: the outcome in a sentence, with the reason.
        shape, dtype, device: of the value at the site in the clean run; empty where it never ran.
        calls: how often the clean run called the site.
        entries: how many entries the edit selects, over all its calls; 0 for captures and edits not carried out.
        change: largest absolute change that the edit made to one of them, at the site and in the edited run; None
            where nothing was edited.
        relative_change: Euclidean norm of that change over the norm of the entries before; None where that is 0.
    """

    step: int
    kind: str
    site: str
    io: str
    outcome: Outcome
    message: str
    shape: tuple[int, ...] = ()
    dtype: str = ""
    device: str = ""
    calls: int = 0
    entries: int = 0
    change: float | None = None
    relative_change: float | None = None

    @property
    def ran(self) -> bool:
        """Whether the forward reached the site."""
        return self.calls > 0


class Timing(Struct, frozen=True):
    """Seconds that each part took; 0 for a part that was not needed."""

    clean: float = 0.0
    source: float = 0.0
    edited: float = 0.0
    reach: float = 0.0

    @property
    def total(self) -> float:
        return self.clean + self.source + self.edited + self.reach


class MetricValue(Struct, frozen=True):
    """The recipe's metric on the clean and on the edited run; `name` tells the tokens: `Probability ' Paris'`."""

    name: str
    clean: float
    edited: float

    @property
    def difference(self) -> float:
        """Edited minus clean."""
        return self.edited - self.clean


@dataclass(frozen=True, eq=False)
class Result(Plotted):
    """The clean run and the edited run of a recipe, compared.

    Attributes:
        recipe: as it was run: labels that had moved are those of the present source.
        tokens, source_tokens: text of each token of the prompts; empty for inputs that are no tokens.
        clean_logits, edited_logits: `[batch, vocabulary]` at the last position, in the model's dtype. For a model whose
            output is no logits, the first tensor of its output.
        full_clean_logits, full_edited_logits: `[batch, position, vocabulary]`, only with `run(..., full_logits=True)`.
        rows: the top-k table for the first batch row: the union of the k likeliest tokens of both runs, by clean
            rank; empty where the output is no logits.
        kl: KL(clean || edited) in nats for the first batch row; None where the output is no logits.
        metric: the recipe's metric; None for `TopK` and for recipes without one.
        activations, clean_activations: what `Capture` steps kept in the edited and in the clean run. The key is the
            site, with `:input` after it for inputs and `[n]` after that where the step captures several calls.
        sites: one report for each step.
        plan: how the run was carried out, from which the code is made.
        notes: what the reader should know: labels that moved, parts that were not needed, answers that are another
            token than was likely meant.
        timing: of the parts, in seconds.
        versions: of Python packages that the numbers may depend on.
    """

    recipe: Recipe
    tokens: tuple[str, ...]
    source_tokens: tuple[str, ...]
    clean_logits: Tensor
    edited_logits: Tensor
    rows: tuple[TokenRow, ...]
    kl: float | None
    metric: MetricValue | None
    sites: tuple[SiteReport, ...]
    plan: Plan
    activations: dict[str, Tensor] = field(default_factory=dict)
    clean_activations: dict[str, Tensor] = field(default_factory=dict)
    full_clean_logits: Tensor | None = None
    full_edited_logits: Tensor | None = None
    notes: tuple[str, ...] = ()
    timing: Timing = field(default_factory=Timing)
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def max_difference(self) -> float:
        """Largest absolute difference between edited and clean output at the last position."""
        if not self.has_edits:
            return 0.0
        if self.clean_logits.shape != self.edited_logits.shape:
            return float("nan")
        difference = (self.edited_logits.double() - self.clean_logits.double()).abs()
        return float(difference.nan_to_num(nan=0.0, posinf=float("inf")).max()) if difference.numel() else 0.0

    @property
    def has_edits(self) -> bool:
        """Whether an edit was carried out; without one the clean run stands for the edited one."""
        return any(not isinstance(self.recipe.steps[action.step], Capture) for action in self.plan.actions)

    def logit_difference(self, correct: int, wrong: int) -> tuple[float, float]:
        """Logit of token id `correct` minus that of `wrong`, in the clean and in the edited run."""
        pairs = [logits[0].double() for logits in (self.clean_logits, self.edited_logits)]
        clean, edited = (float(logits[correct] - logits[wrong]) for logits in pairs)
        return clean, edited

    def kl_by_position(self) -> list[float]:
        """KL(clean || edited) in nats at each position. Raises ExperimentError without full logits."""
        if self.full_clean_logits is None or self.full_edited_logits is None:
            raise ExperimentError("Only the last position was kept: run the recipe with full_logits=True.")
        pairs = zip(self.full_clean_logits[0], self.full_edited_logits[0], strict=True)
        return [kl_divergence(clean, edited) for clean, edited in pairs]

    # Views

    def to_pandas(self) -> Any:
        """The top-k table as a pandas DataFrame. Raises ExperimentError where pandas is not installed."""
        from .views import token_frame

        return token_frame(self)

    def sites_to_pandas(self) -> Any:
        """The table of sites as a pandas DataFrame. Raises ExperimentError where pandas is not installed."""
        from .views import site_frame

        return site_frame(self)

    def code(self) -> str:
        """A script in the trace API that computes `clean_logits` and `edited_logits` bit for bit.

        It loads the model where that is known: by the recipe's name, or as `nnsight_lab.demo.load` or
        `LanguageModel(name)` made it. What it cannot know stands at its top to be filled in: the line `model = ...`
        for a module that was wrapped by hand, `prompt = ...` for inputs passed to `run`.

        Raises:
            ExperimentError: a later call of a module is used, which the trace API has no line for.
        """
        from .code import export

        return export(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the tensors as plain data, ready for JSON; NaN and infinities are None."""
        from .storage import result_data

        return result_data(self)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the result to a folder: `result.json` and `tensors.safetensors`. The folder is made.

        Args:
            overwrite: write into a folder that holds something; a result in it is replaced, other files stay.

        Raises:
            StoredResultError: the folder holds something.
        """
        from .storage import save_result

        save_result(self, Path(path), overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Result:
        """Read a folder that `save` wrote. Raises StoredResultError where it holds no result."""
        from .storage import load_result

        return load_result(Path(path))

    def __str__(self) -> str:
        from .views import render_text

        return render_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from .views import render_html

        return render_html(self)
