"""Calls in graded code that get a uniform number that is not drawn yet: float(u), isinstance(u, float), log(u).

    with calls_answered(fn):
        fn(...)             float(rng.random()) is rng.random(); but .astype(float), dtype=float, type(x) is float

Inside the block these calls, in fn and in the functions that it can reach, go through `answered`; the names mean what
they always mean. For this the functions' files or notebook cells are compiled once more, and a function gets the new
code if its old code is that of the source. Where there is no source, or `float` is handed on as in map(float, u),
`float_replaced` puts a class in the place of the name `float` in the globals of fn.
"""

import ast
import contextlib
import functools
import linecache
import math

import numpy as np

from .sources import codes, is_own, parts_in

NAMES = "float", "float64", "isinstance", "log"
ANSWERED = "_answered_"  # the name of `answered` in the globals of functions
LOG = math.log


def log(value, *base):
    return LOG(value, *base) if base or not hasattr(value, "as_value") else value.log()


def answered(function, *arguments, **keywords):
    """function(*arguments, **keywords), where the first argument may be a number that is not drawn yet."""
    if function is float and arguments and hasattr(arguments[0], "uniforms"):  # a tensor of one such number
        arguments = (arguments[0].item(),)
    if not arguments or not hasattr(arguments[0], "as_value"):
        return function(*arguments, **keywords)
    if function is isinstance:
        return isinstance(0.5, arguments[1])
    return arguments[0] if function in (float, np.float64) else (log if function is LOG else function)(*arguments)


class Rewritten(ast.NodeTransformer):
    """f(x) becomes answered(f, x) for the names f."""

    def visit_Call(self, node):
        self.generic_visit(node)
        if getattr(node.func, "id", getattr(node.func, "attr", "")) in NAMES:
            node.args.insert(0, node.func)
            node.func = ast.copy_location(ast.Name(ANSWERED, ast.Load()), node.func)
        return node


@functools.lru_cache
def rewritten(filename, source):
    """dict code -> the same with its calls rewritten, for each code of a file; {} if it cannot be compiled."""
    try:
        trees = ast.parse(source), Rewritten().visit(ast.parse(source))
        return dict(zip(*(codes(compile(tree, filename, "exec", dont_inherit=True)) for tree in trees)))
    except (SyntaxError, ValueError):
        return {}


@contextlib.contextmanager
def calls_answered(fn):
    with contextlib.ExitStack() as stack:
        for function in parts_in(fn):
            if not is_own(function):
                continue
            code, names = function.__code__, function.__globals__
            if any({*NAMES} & {*one.co_names} for one in codes(code)):
                new = rewritten(code.co_filename, "".join(linecache.getlines(code.co_filename, names))).get(code)
                if new and names.setdefault(ANSWERED, answered):
                    stack.callback(names.pop, ANSWERED, None)
                    stack.callback(setattr, function, "__code__", code)
                    function.__code__ = new
        yield


class Float(type):
    def __instancecheck__(cls, value):
        return isinstance(value, float)

    def __call__(cls, value=0.0):
        return answered(float, value)


class OpenFloat(metaclass=Float):
    """`float` that leaves a uniform number that is not drawn yet unchanged; as a dtype it is `object`."""


class OpenFloat64(OpenFloat):
    """The same, as a dtype float64."""

    dtype = np.dtype(float)


@contextlib.contextmanager
def float_replaced(fn, names, kind):
    """`kind` is the name `float` in the globals, `names`, of fn."""
    before = {"float": names["float"]} if "float" in names else {}
    names["float"] = kind
    try:
        yield
    finally:
        names.pop("float")
        names.update(before)
