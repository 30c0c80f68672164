"""What a lens shows: for every layer and position the token on top, and how far it is from the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from torch import Tensor

from .errors import ExperimentError
from .folders import make_folder, reading
from .plotted import Plotted

VERSION = 1
_JSON, _TENSORS = "lens.json", "lens.safetensors"
# Characters of a token that a printed column has room for.
_WIDEST = 10
_GRIDS = ("top", "probability", "kl", "logit", "rank", "final_logits")


class _Stored(Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    sites: tuple[str, ...]
    tokens: tuple[str, ...]
    top_tokens: tuple[tuple[str, ...], ...]
    token: str | None
    token_id: int | None


def _short(token: str) -> str:
    """A token in quotes, cut with an ellipsis where it is longer than a column."""
    return f"'{token}'" if len(token) <= _WIDEST else f"'{token[: _WIDEST - 1]}…'"


@dataclass(frozen=True, eq=False)
class LensResult(Plotted):
    """A grid of sites by positions.

    Attributes:
        sites: from the first layer to the last; "embedding" is what enters the first.
        tokens: text of the prompt's tokens.
        top: the likeliest token, `[site, position]` ids.
        top_tokens: their texts.
        probability: of the likeliest token, from 0 to 1.
        kl: KL(final || here) in nats.
        token, token_id: the chosen token; None where none was chosen.
        logit, rank: of the chosen token, `[site, position]`; rank 0 is the likeliest.
        final_logits: the model's own, `[position, vocabulary]` float64.
    """

    sites: tuple[str, ...]
    tokens: tuple[str, ...]
    top: Tensor
    top_tokens: tuple[tuple[str, ...], ...]
    probability: Tensor
    kl: Tensor
    token: str | None
    token_id: int | None
    logit: Tensor | None
    rank: Tensor | None
    final_logits: Tensor

    def to_pandas(self) -> Any:
        """One row for each site and position. Raises ExperimentError where pandas is not installed."""
        try:
            import pandas
        except ImportError as error:
            raise ExperimentError("to_pandas needs pandas: pip install 'nnsight-lab[pandas]'.") from error
        count, length = self.top.shape
        columns: dict[str, Any] = {
            "site": [site for site in self.sites for _ in range(length)],
            "position": list(range(length)) * count,
            "token": list(self.tokens) * count,
            "top": [token for row in self.top_tokens for token in row],
            "probability": self.probability.flatten().tolist(),
            "kl": self.kl.flatten().tolist(),
        }
        if self.logit is not None and self.rank is not None:
            columns[f"logit {self.token}"] = self.logit.flatten().tolist()
            columns[f"rank {self.token}"] = self.rank.flatten().tolist()
        return pandas.DataFrame(columns)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the lens to a folder, which is made: `lens.json` and `lens.safetensors`.

        Args:
            overwrite: write into a folder that holds something; a lens in it is replaced, other files stay.

        Raises:
            StoredResultError: the folder holds something.
        """
        from safetensors.torch import save_file

        folder = Path(path)
        make_folder(folder, overwrite)
        stored = _Stored(VERSION, self.sites, self.tokens, self.top_tokens, self.token, self.token_id)
        grids = {name: getattr(self, name) for name in _GRIDS}
        save_file({k: v.cpu().clone().contiguous() for k, v in grids.items() if v is not None}, folder / _TENSORS)
        (folder / _JSON).write_bytes(msgspec.json.format(msgspec.json.encode(stored), indent=1))

    @classmethod
    def load(cls, path: str | Path) -> LensResult:
        """Read a folder that `save` wrote. Raises StoredResultError where it holds no lens."""
        with reading(Path(path), "lens", _JSON, _TENSORS, VERSION) as (data, grids):
            stored = msgspec.convert(data, _Stored)
            fields = {name: grids.get(name) if name in ("logit", "rank") else grids[name] for name in _GRIDS}
        return cls(
            sites=stored.sites,
            tokens=stored.tokens,
            top_tokens=stored.top_tokens,
            token=stored.token,
            token_id=stored.token_id,
            **fields,  # type: ignore[arg-type]  # the tensors that must be there are
        )

    def __str__(self) -> str:
        lines = ["The likeliest next token at each layer and position", *self._grid(self.top_tokens)]
        if self.token is not None and self.logit is not None and self.rank is not None:
            pairs = zip(self.logit.tolist(), self.rank.tolist(), strict=True)
            cells = [[f"{x:.2f} #{n}" for x, n in zip(*pair, strict=True)] for pair in pairs]
            lines += ["", f"Logit and #rank of '{self.token}'; #0 is the likeliest", *self._grid(cells, quoted=False)]
        return "\n".join(lines)

    def _grid(self, cells: Sequence[Sequence[str]], quoted: bool = True) -> list[str]:
        """Lines of cells under the tokens of the prompt."""
        label = max(len(site) for site in self.sites)
        shown = [[_short(cell) if quoted else cell for cell in row] for row in cells]
        head = [_short(token) for token in self.tokens]
        wide = max(len(text) for row in (head, *shown) for text in row)
        lines = [" " * label + "".join(f"  {token:>{wide}}" for token in head)]
        for site, row in zip(self.sites, shown, strict=True):
            lines.append(f"{site:<{label}}" + "".join(f"  {cell:>{wide}}" for cell in row))
        return lines

    __repr__ = __str__
