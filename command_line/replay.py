"""Print the rounds of a trace without a model; write traces to files.

Next: audit.py
"""

from speculative.trace import Trace, page

from .files import deliver, replacing
from .views import print_trace


def replay(request, parts):
    """Print a trace round by round."""
    try:
        trace = Trace.load(request.file)
    except OSError as error:
        raise ValueError(
            f"replay: cannot read {request.file} ({error.strerror}): give a file written by --trace FILE.jsonl"
        ) from None
    steps = [lambda: print_trace(trace)]
    if request.trace:
        steps.append(lambda: write_trace(trace, request.trace))
    deliver(*steps)


def write_trace(trace, name):
    """Write the trace as a page or as JSON lines, depending on the suffix."""
    with replacing("trace", name) as path:
        if name.endswith(".html"):
            path.write_text(page(trace), encoding="utf-8")
        else:
            trace.save(path)
