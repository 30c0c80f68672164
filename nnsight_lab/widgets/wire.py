"""The wire contract between the kernel and the page: every message and every synced trait, as data.

Three things travel.

*Traits* are the state that all views of one widget share and that a saved notebook keeps: `View` (what is looked at and
which steps there are), `ListingView`, `Answer`, `History`, `Status`, the code. The kernel alone writes them.

*Requests* go from the page to the kernel, each with an id that the page makes. The kernel answers each at once with
`Accepted` and then with exactly one of the other replies under the same id; an error is a reply as well. A request
names what to do as data (`Action`); nothing in it is evaluated as code.

*Arrays* are one binary buffer beside their reply, float32 in C order and little-endian, of the shape that the reply
names, already reduced to what the screen shows.

The JupyterLab extension has requests of its own (`PanelRequest`) and a MIME type (`SourceBundle`).

`schema()` is the contract as JSON Schema. `src/common/wire.schema.json` is a copy, from which the TypeScript types
are generated and with which the page checks what arrives; a test fails where the copy is not the same.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct

from ..experiments import AnyMetric, AnyStep, SiteReport, TokenRow
from ..experiments.steps import Indices, Position

VERSION = 1

Io = Literal["output", "input"]
Element = tuple[int | str, ...]
Which = Literal["clean", "edited", "difference"]


def _snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name).lstrip("_")


class _Data(Struct, frozen=True, forbid_unknown_fields=True):
    """Base of everything on the wire; unknown fields are refused."""


# What is looked at


class Target(_Data, frozen=True):
    """A value in the model: a site's output or input, or an argument of the function that a listing shows.

    Attributes:
        site: `transformer.h.11.mlp.source.self_act_0`, a module's path, or "" for the model.
        io: of a site, its output or the first argument of its call.
        argument: name of a parameter of the function that `site` calls; in place of `io`. None for a site's value.
        call: which call of the site in one forward, from 0; None is every one for a step, the last one for a picture.
        element: path to the tensor in a tuple, list or mapping; None is the first tensor.
    """

    site: str
    io: Io = "output"
    argument: str | None = None
    call: int | None = None
    element: Element | None = None


class TokenText(_Data, frozen=True):
    """One token of a prompt: its id and its text, whose leading space belongs to it."""

    id: int
    text: str


class Alignment(_Data, frozen=True):
    """Which base positions a patch without `from_positions` takes from which source positions.

    Attributes:
        source_positions: for each base position the source position it corresponds to, or None.
        message: why some have none, in a sentence; empty where all have one.
    """

    source_positions: tuple[int | None, ...] = ()
    message: str = ""


class PromptView(_Data, frozen=True):
    """A prompt. `text` is None for inputs that are not text; `error` says why it cannot be run, else empty."""

    text: str | None = None
    tokens: tuple[TokenText, ...] = ()
    length: int | None = None
    error: str = ""


class Scope(_Data, frozen=True):
    """What an edit is limited to; None is everything. See `nnsight_lab.experiments.Edit`."""

    positions: tuple[Position, ...] | None = None
    from_positions: tuple[Position, ...] | None = None
    heads: Indices | None = None
    index: Indices | None = None


class StepView(_Data, frozen=True):
    """A step with what the page shows of it.

    Attributes:
        step: the step itself.
        title: what it does, "Zero self_act_0".
        where: where, "h.11.mlp · position -1 · all neurons".
        base_positions: the numbers that its positions are in the base prompt; None for all.
        source_positions: likewise of a patch in the source prompt.
        error: why it cannot be carried out, else empty.
        report: what became of it in the latest run; None before it ran.
    """

    step: AnyStep
    title: str
    where: str
    base_positions: tuple[int, ...] | None = None
    source_positions: tuple[int, ...] | None = None
    error: str = ""
    report: SiteReport | None = None


class ModelFacts(_Data, frozen=True):
    """About the model: its name, class, parameter count, dtype and device, and whether weights are loaded.

    Attributes:
        takes_text: whether there is a tokenizer.
        heads: number of attention heads, if known.
        module_count: modules in the tree.
        layers: pattern of the sites of one kind over all layers, for sweeps: "transformer.h.*"; empty where none.
    """

    name: str
    kind: str
    parameters: int
    dtype: str
    device: str
    loaded: bool
    takes_text: bool
    heads: int | None = None
    module_count: int = 0
    layers: str = ""


class View(_Data, frozen=True):
    """What is looked at and which steps there are.

    Attributes:
        revision: counts up with every change, so that an answer to an older state can be told.
        module: path of the module whose listing is shown.
        selection: the value that a click of capture, zero, patch or scale acts on; None where nothing is selected.
        opened: sites that are stepped into, whose callees' listings are shown inline.
        scope: for the active step, and for the next one.
        active: number of the step that the scope belongs to; None where there is none.
        metric: what sweeps are judged by.
        shown: of the result tabs, which run's sweep, lens and answer are on screen, by run id.
    """

    version: int = VERSION
    revision: int = 0
    model: ModelFacts | None = None
    base: PromptView = PromptView()
    source: PromptView = PromptView()
    alignment: Alignment = Alignment()
    module: str = ""
    selection: Target | None = None
    opened: tuple[str, ...] = ()
    steps: tuple[StepView, ...] = ()
    active: int | None = None
    scope: Scope = Scope()
    metric: AnyMetric | None = None
    can_undo: bool = False
    can_redo: bool = False
    shown_answer: str | None = None
    shown_sweep: str | None = None
    shown_lens: str | None = None


# The listing

SpanKind = Literal["plain", "keyword", "name", "function", "self", "string", "number", "comment", "operator", "builtin"]


class Span(_Data, frozen=True):
    """A piece of a row's text with its colour."""

    kind: SpanKind
    text: str


class Variable(_Data, frozen=True):
    """A name in the listing whose value can be shown: characters `column` to `end_column` of a line."""

    line: int
    column: int
    end_column: int
    name: str
    target: Target


class TensorFacts(_Data, frozen=True):
    """A tensor inside a value: the path to it, its shape, its dtype (`float32`)."""

    element: Element
    shape: tuple[int, ...]
    dtype: str


class OperationView(_Data, frozen=True):
    """One labelled site of a listing.

    Attributes:
        label, kind, line, column, end_line, end_column: see `nnsight_lab.engine.Operation`.
        site: its full site.
        calls: how often the latest observed forward called it; None where no run has told.
        reason: why it was not reached, where it was not.
        summary: its value in short, "[1,8,384] f32", "tuple of 2", "None"; empty where unknown.
        tensors: the tensors in its value, to choose an element from.
        module: path of the module that it calls; empty where it calls none.
        can_step_into: whether it calls a Python function whose listing can be shown.
    """

    label: str
    kind: Literal["call", "operator", "name", "return"]
    line: int
    column: int
    end_line: int
    end_column: int
    site: str
    calls: int | None = None
    reason: str = ""
    summary: str = ""
    tensors: tuple[TensorFacts, ...] = ()
    module: str = ""
    can_step_into: bool = False


class ListingBlock(_Data, frozen=True):
    """The listing of one function.

    Attributes:
        site: the module's path, or the operation stepped into.
        title: "GPT2MLP.forward".
        filename, first_line: where its `def` line stands, counted from 1.
        rows: `rows[0]` is the `def` line, `rows[1 + n]` line n.
        calls: how often the latest observed forward ran it; None where no run has told.
        error: why there is no listing, else empty.
    """

    site: str
    title: str
    filename: str = ""
    first_line: int = 0
    rows: tuple[tuple[Span, ...], ...] = ()
    operations: tuple[OperationView, ...] = ()
    variables: tuple[Variable, ...] = ()
    calls: int | None = None
    error: str = ""


class ListingView(_Data, frozen=True):
    """The listing shown: the module's own block first, then those stepped into."""

    module: str = ""
    blocks: tuple[ListingBlock, ...] = ()


# Results


class CapturedView(_Data, frozen=True):
    """A value of a run that pictures can be asked of."""

    target: Target
    label: str
    tensors: tuple[TensorFacts, ...]


class Answer(_Data, frozen=True):
    """What a run gave.

    Attributes:
        run: its id.
        headline: "Paris -> London", in words.
        rows: the top-k table by clean rank; empty where the model's output is no logits.
        kl: KL(clean || edited) in nats.
        max_difference: largest absolute difference of the outputs at the last position.
        edited: whether an edit was carried out.
        reports: one for each step of the recipe.
        captured: the values kept.
        seconds: that the forwards took.
        notes: what the reader should know.
    """

    run: str
    headline: str
    rows: tuple[TokenRow, ...] = ()
    kl: float | None = None
    max_difference: float | None = None
    edited: bool = False
    reports: tuple[SiteReport, ...] = ()
    captured: tuple[CapturedView, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()


class HistoryEntry(_Data, frozen=True):
    """One run in the history: `title` tells what changed, `detail` what came out."""

    run: str
    kind: Literal["run", "sweep", "lens"]
    title: str
    detail: str
    complete: bool = True


class Failure(_Data, frozen=True):
    """An error: message for the reader, the exception's class, and the traceback."""

    message: str
    kind: str = ""
    traceback: str = ""


Work = Literal["load", "run", "sweep", "lens"]


class Status(_Data, frozen=True):
    """What the kernel is at.

    Attributes:
        work: what it does now; None when idle.
        waiting: what is queued behind it.
        blocked: the user's own cell is running, and what is queued begins afterwards.
        done, total: progress in `unit`s; total 0 where it cannot be told.
        failure: of the latest work that failed; stays until work of that kind succeeds or it is dismissed.
        failed: which work that was, which `Retry` does again.
        stale: whether `Answer` belongs to an older state than `View`.
    """

    work: Work | None = None
    waiting: tuple[Work, ...] = ()
    blocked: bool = False
    done: int = 0
    total: int = 0
    unit: str = ""
    failure: Failure | None = None
    failed: Work | None = None
    stale: bool = False


class Snapshot(_Data, frozen=True):
    """A small picture of the selected value for a page without kernel: `data` is base64 of float32."""

    target: Target
    label: str
    shape: tuple[int, ...]
    rows: int
    columns: int
    low: float
    high: float
    data: str


# Requests


class _Action(_Data, frozen=True, tag_field="do", tag=_snake):
    """Base of what a page can ask the kernel to do."""


class ShowModule(_Action, frozen=True):
    """Show a module's listing."""

    module: str


class Select(_Action, frozen=True):
    """Select a value, or nothing."""

    target: Target | None


class StepInto(_Action, frozen=True):
    """Show the listing of what an operation calls, inline."""

    site: str


class StepOut(_Action, frozen=True):
    """Close that listing, and those inside it."""

    site: str


class SetPrompts(_Action, frozen=True):
    """Set prompts; a field that is left out stays. An empty source removes it."""

    base: str | None = None
    source: str | None = None


class SetScope(_Action, frozen=True):
    """Limit the active step, and the next ones."""

    scope: Scope


class AddStep(_Action, frozen=True):
    """Add a step and make it the active one; an equal kind at the same target is replaced instead."""

    step: AnyStep


class ChangeStep(_Action, frozen=True):
    """Put a step in the place of another."""

    number: int
    step: AnyStep


class EnableStep(_Action, frozen=True):
    """Switch a step on or off."""

    number: int
    enabled: bool


class RemoveStep(_Action, frozen=True):
    number: int


class ActivateStep(_Action, frozen=True):
    """Make a step the one that the scope belongs to, and select its target; None leaves all."""

    number: int | None


class ClearSteps(_Action, frozen=True):
    """Remove every step."""


class DisableAll(_Action, frozen=True):
    """Switch every step off: a clean run."""


class SetMetric(_Action, frozen=True):
    """What sweeps are judged by; None lets the Lab choose."""

    metric: AnyMetric | None


class Undo(_Action, frozen=True):
    """Take the last change of steps, scope or prompts back."""


class Redo(_Action, frozen=True):
    """Do again what was undone."""


class Run(_Action, frozen=True):
    """Run the present steps, also when nothing changed."""


class StartSweep(_Action, frozen=True):
    """Sweep a step over a grid.

    Attributes:
        step: the edit; None is the active step.
        sites: pattern with `*`; empty is the step's own site over all layers.
        positions: "each" position, or the step's own.
        heads: a cell for each head.
    """

    step: AnyStep | None = None
    sites: str = ""
    positions: Literal["each", "own"] = "each"
    heads: bool = False


class StartLens(_Action, frozen=True):
    """Logit lens over all layers and positions of the base prompt."""

    stream: Literal["residual", "attention", "mlp"] = "residual"


class TakeCell(_Action, frozen=True):
    """Make the step that a cell of a sweep stands for the active one."""

    run: str
    cell: tuple[int, ...]


class Restore(_Action, frozen=True):
    """Go back to the state of a run in the history."""

    run: str


class Retry(_Action, frozen=True):
    """Do the work that failed again."""


class Dismiss(_Action, frozen=True):
    """Forget the failure."""


class Cancel(_Action, frozen=True):
    """Stop work of a kind, running or waiting; None stops all."""

    work: Work | None = None


Action = (
    ShowModule
    | Select
    | StepInto
    | StepOut
    | SetPrompts
    | SetScope
    | AddStep
    | ChangeStep
    | EnableStep
    | RemoveStep
    | ActivateStep
    | ClearSteps
    | DisableAll
    | SetMetric
    | Undo
    | Redo
    | Run
    | StartSweep
    | StartLens
    | TakeCell
    | Restore
    | Retry
    | Dismiss
    | Cancel
)


class _Request(_Data, frozen=True, tag_field="kind", tag=lambda name: _snake(name).removeprefix("ask_")):
    """Base of requests. `id` is the page's, unique among all pages."""

    id: str


class Act(_Request, frozen=True):
    """Do something. Answered with `Done` when the state has changed; runs that follow show in `Status`."""

    action: Action


class AskModules(_Request, frozen=True):
    """The module tree. Answered with `Modules`."""


class Window(_Data, frozen=True):
    """Rows and columns of the whole picture, from inclusive to exclusive."""

    row: int
    row_end: int
    column: int
    column_end: int


class Slice(_Data, frozen=True):
    """A 2-D slice of a tensor.

    Attributes:
        row_axis, column_axis: axes on screen; None lets the kernel choose. A value of one dimension is one row.
        index: an index for every other axis, by axis in order; shorter is filled up with 0.
    """

    row_axis: int | None = None
    column_axis: int | None = None
    index: tuple[int, ...] = ()


Pooling = Literal["mean", "min", "max", "extreme"]


class AskTensor(_Request, frozen=True):
    """A picture of a captured value. Answered with `Picture` and a buffer.

    Attributes:
        run: id of a run.
        window: the part wanted; None is all.
        height, width: pixels on screen; more cells than this are pooled.
        pooling: "extreme" keeps the value farthest from zero.
    """

    run: str
    target: Target
    which: Which = "edited"
    slice: Slice = Slice()
    window: Window | None = None
    height: int = 256
    width: int = 512
    pooling: Pooling = "extreme"
    trim: float | None = 0.995


class AskTable(_Request, frozen=True):
    """The whole of a slice as CSV text, not reduced. Answered with `Table`."""

    run: str
    target: Target
    which: Which = "edited"
    slice: Slice = Slice()


class AskPeek(_Request, frozen=True):
    """A value as a debugger would show it, in the present state. Answered with `Peek` and a buffer."""

    target: Target


class AskGrid(_Request, frozen=True):
    """A sweep's or lens's cells, as far as they are computed. Answered with `SweepGrid` or `LensGrid` and a buffer."""

    run: str


class AskAnswer(_Request, frozen=True):
    """The answer of a run in the history. Answered with `AnswerOf`."""

    run: str


class AskCode(_Request, frozen=True):
    """The Python code of a run. Answered with `Code`."""

    run: str


Request = Act | AskModules | AskTensor | AskTable | AskPeek | AskGrid | AskAnswer | AskCode


# Requests of the JupyterLab extension, over a comm of its own (`nnsight_lab.comms`). They name a model by the name that
# it has in the user's namespace, where it is looked up; the name is not evaluated.


class AskAlive(_Request, frozen=True):
    """The models that have a name in the kernel. Answered with `Alive`."""


class AskModulesOf(_Request, frozen=True):
    """A model's module tree. Answered with `Modules` and a buffer."""

    model: str


class AskListing(_Request, frozen=True):
    """A listing, with those of the callees of `opened` operations. Answered with `ListingOf`."""

    model: str
    module: str
    opened: tuple[str, ...] = ()


class AskSnippet(_Request, frozen=True):
    """Python for a cell: the Lab opened at a site, or the site's value read or zeroed. Answered with `Code`."""

    model: str
    site: str
    purpose: Literal["lab", "capture", "zero"]


class AskLab(_Request, frozen=True):
    """Have the Lab that was opened last do something, or say its code. Answered with `Told`.

    Attributes:
        to: run its steps again, remove them, or give their code.
    """

    to: Literal["run", "clear", "code"]


PanelRequest = AskAlive | AskModulesOf | AskListing | AskSnippet | AskLab


# Replies


class _Reply(_Data, frozen=True, tag_field="kind", tag=_snake):
    """Base of replies, under the id of the request."""

    id: str


class Accepted(_Reply, frozen=True):
    """The kernel has the request."""


class Done(_Reply, frozen=True):
    """The state has changed (or was so before); `revision` is the view's."""

    revision: int


class Superseded(_Reply, frozen=True):
    """A later request of the same kind took its place."""


class Failed(_Reply, frozen=True):
    """The request could not be carried out."""

    failure: Failure


class Modules(_Reply, frozen=True):
    """The module tree in preorder. The buffer is float64 here, `[5, modules]`: a row each for

    - depth, 0 for the model itself;
    - kind, a number into `kind_names`;
    - parameters of the module and all below it, each parameter once;
    - alias: number of the module that this one is the same as, or -1;
    - structure: equal numbers mark modules of equal structure, so that runs of layers can be folded.

    Attributes:
        names: last part of each path.
    """

    names: tuple[str, ...]
    kind_names: tuple[str, ...]


class ColourRange(_Data, frozen=True):
    """Ends of the colour scale, how many finite cells lie beyond them, and the extremes of the whole slice."""

    low: float
    high: float
    beyond_low: int = 0
    beyond_high: int = 0
    smallest: float = 0.0
    largest: float = 0.0


class Counts(_Data, frozen=True):
    """Entries of a slice that are no finite numbers."""

    nan: int = 0
    positive_infinity: int = 0
    negative_infinity: int = 0


class AxisView(_Data, frozen=True):
    """An axis: its name ("position", "head", "neuron", "axis 1"), its size, and texts of entries where there are."""

    name: str
    size: int
    labels: tuple[str, ...] = ()


class Picture(_Reply, frozen=True):
    """A 2-D slice, pooled to `rows` x `columns` float32 values in the buffer; NaN and infinities are kept.

    Attributes:
        rows, columns: entry number i of n stands for the window's cells from floor(i * size / n) to
            floor((i + 1) * size / n), exclusive; n is at most `size`.
        axes: of the whole tensor.
        slice: the one taken, complete.
        window: of the slice.
        row_labels, column_labels: of the window's entries where they are named and few.
        colours: for the whole slice, so that zooming does not change them.
    """

    run: str
    target: Target
    which: Which
    label: str
    dtype: str
    shape: tuple[int, ...]
    axes: tuple[AxisView, ...]
    slice: Slice
    window: Window
    rows: int
    columns: int
    pooling: Pooling
    colours: ColourRange
    odd: Counts


class Table(_Reply, frozen=True):
    """CSV text, named for a file."""

    name: str
    csv: str


class Statistics(_Data, frozen=True):
    """Of the finite entries of a tensor; None where there are none."""

    smallest: float | None
    largest: float | None
    mean: float | None
    std: float | None
    norm: float | None


class Peek(_Reply, frozen=True):
    """A value: its structure in lines of text, its tensors, and of the chosen one statistics and a small picture.

    Attributes:
        calls: how often it was computed in the forward.
        reason: why there is no value, else empty.
        rows, columns: of the picture in the buffer; 0 where there is none.
    """

    target: Target
    label: str
    structure: str
    tensors: tuple[TensorFacts, ...] = ()
    statistics: Statistics | None = None
    odd: Counts = Counts()
    calls: int = 0
    reason: str = ""
    rows: int = 0
    columns: int = 0
    colours: ColourRange | None = None


class SweepGrid(_Reply, frozen=True):
    """A sweep: the metric of every cell in the buffer, NaN where it is not computed; `done` counts those that are.

    Attributes:
        axes: in the order of the buffer's axes; a cell is a number for each.
        baseline, source_value: the metric of the clean run and of the source prompt's run.
        colours: for the cells' differences from `baseline` (from 0 where there is none), symmetric around zero.
    """

    run: str
    title: str
    metric: str
    axes: tuple[AxisView, ...]
    baseline: float | None
    source_value: float | None
    colours: ColourRange
    done: int
    total: int
    seconds: float
    notes: tuple[str, ...] = ()


class LensGrid(_Reply, frozen=True):
    """A lens: likeliest token of each site and position, and its probability in the buffer."""

    run: str
    title: str
    sites: tuple[str, ...]
    tokens: tuple[str, ...]
    top: tuple[tuple[str, ...], ...]
    seconds: float = 0.0


class AnswerOf(_Reply, frozen=True):
    answer: Answer


class Code(_Reply, frozen=True):
    """Python that does what the run did."""

    code: str


class ModelEntry(_Data, frozen=True):
    """A model in the kernel.

    Attributes:
        name: in the user's namespace, the first where it has several.
        identity: another number is another model, or the same one with other modules.
    """

    name: str
    identity: str
    facts: ModelFacts


class Alive(_Reply, frozen=True):
    """The models in the kernel, in the order in which their names were bound."""

    models: tuple[ModelEntry, ...]


class ListingOf(_Reply, frozen=True):
    listing: ListingView


class Told(_Reply, frozen=True):
    """What the Lab did, in a sentence; `code` where that was asked for."""

    message: str
    code: str = ""


Reply = (
    Accepted
    | Done
    | Superseded
    | Failed
    | Modules
    | Picture
    | Table
    | Peek
    | SweepGrid
    | LensGrid
    | AnswerOf
    | Code
    | Alive
    | ListingOf
    | Told
)


# What a notebook keeps of a listing that a cell shows


class SourceBundle(_Data, frozen=True):
    """Data of the MIME type `application/vnd.nnsight-lab.source+json`: a listing to read without a kernel.

    Attributes:
        model: the name that addresses begin with.
        module: path of the module shown first.
        listings: of that module, with the callees' listings inside, and of the modules that it calls, by path.
        lab: the line of Python that opens the Lab here.
    """

    model: str
    module: str
    listings: dict[str, ListingView]
    lab: str
    version: int = VERSION


class History(_Data, frozen=True):
    entries: tuple[HistoryEntry, ...] = ()


class CodeView(_Data, frozen=True):
    """The code of the present state; `error` says why there is none, else empty."""

    code: str = ""
    error: str = ""


# Synced traits, by name: what a widget's model holds.
TRAITS: dict[str, type[Struct]] = {
    "_view": View,
    "_listing": ListingView,
    "_answer": Answer,
    "_history": History,
    "_status": Status,
    "_code": CodeView,
    "_snapshot": Snapshot,
}


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the contract: `Request`, `Reply` and every trait under `$defs`.

    Both sides write every field, except in steps and metrics, which leave defaults out as recipes do.
    """
    structs = [*_members(Request), *_members(PanelRequest), *_members(Reply), *TRAITS.values(), SourceBundle]
    _, components = msgspec.json.schema_components(structs, ref_template="#/$defs/{name}")
    for name, component in components.items():
        kind = globals().get(name)
        if kind is not None and not kind.__struct_config__.omit_defaults:
            component["required"] = list(component["properties"])
    named = {
        "Request": Request,
        "PanelRequest": PanelRequest,
        "Reply": Reply,
        "Action": Action,
        "AnyStep": AnyStep,
        "AnyMetric": AnyMetric,
    }
    unions = {name: _union(union) for name, union in named.items()}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": _bare({**components, **unions})}


def _members(union: Any) -> tuple[type[Struct], ...]:
    return tuple(get_args(union))


def _union(union: Any) -> dict[str, Any]:
    return {"anyOf": [{"$ref": f"#/$defs/{member.__name__}"} for member in _members(union)]}


def _bare(schema: Any) -> Any:
    """The schema without titles, texts and defaults, which only readers need."""
    if isinstance(schema, list):
        return [_bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key not in ("description", "default")}
    if isinstance(kept.get("title"), str):
        del kept["title"]
    return {key: _bare(value) for key, value in kept.items()}


def schema_text() -> str:
    """The text of `src/common/wire.schema.json`."""
    return json.dumps(schema(), indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
