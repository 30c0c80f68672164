"""Language models: loading, tokenizing and batching around the engine."""

from .language import LanguageModel
from .loading import ModelUnavailableError
from .prompts import PromptError

__all__ = ["LanguageModel", "ModelUnavailableError", "PromptError"]
