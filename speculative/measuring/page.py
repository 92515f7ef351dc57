"""What was measured of one text with a draft and without, in words; table.py is the same for many."""

from ..tree import n_common
from .rows import compared, gain_of
from .table import rounding

SHORT = 0.1  # seconds; shorter texts cannot be timed


def lines_of(result):
    """The lines of a page on one text."""
    alone, run, row = result.alone[0], result.runs[0], compared(result.alone, result.runs)
    if min(alone.seconds, run.seconds) < SHORT:
        yield f"note          texts of less than {SHORT} s are too short to measure: generate more"
    if row["speedup"] < 1:
        yield "verdict       slower than the target alone; `compare --drafter all --K 1-4` shows what is faster"
    laps = [before / after * len(run.tokens) / len(alone.tokens) for before, after in zip(alone.laps, run.laps)]
    reach = f" ({len(laps)} laps: {min(laps):.2f} to {max(laps):.2f})" if len(laps) > 1 else ""
    with_prompt = gain_of(result.alone, result.runs, prefill=True)["speedup"]
    yield f"speedup       {row['speedup']:.2f}{reach}; {with_prompt:.2f} with the prompt"
    n, stats = len(run.tokens), run.stats
    yield f"target calls  {stats.target_calls} instead of {n}, {stats.tokens_per_target_call:.2f} tokens per call"
    yield f"accepted      {accepted(stats)}"
    shares = "  ".join(f"{i}: {share:.0%}" for i, share in enumerate(stats.acceptance_by_position, 1))
    yield f"by position   {f'{shares}, of the rounds that drafted this far' if shares else 'nothing was drafted'}"
    if result.exactness == "LOSSY":
        yield "output        LOSSY: this rule changes the distribution of the text"
    if result.is_one_text:
        yield f"same text     {same_text(alone.tokens, run.tokens)}"
    if result.gap is not None:
        yield f"rounding      {rounding(result.gap)}"


def accepted(stats):
    levels = sum(stats.drafted_by_position)
    if levels == stats.drafted:
        share = f" ({stats.acceptance:.0%}), all rounds" if stats.drafted else ""
        return f"{stats.accepted} of {stats.drafted} drafted tokens{share}"
    n = stats.drafted_by_position[0]  # of a tree: at each depth, at most one node can be accepted
    depth, nodes = levels / n, stats.drafted / n
    return f"{stats.accepted / n:.1f} tokens of a tree of depth {depth:.1f} with {nodes:.1f} nodes, on average"


def same_text(ordinary, other):
    """A phrase that says whether two lists of tokens are the same."""
    if ordinary == other:
        return f"yes, all {len(ordinary)} tokens" if len(ordinary) != 1 else "yes, the one token"
    return f"no, they differ from token {n_common(ordinary, other) + 1} of {len(ordinary)} on"
