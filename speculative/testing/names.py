"""The names in an answer's code. Graders ignore them; an exercise may use them to refuse the library's own solution."""

import dis
from types import FunctionType, ModuleType

from .sources import codes

OWN = ("speculative", "gpt2np")


def names_in(answer):
    """The names that a function or a class uses, and its own name, including the names in nested code.

    Attributes of modules that are not the library's, as in torch.softmax, do not count. A class includes the names of
    its methods and base classes. An imported name also counts under its original name, as in `from speculative import
    rejection as r`. This also works for a cached or partial function, and for a callable object.
    """
    while inner := getattr(answer, "__wrapped__", None) or getattr(answer, "func", None):
        answer = inner
    if not hasattr(answer, "__code__"):
        classes = (answer if isinstance(answer, type) else type(answer)).__mro__[:-1]
        methods = [getattr(method, "__func__", method) for each in classes for method in vars(each).values()]
        methods = [method for method in methods if hasattr(method, "__code__")]
        return {getattr(answer, "__name__", ""), *(each.__name__ for each in classes)}.union(*map(names_in, methods))
    names = {name for code in codes(answer.__code__) for name in names_of(code, answer.__globals__)}
    meant = (answer.__globals__.get(name) for name in names)
    return {answer.__name__, *names, *(one.__name__ for one in meant if isinstance(one, (type, FunctionType)))}


def names_of(code, known):
    """The names in a code object, without attributes of foreign modules."""
    is_foreign = False
    for step in dis.get_instructions(code):
        if step.opname.endswith(("_GLOBAL", "_NAME", "_FROM")):
            value = known.get(step.argval)
            is_foreign = isinstance(value, ModuleType) and value.__name__.split(".")[0] not in OWN
            yield step.argval
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR"):
            if not is_foreign:
                yield step.argval
        elif step.opname not in ("CACHE", "PUSH_NULL", "PRECALL"):
            is_foreign = False
