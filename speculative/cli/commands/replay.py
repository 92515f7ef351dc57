"""Show the rounds in a file from --trace FILE.jsonl, without a model."""

from speculative.trace import Trace
from speculative.trace.terminal import colour, legend, round_line, visible

from ..files import write_trace
from ..options import Option, pick
from ..page import acceptance_lines, counted, has_colours

OPTIONS = pick("trace") | {"file": Option("", "FILE.jsonl", str, "a file written by --trace FILE.jsonl")}
WORD = "file"
EXAMPLES = ("FILE.jsonl", "t.jsonl --trace t.html")


def run(options, report):
    """Print a trace round by round; with --trace FILE, also write it in a different format."""
    try:
        trace = Trace.load(options.file)
    except OSError as error:
        what = f"cannot read {options.file} ({error.strerror})" if options.file else "which file"
        raise ValueError(f"replay: {what}? Give one that --trace FILE.jsonl has written") from None
    if options.trace:
        write_trace(trace, options.trace)
    coloured, counts, text = has_colours(), trace.summary, visible(trace.text)
    print(legend(coloured), "", colour(text, "prompt") if coloured else text, sep="\n")
    for number, record in enumerate(trace.rounds, 1):
        print(f"{number:4}  {round_line(record, coloured)}")
    calls = f"target calls  {counts['target_calls']} for {counted(counts['n_tokens'], 'token')}"
    print(f"\n{calls}, {acceptance_lines(counts)}")
