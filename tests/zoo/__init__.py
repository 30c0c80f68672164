"""Tiny models of every architecture that the installed transformers offers, built offline from a seed.

`ARCHITECTURES` lists them and `build` makes one with inputs for its forward; `EXCLUDED` names the classes that are left
out, with the reason. `flatten` and `bit_identical` compare what two forwards return.
"""

from .architectures import ARCHITECTURES, Architecture, Kind
from .building import build
from .comparing import bit_identical, flatten
from .exclusions import EXCLUDED

__all__ = ["ARCHITECTURES", "EXCLUDED", "Architecture", "Kind", "bit_identical", "build", "flatten"]
