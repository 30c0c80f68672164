"""Every error that experiments raise on purpose; each names the field or site and says what to do."""

from __future__ import annotations


class ExperimentError(ValueError):
    """Base of all errors of experiments."""


class RecipeError(ExperimentError):
    """A recipe is not valid. The message begins with the field's path: `steps[1].positions[0]: ...`."""


class UnknownSiteError(RecipeError):
    """A site names a module or an operation that the model does not have; the nearest names are given."""


class ScopeError(ExperimentError):
    """Positions, heads or indices that do not fit the prompt or the value at the site."""


class MovedOperationError(ExperimentError):
    """The function that a recipe was made on has changed, and its operation cannot be found again for certain.

    Attributes:
        site: the site as the recipe names it.
        candidates: labels in the present function that it may have become, the likeliest first.
    """

    def __init__(self, message: str, site: str, candidates: tuple[str, ...]) -> None:
        super().__init__(message)
        self.site = site
        self.candidates = candidates


class StoredResultError(ExperimentError):
    """A folder does not hold a result that can be read."""
