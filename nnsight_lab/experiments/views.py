"""A result as a text table, as HTML and as pandas frames."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from .errors import ExperimentError
from .result import Result, SiteReport, TokenRow

_COLUMNS = ("token", "id", "logit", "edited", "Δ", "prob", "edited", "Δ", "rank", "edited")


def quoted(token: str) -> str:
    """A token's text in quotes, so that spaces at its ends are seen: `' Paris'`."""
    return f"'{token}'"


def _cells(row: TokenRow) -> tuple[str, ...]:
    return (
        quoted(row.token),
        str(row.token_id),
        f"{row.clean_logit:.3f}",
        f"{row.edited_logit:.3f}",
        f"{row.logit_difference:+.3f}",
        f"{row.clean_probability:.4f}",
        f"{row.edited_probability:.4f}",
        f"{row.probability_difference:+.4f}",
        str(row.clean_rank),
        str(row.edited_rank),
    )


def _summary(result: Result) -> list[str]:
    steps = [step for step in result.recipe.steps if step.enabled]
    lines = [f"Result of {len(steps)} {'step' if len(steps) == 1 else 'steps'}"]
    if result.tokens:
        lines[0] += f" on {len(result.tokens)} tokens: {''.join(result.tokens)!r}"
    facts = []
    if result.metric is not None:
        metric = result.metric
        facts.append(f"{metric.name} {metric.clean:.4g} → {metric.edited:.4g} ({metric.difference:+.4g})")
    if result.kl is not None:
        facts.append(f"KL(clean‖edited) {result.kl:.4g} nats")
    facts.append(f"largest change {result.max_difference:.4g}")
    facts.append(f"{result.timing.total * 1000:.0f} ms")
    return [*lines, ", ".join(facts)]


def _site_line(report: SiteReport) -> str:
    value = f" {report.dtype}{list(report.shape)}" if report.ran else ""
    io = ".input" if report.io == "input" else ""
    return f"{report.step}: {report.kind} {report.site}{io}{value}: {report.outcome}"


def _captured(result: Result) -> list[str]:
    return [f"{key}: {str(t.dtype).removeprefix('torch.')}{list(t.shape)}" for key, t in result.activations.items()]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]

    def line(row: Sequence[str]) -> str:
        numbers = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        return "  ".join((row[0].ljust(widths[0]), *numbers))

    return [line(row) for row in rows]


def render_text(result: Result) -> str:
    """The result for a terminal: numbers, the table before and after, what became of each step."""
    lines = _summary(result)
    if result.rows:
        lines += ["", *_aligned([_COLUMNS, *map(_cells, result.rows)])]
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
    title, facts = _summary(result)
    parts = [
        f"<style>{_STYLE}</style>",
        '<div class="nnsl-result">',
        f"<p><b>{escape(title)}</b><br>{escape(facts)}</p>",
    ]
    if result.rows:
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in _COLUMNS)
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>")
        for row in result.rows:
            parts.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(row)) + "</tr>")
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
