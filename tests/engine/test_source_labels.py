"""The label rule, clause by clause; the expected labels are written by hand."""

import sys

import pytest

from nnsight_lab.engine.rewrite import rewritten
from tests.engine.source_tools import define, labels


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("act(x)", ["act_0"]),
        ("self.act(x)", ["self_act_0"]),
        ("torch.nn.functional.softmax(x)", ["torch_nn_functional_softmax_0"]),
        ("self.__call__(x)", ["self___call___0"]),
        ("f(x).split(2)", ["f_0", "split_0"]),
        ("f(x).T.split(2)", ["f_0", "T_split_0"]),
        ("f(x)[0].split(2)", ["f_0", "split_0"]),
        ("self.layers[0](x)", ["self_layers_0"]),
        ("self.layers[i].attn(x)", ["self_layers_attn_0"]),
        ("self.layers[pick(i)](x)", ["pick_0", "self_layers_0"]),
        ("self.a[0].b[1](x)", ["self_a_b_0"]),
        ("f(x)(y)", ["f_0", "call_0"]),
        ("f(x)[0](y)", ["f_0", "call_0"]),
        ("(f or g)(x)", ["call_0"]),
        ("(lambda v: v)(x)", ["call_0"]),
        ("(x + y).sum()", ["sum_0"]),
        ("''.join(x)", ["join_0"]),
        ("super().forward(x)", ["forward_0"]),
        ("super()", []),
        ("super(A, self).forward(x)", ["super_0", "forward_0"]),
        ("super(A, self)", ["super_0"]),
        ("x + y * z", []),
        ("(await f(x))(y)", ["f_0", "call_0"]),
    ],
)
def test_the_name_comes_from_the_callee(expression, expected):
    assert labels(f"async def forward(self, x, y, z, i):\n    {expression}") == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("f(g(f(x)))", ["f_0", "g_0", "f_1"]),
        ("f(a(), *b(), k=c(), **d())", ["a_0", "b_0", "c_0", "d_0", "f_0"]),
        ("f(k=c(), *b())", ["b_0", "c_0", "f_0"]),
        ("a().m(b()).n(c())", ["a_0", "b_0", "m_0", "c_0", "n_0"]),
        ("{k(): v(), **more(), k(): v()}", ["k_0", "v_0", "more_0", "k_1", "v_1"]),
        ("[elt(v) for v in it() if cond(v)]", ["it_0", "cond_0", "elt_0"]),
        ("{k(v): w(v) for v in it()}", ["it_0", "k_0", "w_0"]),
        ("[e() for u in a() if b() for v in c() if d()]", ["a_0", "b_0", "c_0", "d_0", "e_0"]),
        ("list(f(v) for v in g())", ["g_0", "f_0", "list_0"]),
        ("yes() if test() else no()", ["test_0", "yes_0", "no_0"]),
        ("a() and b() or c()", ["a_0", "b_0", "c_0"]),
        ("a() < b() < c()", ["a_0", "b_0", "c_0"]),
        ("x[a():b():c()]", ["a_0", "b_0", "c_0"]),
        ("(lambda v=default(): body(v))(arg())", ["body_0", "arg_0", "call_0"]),
        ("(n := f(x)) + n.g()", ["f_0", "n_g_0"]),
        ("f'{a()} {b():{c()}} {d()!r}'", ["a_0", "b_0", "c_0", "d_0"]),
        ("[*a(), b()]", ["a_0", "b_0"]),
        ("(yield a(b()))", ["b_0", "a_0"]),
    ],
)
def test_names_are_counted_in_the_order_of_evaluation(expression, expected):
    assert labels(f"def forward(self, x, y):\n    return {expression}") == expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("x[index()] = value()", ["value_0", "index_0"]),
        ("x[i()], x[j()] = value()", ["value_0", "i_0", "j_0"]),
        ("a()[0] = b()[0] = value()", ["value_0", "a_0", "b_0"]),
        ("x[index()] += value()", ["index_0", "value_0"]),
        ("x[i()]: int = value()", ["value_0", "i_0"]),
        ("y: hint() = value()", ["value_0"]),
        ("for x[i()] in it():\n        body()\n    else:\n        other()", ["it_0", "i_0", "body_0", "other_0"]),
        ("while test():\n        body()\n    else:\n        other()", ["test_0", "body_0", "other_0"]),
        ("with a() as x[i()], b():\n        body()", ["a_0", "i_0", "b_0", "body_0"]),
        (
            "try:\n        a()\n    except kind():\n        b()\n    else:\n        c()\n    finally:\n        d()",
            ["a_0", "kind_0", "b_0", "c_0", "d_0"],
        ),
        (
            "match subject():\n        case [y] if guard(y):\n            a()\n        case Point(z=0):\n            b()",
            ["subject_0", "guard_0", "a_0", "b_0"],
        ),
        ("raise Error(a()) from b()", ["a_0", "Error_0", "b_0"]),
        ("assert test(), message()", ["test_0", "message_0"]),
        ("del x[a()], y[b()]", ["a_0", "b_0"]),
        ("if a():\n        b()\n    elif c():\n        d()\n    else:\n        e()", list("abcde")),
    ],
)
def test_statements_are_walked_in_the_order_of_evaluation(statement, expected):
    expected = [name if "_" in name else f"{name}_0" for name in expected]
    assert labels(f"def forward(self, x, y):\n    {statement}") == expected


def test_nested_functions_and_classes_count_where_they_stand():
    source = """
    def forward(self, x):
        first(x)
        @decorate(x)
        def inner(y, z=default()) -> hint():
            return helper(first(y))
        class Local(Base, option=choose()):
            attribute = make()
            def method(self):
                return helper(self)
        return inner(first(x))
    """
    expected = "first_0 first_1 helper_0 choose_0 make_0 helper_1 first_2 inner_0"
    assert labels(source) == expected.split()


def test_what_runs_when_the_function_is_defined_is_no_operation():
    source = """
    def keep(value=None):
        return lambda function: function

    @keep(dict(a=1))
    def forward(self, x=list(), *, y: tuple() = dict()) -> print:
        return act(x)
    """
    assert labels(source) == ["act_0"]


def test_a_label_belongs_to_the_line_where_its_call_starts():
    source = """
    @staticmethod
    def forward(
        x,
    ):
        y = outer(
            inner(x),
            inner(
                x),
        )
        return (
            y
            .view(1)
            .sum()
        )
    """
    function = define(source, staticmethod=lambda f: f)
    lines = {o.label: o.line for o in rewritten(function).listing.operations}
    assert lines == {"inner_0": 3, "inner_1": 4, "outer_0": 2, "y_view_0": 8, "sum_0": 8}


def test_a_one_line_function_has_its_operations_on_the_def_line():
    operations = rewritten(define("def forward(x): return f(g(x))")).listing.operations
    assert [(o.label, o.line) for o in operations] == [("g_0", -1), ("f_0", -1)]


def test_positions_are_those_of_the_rows_in_characters():
    function = define("class A:\n    def forward(self, é):\n        return [é, act(é)]", name="A").forward
    (act,) = rewritten(function).listing.operations
    assert (act.line, act.column, act.end_line, act.end_column) == (0, 15, 0, 21)


def test_a_call_in_a_multi_line_f_string_has_a_line():
    function = define('def forward(x):\n    pass\n    return f"""a\n  {act(x)}\n"""')
    (act,) = rewritten(function).listing.operations
    assert act.line == (2 if sys.version_info >= (3, 12) else 1)


def test_everything_renames_nothing():
    source = """
    def forward(self, x):
        a, (b, *c) = self.f(x) + op_add(x), var_x(x)
        for d in e(a @ b):
            a += d.f(d)
        return op_add(a)
    """
    calls = ["self_f_0", "op_add_0", "var_x_0", "e_0", "d_f_0", "op_add_1"]
    assert labels(source) == calls
    function = define(source)
    listing = rewritten(function, True).listing
    assert [o.label for o in listing.operations if o.kind == "call"] == calls
    assert len(set(listing.labels)) == len(listing.labels)
