"""`load`: a demo model by its short name, wrapped and ready to trace.

Each model is imported when it is asked for, so that listing what there is costs nothing.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nnsight_lab.models import LanguageModel

#: The standard pair for patching: the same number of tokens, the subjects' last tokens at the same position.
EIFFEL = "The Eiffel Tower is in the city of"
BRANDENBURG = "The Brandenburg Gate is in the city of"
#: A prompt of another length.
COLOSSEUM = "The Colosseum is in the city of"


def load(name: str = "atlas") -> "LanguageModel":
    """The demo model `name`: "atlas", embedded in the package, or "smollm2", SmolLM2-135M, downloaded once.

    The model is in float32, on the CPU and in eval mode. "atlas" needs no network.

    Raises:
        ValueError: there is no demo model of that name.
    """
    if name not in _LOADERS:
        raise ValueError(f"no demo model is called {name!r}; there are: {', '.join(sorted(_LOADERS))}")
    from nnsight_lab.models.origin import remember_origin

    model = _LOADERS[name]()
    remember_origin(model, f"nnsight_lab.demo.load({name!r})")
    return model


def _load_atlas() -> "LanguageModel":
    from nnsight_lab.models import LanguageModel

    from .atlas import load_plain

    model, tokenizer = load_plain()
    return LanguageModel(model, tokenizer=tokenizer)


def _load_smollm2() -> "LanguageModel":
    from .smollm2 import load_smollm2

    return load_smollm2()


_LOADERS: dict[str, Callable[[], "LanguageModel"]] = {"atlas": _load_atlas, "smollm2": _load_smollm2}
