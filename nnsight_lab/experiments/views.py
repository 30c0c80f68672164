"""A result as a text table, as HTML and as pandas frames."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from .errors import ExperimentError
from .result import Result, SiteReport, TokenRow

_COLUMNS = ("token", "id", "logit", "edited", "Δ", "prob", "edited", "Δ", "rank", "edited")
_CLEAN_COLUMNS = ("token", "id", "logit", "prob", "rank")
_NEW_FIRST = "← first after the edits"


def quoted(token: str) -> str:
    """A token's text in quotes, so that spaces at its ends are seen: `' Paris'`."""
    return f"'{token}'"


def signed(value: float, digits: int) -> str:
    """A difference with its sign; one that rounds to zero has none."""
    text = f"{value:+.{digits}f}"
    return text if float(text) else f"{0:.{digits}f}"


def _probability(value: float) -> str:
    return f"{value:.3f}" if not value < 0.001 or value == 0 else f"{value:.0e}"


def _cells(row: TokenRow, edited: bool) -> tuple[str, ...]:
    if not edited:
        return (
            quoted(row.token),
            str(row.token_id),
            f"{row.clean_logit:.3f}",
            f"{row.clean_probability:.4f}",
            str(row.clean_rank),
        )
    return (
        quoted(row.token),
        str(row.token_id),
        f"{row.clean_logit:.3f}",
        f"{row.edited_logit:.3f}",
        signed(row.logit_difference, 3),
        f"{row.clean_probability:.4f}",
        f"{row.edited_probability:.4f}",
        signed(row.probability_difference, 4),
        str(row.clean_rank),
        str(row.edited_rank),
    )


def _title(result: Result) -> str:
    steps = [step for step in result.recipe.steps if step.enabled]
    title = f"Result of {len(steps)} {'step' if len(steps) == 1 else 'steps'}"
    return title + (f" on {len(result.tokens)} tokens: {''.join(result.tokens)!r}" if result.tokens else "")


def headline(result: Result) -> str:
    """The likeliest token before and after, `' Paris' 0.998 → ' Berlin' 0.983`; empty where there is no table."""
    first = next((row for row in result.rows if row.clean_rank == 0), None)
    if first is None:
        return ""
    before = f"{quoted(first.token)} {_probability(first.clean_probability)}"
    new = next((row for row in result.rows if row.edited_rank == 0), None)
    if not result.has_edits or new is None:
        return before
    return f"{before} → {quoted(new.token)} {_probability(new.edited_probability)}"


def _facts(result: Result) -> str:
    facts = []
    metric = result.metric
    if metric is not None:
        after = f" → {metric.edited:.4g} ({metric.difference:+.4g})" if result.has_edits else ""
        facts.append(f"{metric.name} {metric.clean:.4g}{after}")
    if result.has_edits:
        if result.kl is not None:
            facts.append(f"KL(clean‖edited) {result.kl:.4g} nats")
        facts.append(f"largest change {result.max_difference:.4g}")
    facts.append(f"{result.timing.total * 1000:.0f} ms")
    return ", ".join(facts)


def _site_line(report: SiteReport) -> str:
    value = f" {report.dtype}{list(report.shape)}" if report.ran else ""
    io = ".input" if report.io == "input" else ""
    return f"{report.step}: {report.kind} {report.site or 'the model'}{io}{value}: {report.outcome}{_change(report)}"


def _change(report: SiteReport) -> str:
    """What the edit did at the site itself: `; 96 of 768 entries edited, by up to 0.51 (12% of their norm)`."""
    if report.change is None:
        return ""
    whole = math.prod(report.shape) * report.calls
    entries = f"{report.entries} of {whole} entries" if report.entries < whole else f"all {whole} entries"
    if report.change == 0:
        return f"; {entries} edited, which had these values already"
    share = "" if report.relative_change is None else f" ({100 * report.relative_change:.3g}% of their norm)"
    return f"; {entries} edited, by up to {report.change:.3g}{share}"


def _captured(result: Result) -> list[str]:
    return [f"{key}: {str(t.dtype).removeprefix('torch.')}{list(t.shape)}" for key, t in result.activations.items()]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def line(row: Sequence[str]) -> str:
        numbers = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        return "  ".join((row[0].ljust(widths[0]), *numbers))

    return [line(row) for row in rows]


def _table(result: Result) -> tuple[tuple[str, ...], list[tuple[str, ...]], int | None]:
    """Columns, rows, and the number of the row that the edits made the first one."""
    rows = [_cells(row, result.has_edits) for row in result.rows]
    new = [number for number, row in enumerate(result.rows) if row.edited_rank == 0 < row.clean_rank]
    return _COLUMNS if result.has_edits else _CLEAN_COLUMNS, rows, new[0] if new else None


def render_text(result: Result) -> str:
    """The result for a terminal: numbers, the table before and after, what became of each step."""
    lines = [line for line in (_title(result), headline(result), _facts(result)) if line]
    if result.rows:
        columns, rows, new = _table(result)
        table = _aligned([columns, *rows])
        if new is not None:
            table[new + 1] += f"  {_NEW_FIRST}"
        lines += ["", *table]
    if result.sites:
        lines.append("")
    for report in result.sites:
        lines.append(_site_line(report))
        if report.outcome not in ("captured", "changed", "disabled"):
            lines.append(f"   {report.message}")
    if result.activations:
        lines += ["", "Captured", *(f"   {line}" for line in _captured(result))]
    lines += [f"Note: {note}" for note in result.notes]
    return "\n".join(lines)


_STYLE = (
    ".nnsl-result{font:13px/1.5 var(--jp-ui-font-family,system-ui,sans-serif);color:inherit}"
    ".nnsl-result table{border-collapse:collapse}.nnsl-result td,.nnsl-result th{padding:1px 8px;text-align:right}"
    ".nnsl-result td:first-child,.nnsl-result th:first-child{text-align:left;white-space:pre;"
    "font-family:var(--jp-code-font-family,ui-monospace,monospace)}"
)


def render_html(result: Result) -> str:
    """The result as HTML with inline style."""
    facts = [escape(line) for line in (headline(result), _facts(result)) if line]
    parts = [
        f"<style>{_STYLE}</style>",
        '<div class="nnsl-result">',
        f"<p><b>{escape(_title(result))}</b><br>{'<br>'.join(facts)}</p>",
    ]
    if result.rows:
        columns, rows, new = _table(result)
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>")
        for number, row in enumerate(rows):
            cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
            parts.append(f"<tr>{cells}<td>{_NEW_FIRST}</td></tr>" if number == new else f"<tr>{cells}</tr>")
        parts.append("</tbody></table>")
    for name, lines in (("Steps", map(_site_html, result.sites)), ("Captured", map(escape, _captured(result)))):
        items = "".join(f"<li>{line}</li>" for line in lines)
        if items:
            parts.append(f"<p>{name}</p><ul>{items}</ul>")
    parts += [f"<p>{escape(note)}</p>" for note in result.notes]
    return "".join([*parts, "</div>"])


def _site_html(report: SiteReport) -> str:
    return f"{escape(_site_line(report))}<br><small>{escape(report.message)}</small>"


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ExperimentError("pandas is not installed: pip install 'nnsight-lab[pandas]'.") from error
    return pandas


def token_frame(result: Result) -> Any:
    """The top-k table, one row a token, with the differences (edited minus clean).

    Raises:
        ExperimentError: pandas is not installed.
    """
    names = [*TokenRow.__struct_fields__, "logit_difference", "probability_difference"]
    return _pandas().DataFrame([{name: getattr(row, name) for name in names} for row in result.rows], columns=names)


def site_frame(result: Result) -> Any:
    """One row a step: where it acts and what became of it. Raises ExperimentError without pandas."""
    names = list(SiteReport.__struct_fields__)
    return _pandas().DataFrame([{name: getattr(row, name) for name in names} for row in result.sites], columns=names)
