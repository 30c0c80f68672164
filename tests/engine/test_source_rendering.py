"""Listings as text, written out by hand, and as HTML."""

import re
from html.parser import HTMLParser

import torch
from torch import nn

from nnsight_lab import NNsight
from nnsight_lab.engine.render import render_html, render_operation, render_text
from nnsight_lab.engine.rewrite import rewritten
from tests.engine.source_tools import define


def listing(source, **names):
    return rewritten(define(source, **names)).listing


def text(source, **names):
    return render_text(listing(source, **names)).split("\n")


def test_rows_operations_and_further_operations_of_a_row():
    source = """
    def forward(self, x):
        x = self.act(x)

        if x is None:
            x = self.proj(x).view(2)
        return x
    """
    assert text(source) == [
        "                 * def forward(self, x):",
        " self_act_0  ->  0     x = self.act(x)",
        "                 1 ",
        "                 2     if x is None:",
        " self_proj_0 ->  3         x = self.proj(x).view(2)",
        " view_0      ->  +         ...",
        "                 4     return x",
        "                 5 ",
    ]


def test_a_function_without_operations():
    assert text("def forward(self, x):\n    return x") == [
        "      * def forward(self, x):",
        "      0     return x",
        "      1 ",
    ]


def test_a_one_line_function():
    assert text("def forward(x): return f(g(x))") == [
        " g_0 ->  * def forward(x): return f(g(x))",
        " f_0 ->  + ...",
        "         0 ",
    ]


def test_decorators_are_dropped_and_a_long_signature_is_kept():
    source = """
    @keep(1)
    @keep(
        2,
    )
    def forward(
        self,
        x: int = int(),
    ):
        return f(x)
    """
    assert text(source, keep=lambda _: lambda function: function) == [
        "         * def forward(",
        "         0     self,",
        "         1     x: int = int(),",
        "         2 ):",
        " f_0 ->  3     return f(x)",
        "         4 ",
    ]


def test_indentation_goes_and_text_with_less_of_it_loses_what_it_has():
    source = 'class A:\n    def forward(self):\n        return f("""\n  less\nnone\n        more""")\n'
    assert render_text(rewritten(define(source, name="A").forward).listing).split("\n") == [
        "         * def forward(self):",
        ' f_0 ->  0     return f("""',
        "         1 less",
        "         2 none",
        '         3     more""")',
        "         4 ",
    ]


def test_line_numbers_of_three_digits_keep_the_column():
    body = "".join(f"    x = {i}\n" for i in range(100)) + "    return f(x)\n"
    rows = text(f"def forward(x):\n{body}")
    assert rows[9:12] == ["         8     x = 8", "         9     x = 9", "        10     x = 10"]
    assert rows[-3:] == ["        99     x = 99", " f_0 ->100     return f(x)", "       101 "]


def test_an_async_function_and_a_comment_at_its_end():
    assert text("async def forward(x):\n    return await f(x)\n    # the end\n") == [
        "         * async def forward(x):",
        " f_0 ->  0     return await f(x)",
        "         1     # the end",
        "         2 ",
    ]


def test_an_operation_is_marked_inside_a_few_rows():
    source = "def forward(x):\n" + "".join(f"    x = f{i}(x)\n" for i in range(20))
    found = listing(source)
    rows = render_operation(found, found["f9_0"]).split("\n")
    assert rows[0] == f"f9_0 in forward ({found.filename}:11)"
    assert rows[2:] == [
        *(f"    {i:3d}     x = f{i}(x)" for i in range(4, 9)),
        "-->   9     x = f9(x) <--",
        *(f"    {i:3d}     x = f{i}(x)" for i in range(10, 15)),
    ]
    assert render_operation(found, found["f0_0"], rows=1).split("\n")[2:] == [
        "      * def forward(x):",
        "-->   0     x = f0(x) <--",
        "      1     x = f1(x)",
    ]
    assert render_operation(found, found["f19_0"], rows=1).split("\n")[2:] == [
        "     18     x = f18(x)",
        "-->  19     x = f19(x) <--",
        "     20",
    ]


class Cells(HTMLParser):
    """The text of every table cell, and the names of all tags."""

    def __init__(self, html):
        super().__init__()
        self.cells, self.tags = [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_data(self, data):
        if self.cells:
            self.cells[-1] += data


def test_html_shows_code_as_text():
    source = 'def forward(x):\n    return f("<script>alert(1)</script>") if x < 1 & 2 else g(x)'
    found = listing(source)
    html = Cells(render_html(found))
    row = '    return f("<script>alert(1)</script>") if x < 1 & 2 else g(x)'
    assert html.cells == ["", "*", "def forward(x):", "f_0 g_0", "0", row]
    assert "script" not in html.tags


def test_html_marks_the_row_of_an_operation_and_loads_nothing():
    found = listing("def forward(x):\n    y = f(x)\n    return g(y)")
    html = render_html(found, found["g_0"])
    assert re.findall(r'<tr class="hit">.*?</tr>', html) == [
        '<tr class="hit"><td><span class="op">g_0</span></td><td class="n">1</td><td>    return g(y)</td></tr>'
    ]
    assert "http" not in html
    assert "<script" not in html


class Doubling(nn.Module):
    def forward(self, x):
        return torch.mul(x, 2)


def test_notebooks_get_text_and_html():
    source = NNsight(Doubling()).source
    shown = source._repr_mimebundle_()
    assert shown["text/plain"] == str(source) == repr(source)
    table, _, line = shown["text/html"].partition("<div")
    assert Cells(table).cells[3:] == ["torch_mul_0", "0", "    return torch.mul(x, 2)"]
    assert "model.lab()" in line
    shown = source.torch_mul_0._repr_mimebundle_()
    assert "-->   0     return torch.mul(x, 2) <--" in shown["text/plain"]
    assert 'class="hit"' in shown["text/html"]
