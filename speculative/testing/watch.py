"""The graders' frame around each call of the graded code: compare its arguments, report errors, end calls that hang.

asked(call, what, where, arguments)      call(); an error in it is reported together with the case
note(text), with_progress(what, cases)   messages that are not failures
"""

import contextlib
import ctypes
import sys
import threading
import traceback
from pathlib import Path
from time import perf_counter, sleep

import numpy as np

from ..exact.enumeration import CannotEnumerate

PATIENCE = 20.0  # seconds for one call
QUIET = 5.0  # seconds before a grader reports its progress


def told_error(hint, *details):
    """The AssertionError of a grader: the hint in its first line, then the case that shows it."""
    error = AssertionError("\n".join([hint, *details]))
    error.is_told = True
    return error


def fail(hint, *details):
    raise told_error(hint, *details)


class Endless(BaseException):
    """A call that does not return; not an Exception, so that `except Exception` in the call does not catch it."""


endings, changing = {}, threading.Lock()  # thread -> the time at which its call has taken too long
watchers = []  # the thread that checks `endings`


@contextlib.contextmanager
def patience():
    """Raise Endless in the block after PATIENCE seconds, between two bytecodes; in any thread, on any system."""
    thread = threading.get_ident()
    with changing:
        endings[thread] = perf_counter() + PATIENCE
        if not watchers or not watchers[-1].is_alive():  # a fork does not copy the other threads
            watchers.append(threading.Thread(target=end_calls, daemon=True))
            with contextlib.suppress(RuntimeError):  # Pyodide cannot start one, so a call that hangs is not ended
                watchers[-1].start()
    try:
        yield
    finally:
        with changing:
            endings.pop(thread, None)


def end_calls():
    """Raise Endless in each thread whose call has taken too long."""
    while True:
        sleep(0.2)
        with changing:
            late = [thread for thread, ending in endings.items() if perf_counter() > ending]
            for thread in late:
                del endings[thread]
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Endless))


def asked(call, what, where, arguments=()):
    """The result of call(), which is the graded code, run without NumPy's warnings.

    Parameters
    ----------
    call : callable
    what : str
        The graded code, such as "your verifier".
    where : callable
        Returns the case as text.
    arguments : sequence of arrays and lists
        The call must not change them.
    """
    before = [argument.copy() for argument in arguments]
    try:
        with patience(), np.errstate(all="ignore"):
            result = call()
    except CannotEnumerate as error:
        error.where = where()
        raise
    except Endless:
        hint = f"{what} does not return: an endless loop? It ran for {PATIENCE:g} seconds without a result"
        fail(hint, f"  {where()}")
    except (Exception, SystemExit) as error:
        if hasattr(error, "is_told"):
            raise
        if "read-only" in str(error):
            fail(f"{what} writes to its arguments: work on a copy", f"  {where()}", *place(error))
        advice = next((f"; {remedy}" for text, remedy in ADVICE.items() if text in str(error)), "")
        raise told_error(f"{what} fails {where()}: {described(error)}{advice}", *place(error)) from error
    for argument, copy in zip(arguments, before):
        if bits(argument) != bits(copy):
            fail(f"{what} writes to its arguments: work on a copy", f"  {where()}", f"  {copy} became {argument}")
    return result


def bits(argument):
    """The contents of an array, in which NaN equals NaN; other arguments as they are."""
    return argument.tobytes() if isinstance(argument, np.ndarray) else argument


def described(error):
    """An exception as half a sentence."""
    if isinstance(error, AssertionError) and not str(error):
        frames = traceback.extract_tb(error.__traceback__)
        return f"its own `{(frames[-1].line if frames else '') or 'assert'}` does not hold"
    if isinstance(error, NotImplementedError):
        return f"it is not written yet (NotImplementedError: {str(error).splitlines()[0] if str(error) else ''})"
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def place(error):
    """The line of the graded code that raised the error: the last one that is not in the library or in NumPy."""
    frames = traceback.extract_tb(error.__traceback__)
    their_lines = [f.line for f in frames if not any(part in f.filename for part in NOT_THEIRS) and f.line]
    return [f"  in the line: {their_lines[-1]}"] if their_lines else []


NOT_THEIRS = (str(Path(__file__).parents[1]), "site-packages")
ADVICE = {  # a part of an exception's message: the remedy
    "'ExactGenerator' object has no": "rng is an np.random.Generator: use rng.random() and rng.choice(n, p=...)",
    "numpy.object_": "compare the numbers of rng.random() as they are, u * q < p, and do not make a tensor of them",
    "can't convert np.ndarray": "compare the numbers of rng.random() as they are, u * q < p, and do not make a tensor "
    "of them",
    "object has no attribute 'tokens'": "a verifier is called as verifier(draft, target_probs, rng), in this order",
    "probabilities that add up to 1": "divide by the sum before you draw: a residual max(0, p - q) adds up to less "
    "than 1",
}


ONE_SEED = "draw everything from the rng that is passed in, so that one seed gives one text"


def fail_by_source(what, source, *details):
    fail(f"{what} uses a source of randomness other than rng: {source}; {ONE_SEED}", *details)


UNKNOWN_SOURCE = (
    "uses a source of randomness other than rng (np.random, random, torch.rand, a generator of its own), or keeps "
    "something between calls: the same draws of rng gave a different result in a second call; " + ONE_SEED
)


def note(text):
    """Print something worth knowing that is not a failure."""
    print(f"note: {text}")


def with_progress(what, cases):
    """The cases of a grader; their number is reported on stderr once they have taken a few seconds."""
    begin = perf_counter()
    for n, case in enumerate(cases, 1):
        yield case
        if perf_counter() - begin > QUIET:
            end = "\n" if n == len(cases) else "\r"
            print(f"{what}: {n} of {len(cases)} cases", end=end, file=sys.stderr, flush=True)
