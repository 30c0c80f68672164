"""Generated functions, run as they are and with every operation observed.

Their callees are objects that write down whatever is done to them, so the record of a run shows the order of
evaluation without any help from the code under test. In the functions of `straight` every call is made exactly
once; then the record of the original's calls, counted name by name, has to be the list of labels.
"""

from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nnsight_lab.engine.rewrite import rewritten
from tests.engine.source_tools import define, observed

CALLEES = ("a", "b", "o.m", "o.n.p", "o[0]")
STEMS = {"a": "a", "b": "b", "o.m": "o_m", "o.n.p": "o_n_p", "o[0]": "o"}


class Value:
    """An always true object of everything: number, sequence of one, mapping, context manager."""

    def __init__(self, log, name):
        self._log, self._name = log, name

    def _note(self, event):
        self._log.append((self._name, event))
        return Value(self._log, f"v{len(self._log)}")

    def __call__(self, *args, **kwargs):
        return self._note(("call", [repr(a) for a in args], {k: repr(v) for k, v in kwargs.items()}))

    def __repr__(self):
        return self._name

    def __format__(self, how):
        self._note(("format", how))
        return self._name

    def __iter__(self):
        yield self._note("iterate")

    def keys(self):
        return ["key"]

    def __getitem__(self, key):
        return self._note(("get", repr(key)))

    def __setitem__(self, key, value):
        self._note(("set", repr(key), repr(value)))

    def __delitem__(self, key):
        self._note(("delete", repr(key)))

    def __enter__(self):
        return self._note("enter")

    def __exit__(self, *error):
        self._note("exit")

    def __add__(self, other):
        return self._note(("add", repr(other)))

    def __iadd__(self, other):
        return self._note(("iadd", repr(other)))

    def __matmul__(self, other):
        return self._note(("matmul", repr(other)))

    def __lt__(self, other):
        return self._note(("less", repr(other)))

    def __hash__(self):
        return hash(self._name)

    def __eq__(self, other):
        return self is other


class Owner:
    """`o`: its methods and items are callees that record the name they are called by."""

    def __init__(self, log):
        self._log = log
        self.m = Value(log, "o.m")
        self.n = type("N", (), {})()
        self.n.p = Value(log, "o.n.p")
        self.attribute = Value(log, "o.attribute")

    def __getitem__(self, key):
        return Value(self._log, "o[0]") if isinstance(key, int) else self.attribute

    def __setitem__(self, key, value):
        self._log.append(("o", ("set", repr(key), repr(value))))


def world(log):
    return {"a": Value(log, "a"), "b": Value(log, "b"), "o": Owner(log), "x": Value(log, "x")}


names = st.sampled_from(["x", "y", "z"])
atoms = names


def joined(blocks):
    return [line for block in blocks for line in block]


def expressions(inner):
    """Expressions over `inner`, each of whose parts is evaluated exactly once."""
    two = st.tuples(inner, inner)
    return st.one_of(
        st.builds(lambda f, args: f"{f}({', '.join(args)})", st.sampled_from(CALLEES), st.lists(inner, max_size=2)),
        st.builds(lambda f, e: f"{f}(k={e[0]}, *[{e[1]}])", st.sampled_from(CALLEES), two),
        st.builds(lambda f, e: f"{f}(*{e[0]}, **{{'k': {e[1]}}})", st.sampled_from(CALLEES), two),
        two.map("({0[0]} + {0[1]})".format),
        two.map("({0[0]} @ {0[1]})".format),
        two.map("({0[0]} < {0[1]})".format),
        two.map("({0[0]} and {0[1]})".format),
        two.map("({0[0]} if {0[1]} else 0)".format),
        st.tuples(inner, inner, inner, inner).map("list({{{0[0]}: {0[1]}, {0[2]}: {0[3]}}}.values())[0]".format),
        two.map("[{0[0]}, {0[1]}][-1]".format),
        two.map("({0[0]})[{0[1]}]".format),
        two.map("[{0[0]} for w in [{0[1]}] if w][0]".format),
        two.map("list({0[0]} for w in [{0[1]}])[0]".format),
        two.map("list({{w: {0[0]} for w in [{0[1]}]}}.values())[0]".format),
        two.map("[{0[0]} for u in {0[1]} for w in [u]][0]".format),
        inner.map("(z := {})".format),
        inner.map("o[f'{{{}}}'.upper()]".format),
    )


def statements(expression, depth):
    """Blocks of statements, as lists of lines, each of whose parts is evaluated exactly once."""
    two = st.tuples(expression, expression)
    simple = st.one_of(
        expression.map(lambda e: [e]),
        expression.map(lambda e: [f"y = {e}"]),
        two.map(lambda e: [f"y, (z, *rest) = {e[0]}, [{e[1]}]"]),
        expression.map(lambda e: [f"y = z = {e}"]),
        expression.map(lambda e: [f"y: int = {e}"]),
        two.map(lambda e: [f"o[{e[0]}] = {e[1]}"]),
        two.map(lambda e: [f"o[{e[0]}] += {e[1]}"]),
        expression.map(lambda e: [f"o.attribute += {e}"]),
        expression.map(lambda e: [f"y += {e}"]),
        expression.map(lambda e: [f"assert {e}"]),
        expression.map(lambda e: [f"del x[{e}]"]),
    )
    if depth == 0:
        return simple

    def block(head, *rest):
        return lambda parts: [
            line
            for title, body in zip((head, *rest), parts[1:], strict=True)
            for line in (title.format(parts[0]), *("    " + inner for inner in body))
        ]

    body = st.lists(statements(expression, depth - 1), min_size=1, max_size=2).map(joined)
    one, both = st.tuples(expression, body), st.tuples(expression, body, body)
    return st.one_of(
        simple,
        one.map(block("if {}:")),
        both.map(block("for y, in [[{}]]:", "else:")),
        one.map(lambda p: [f"while {p[0]}:", *("    " + line for line in p[1]), "    break"]),
        one.map(block("with x as y, {} as z:")),
        st.tuples(st.none(), body, body).map(block("try:", "finally:")),
        st.tuples(st.none(), body, body).map(
            lambda p: (
                ["try:", *("    " + i for i in p[1]), "except KeyError:", "    pass", "else:"]
                + ["    " + i for i in p[2]]
            )
        ),
        both.map(lambda p: [f"match {p[0]}:", "    case y:", *("        " + line for line in p[1])]),
        one.map(
            lambda p: [
                "def inner():",
                "    nonlocal y, z",
                *("    " + i for i in p[1]),
                f"    return {p[0]}",
                "inner()",
            ]
        ),
    )


def functions(expression):
    blocks = st.lists(statements(expression, 2), min_size=1, max_size=3).map(joined)
    return st.builds(
        lambda body, result: "\n    ".join(["def forward(y, z):", *body, f"return {result}"]), blocks, expression
    )


straight = functions(st.recursive(atoms, expressions, max_leaves=6))


def with_branches(inner):
    two = st.tuples(inner, inner)
    return st.one_of(
        expressions(inner),
        two.map("(0 if {0[0]} else {0[1]})".format),
        two.map("({0[0]} or {0[1]})".format),
        two.map("(lambda w, u=y: {0[0]})({0[1]})".format),
        two.map("[{0[0]} for w in ({0[1]}, x) for u in (w, w)][-1]".format),
        two.map("missing({0[0]}, {0[1]})".format),
        two.map("next(iter({{{0[0]}, {0[1]}}}))".format),
        inner.map("a({}).split(x)[0]".format),
    )


branching = functions(st.recursive(atoms, with_branches, max_leaves=6))


def is_python(source):
    """Whether it compiles: a walrus may not stand in the iterable of a comprehension."""
    try:
        compile(source, "<generated>", "exec")
    except SyntaxError:
        return False
    return True


def run(function, log):
    """What the function returned or raised; what cannot be unpacked is worded by whoever unpacks it."""
    try:
        return repr(function(Value(log, "y"), Value(log, "z")))
    except Exception as error:
        return "TypeError" if isinstance(error, TypeError) and "iterable" in str(error) else repr(error)


def record_of(source, observe):
    log, called = [], []
    function = define(source, **world(log))
    if observe is not None:
        function, called = observed(function, everything=observe)
    return run(function, log), log, called


@settings(max_examples=80)
@given(straight)
def test_labels_count_the_calls_as_they_are_evaluated(source):
    assume(is_python(source))
    result, log, _ = record_of(source, None)
    counts, expected = Counter(), []
    for name, event in log:
        if name in STEMS and event[0] == "call":
            expected.append(f"{STEMS[name]}_{counts[name]}")
            counts[name] += 1
    listed = rewritten(define(source)).listing.labels
    assert [label for label in listed if label.rpartition("_")[0] in STEMS.values()] == expected

    again, its_log, called = record_of(source, False)
    assert (again, its_log) == (result, log)
    assert [label for label in called if label.rpartition("_")[0] in STEMS.values()] == expected


@pytest.mark.parametrize("everything", [False, True])
@settings(max_examples=80)
@given(source=branching)
def test_an_observed_function_does_what_the_original_does(everything, source):
    assume(is_python(source))
    assert record_of(source, everything)[:2] == record_of(source, None)[:2]
