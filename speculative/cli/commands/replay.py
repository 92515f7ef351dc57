"""Print the rounds of a trace, without a model."""

from speculative.trace import Trace
from speculative.trace.terminal import colour, legend, round_line, visible

from ..files import deliver
from ..tables import acceptance_lines, counted, has_colours
from . import Command, write_trace


def run(options, saved):
    """Print a trace round by round; with --trace FILE, also write it in another form."""
    try:
        trace = Trace.load(options.file)
    except OSError as error:
        raise ValueError(
            f"replay: cannot read {options.file} ({error.strerror}): give a file written by --trace FILE.jsonl"
        ) from None
    steps = [lambda: print(page_of(trace))]
    if options.trace:
        steps.append(lambda: write_trace(trace, options.trace))
    deliver(*steps)


def page_of(trace):
    """A trace round by round, and its counts."""
    coloured, counts, text = has_colours(), trace.summary, visible(trace.text)
    rounds = [f"{number:4}  {round_line(record, coloured)}" for number, record in enumerate(trace.rounds, 1)]
    head = [legend(coloured), "", colour(text, "prompt") if coloured else text]
    calls = f"target calls  {counts['target_calls']} for {counted(counts['n_tokens'], 'token')}"
    return "\n".join([*head, *rounds, "", f"{calls}, {acceptance_lines(counts)}"])


COMMAND = Command(
    "replay",
    "the rounds in a file of --trace FILE.jsonl, without a model",
    run,
    {"trace"},
    example="t.jsonl --trace t.html",
    word="file",
)
