"""What was measured of one setting, in words; table.py is the same for many."""

from ..tree import n_common
from .experiment import total
from .rows import compared, gain_of
from .table import rounding, with_interval

N_POSITIONS = 8  # of a longer draft, the first ones are shown
SHORT = 0.1  # seconds; shorter texts cannot be timed
APART = 1.3  # on a quiet machine, the laps of a text differ by less than this factor


def lines_of(result, has_timings=False):
    """The lines of a page on the texts of one setting, each with a draft and without."""
    row, run, n_texts = compared(result.alone, result.runs), total(result.runs), len(result.runs)
    texts = [*result.alone, *result.runs]
    if min(text.seconds for text in texts) < SHORT:
        yield f"note          texts of less than {SHORT} s are too short to measure: generate more"
    elif any(max(text.laps) > APART * min(text.laps) for text in texts):
        yield "note          this machine is busy, the same text took different times: measure again"
    if row["speedup"] < 1:
        yield "verdict       slower than the target alone; `compare --drafter all --K 1-4` shows what is faster"
    with_prompt = gain_of(result.alone, result.runs, prefill=True)["speedup"]
    prompts = "the prompt" if n_texts == 1 else f"the prompts; 95 % interval over {n_texts} prompts"
    yield f"speedup       {with_interval(row, 'speedup')}{laps_of(result)}; {with_prompt:.2f} with {prompts}"
    n, stats = len(run.tokens), run.stats
    yield f"target calls  {stats.target_calls} instead of {n}, {stats.tokens_per_target_call:.2f} tokens per call"
    yield f"accepted      {accepted(stats)}"
    by_position = stats.acceptance_by_position[:N_POSITIONS]
    shares = "  ".join(f"{i}: {share:.0%}" for i, share in enumerate(by_position, 1))
    yield f"by position   {f'{shares}, of the rounds that drafted this far' if shares else 'nothing was drafted'}"
    if result.exactness == "LOSSY":
        greedy = "; at temperature 0 it accepts only the target's most probable tokens" * result.is_one_text
        yield f"output        LOSSY: this rule changes the distribution of the text{greedy}"
    if result.is_one_text and n_texts == 1:
        yield f"same text     {same_text(result.alone[0].tokens, run.tokens)}"
    elif result.is_one_text:
        yield f"same text     {row['same_texts']} of {n_texts} texts"
    elif result.exactness != "LOSSY":
        yield "other text    above temperature 0 a draft changes the text of a seed, but not its distribution"
    if result.gap is not None:
        yield f"rounding      {rounding(result.gap)}"
    if has_timings:
        yield from ("", *timings(run, sum(len(prompt.tokens) for prompt in result.prompts)))


def laps_of(result):
    """The range of the speedup over the laps of a single text."""
    if len(result.runs) > 1:
        return ""
    [alone], [run] = result.alone, result.runs
    gains = [before / after * len(run.tokens) / len(alone.tokens) for before, after in zip(alone.laps, run.laps)]
    return f" ({len(gains)} laps: {min(gains):.2f} to {max(gains):.2f})" if len(gains) > 1 else " (1 lap)"


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


def timings(run, n_prompt):
    """The lines that llama.cpp prints after a speculative run, to compare the two side by side."""
    n, stats = len(run.tokens), run.stats
    for name, n_tokens, seconds in (("encoded", n_prompt, run.prefill_seconds), ("decoded", n, run.seconds)):
        yield f"{name} {n_tokens:4} tokens in {seconds:8.3f} seconds, speed: {n_tokens / max(seconds, 1e-9):8.3f} t/s"
    n_draft = len(stats.drafted_by_position)
    yield f"n_draft = {n_draft}, n_predict = {n}, n_drafted = {stats.drafted}, n_accept = {stats.accepted}"
    yield f"accept = {100 * stats.acceptance:.3f}%"
    on_target = run.seconds - run.draft_seconds - run.verify_seconds
    for name, n_tokens, seconds in (
        ("target eval", stats.drafted + stats.target_calls, on_target),
        ("draft eval", stats.drafted, run.draft_seconds),
        ("sample", n, run.verify_seconds),
    ):
        ms = 1000 * seconds
        yield f"{name:11} time = {ms:9.1f} ms / {n_tokens:5} tokens ({ms / max(n_tokens, 1):7.2f} ms per token)"
    yield f"total time = {1000 * (run.prefill_seconds + run.seconds):.1f} ms"
