"""The Lab."""

from .errors import LabError
from .lab import Lab

__all__ = ["Lab", "LabError"]
