"""What a function's source offers: its rows and its labelled operations, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

CALL = "call"
OPERATOR = "operator"
NAME = "name"
RETURN = "return"


@dataclass(frozen=True, slots=True)
class Operation:
    """One addressable site of a function body.

    Attributes:
        label: its name in the listing, `self_act_0`.
        line: the row it starts on, counted from 0 at the line after the `def` line; -1 is the `def` line.
        kind: "call", or with `everything=True` also "operator", "name" (a bound name), "return".
        index: its place in evaluation order among all operations of the listing.
        column, end_line, end_column: where its text stands (columns of the rows as listed, in characters).
        callee: the source text of what is called, empty for the other kinds.
    """

    label: str
    line: int
    kind: str
    index: int
    column: int
    end_line: int
    end_column: int
    callee: str = ""

    @property
    def callee_name(self) -> str | None:
        """The last name of the callee, `gelu` of `F.gelu(x)`, when it has one."""
        name = self.callee.rpartition(".")[2]
        return name if name.isidentifier() else None


@dataclass(frozen=True, slots=True)
class Listing:
    """A function's source with its operations.

    Attributes:
        name: qualified name of the function.
        filename, first_line: where the `def` line stands (1-based).
        rows: the text from the `def` line on, without common indentation; `rows[0]` is the `def` line, and
            `rows[1 + n]` is line n.
        operations: in evaluation order.
        everything: whether operators, bound names and returned values are listed beside the calls.
    """

    name: str
    filename: str
    first_line: int
    rows: tuple[str, ...]
    operations: tuple[Operation, ...]
    everything: bool = False

    def __getitem__(self, label: str) -> Operation:
        for operation in self.operations:
            if operation.label == label:
                return operation
        raise KeyError(label)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(operation.label for operation in self.operations)
