"""The rounds of a trace again, without a model; and the files that a trace is kept in.

Next: museum.py
"""

from speculative.trace import Trace, page

from .files import deliver, replacing
from .views import print_trace


def replay(request, parts):
    """A trace round by round."""
    try:
        trace = Trace.load(request.file)
    except OSError as error:
        raise ValueError(
            f"replay: cannot read {request.file} ({error.strerror}): give a file that --trace FILE.jsonl has written"
        ) from None
    steps = [lambda: print_trace(trace)]
    if request.trace:
        steps.append(lambda: write_trace(trace, request.trace))
    deliver(*steps)


def write_trace(trace, name):
    """As a page or as JSON lines, by the file's name."""
    with replacing("trace", name) as path:
        if name.endswith(".html"):
            path.write_text(page(trace), encoding="utf-8")
        else:
            trace.save(path)
