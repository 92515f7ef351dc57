"""The names in an answer's code: graders do not look at them; an exercise may, to refuse the library's own solution."""


def names_in(fn):
    """The names that a function uses, and its own; also of a cached or partial one, and of an object that is called."""
    while inner := getattr(fn, "__wrapped__", None) or getattr(fn, "func", None):
        fn = inner
    code = getattr(fn, "__code__", None) or getattr(type(fn).__call__, "__code__", None)
    return {getattr(fn, "__name__", type(fn).__name__), *(code.co_names if code else ())}
