"""Demo models: `load()` for the embedded one, `load("smollm2")` for a real one, and prompts for them."""

from .errors import DemoModelError
from .loading import BRANDENBURG, COLOSSEUM, EIFFEL, load

__all__ = ["BRANDENBURG", "COLOSSEUM", "EIFFEL", "DemoModelError", "load"]
