"""Set-up of the `.source` tests: functions from text, and twins whose every operation is observed."""

import itertools
import linecache
import textwrap

from nnsight_lab.engine.rewrite import rewritten

_numbers = itertools.count()


def define(source, name="forward", registered=True, **names):
    """Run `source` and return what it calls `name`; its text is found through `linecache`, like a notebook cell's."""
    source = textwrap.dedent(source)
    filename = f"<test source {next(_numbers)}>"
    if registered:
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace = {"__name__": "made_by_a_test", **names}
    exec(compile(source, filename, "exec", dont_inherit=True), namespace)
    return namespace[name]


def labels(source, everything=False, **names):
    """The labels of the function in `source`, in evaluation order."""
    return list(rewritten(define(source, **names), everything).listing.labels)


def observed(function, everything=False):
    """The twin of `function` and a list that fills with the label of every operation as it is called."""
    found = rewritten(function, everything)
    called = []

    def gate(label):
        def call(callee, /, *args, **kwargs):
            called.append(label)
            return callee(*args, **kwargs)

        return call

    return found.bind(function, [gate(label) for label in found.listing.labels]), called
