"""One text generated twice, by the target alone and with a draft: what was measured, and the lines that say it."""

from statistics import median

from ..tree import n_common

SHORT = 0.1  # seconds; the times of shorter texts vary from lap to lap even on a quiet machine
APART = 1.3  # on a quiet machine, the laps differ by less than this factor


def seconds_of(rounds):
    return sum(sum(r.seconds.values()) for r in rounds)


def results_of(generation, text):
    """A generation and its text in plain numbers and lists."""
    stats, tokens, seconds = generation.stats, generation.tokens.tolist(), seconds_of(generation.rounds)
    counts = ("target_calls", "drafted", "accepted", "rejected", "acceptance", "tokens_per_target_call")
    counts += ("drafted_by_position", "accepted_by_position", "acceptance_by_position")
    return {
        "text": text, "tokens": tokens,
        "origins": [origin for r in generation.rounds for origin in r.origins],
        "seconds": seconds, "seconds_by_part": stats.seconds, "tokens_per_second": len(tokens) / seconds,
        **{name: getattr(stats, name) for name in counts},
    }  # fmt: skip


def gain(laps):
    """The speedup, a median over laps of (seconds alone, seconds with the draft), and a note if it is unreliable."""
    speedups = [before / after for before, after in laps]
    note = ""
    if min(laps[0]) < SHORT:
        note = f"texts of less than {SHORT} s are too short to measure: generate more"
    elif max(max(times) / min(times) for times in zip(*laps)) > APART:
        note = "this machine is busy, the same run took different times: measure again"
    return {"speedup": median(speedups), "speedups": speedups, "note": note}


def gain_lines(found):
    """Lines: a note, whether the draft paid off, and the speedup."""
    n = len(found["speedups"])
    if found["note"]:
        yield f"note          {found['note']}"
    if found["speedup"] < 1:
        yield "verdict       slower than the target alone; `compare --drafter all --K 1-4` shows what is faster"
    reach = f" ({n} runs: {min(found['speedups']):.2f} to {max(found['speedups']):.2f})" if n > 1 else ""
    yield f"speedup       {found['speedup']:.2f}{reach}"


def same_text(ordinary, other):
    """A phrase that says whether two lists of tokens are the same."""
    if ordinary == other:
        return f"yes, all {len(ordinary)} tokens" if len(ordinary) != 1 else "yes, the one token"
    return f"no, they differ from token {n_common(ordinary, other) + 1} of {len(ordinary)} on"


def gap_between(ordinary, other, prompt, target, sampling):
    """How far apart the logits of the first two tokens are in which two greedy texts differ; None if they are equal."""
    if ordinary == other:
        return None
    i = n_common(ordinary, other)
    text = [*prompt, *ordinary[:i]]
    row = sampling.adjusted(target(text), text)[0]
    return abs(float(row[ordinary[i]]) - float(row[other[i]]))


def rounding(gap):
    """A line on texts that differ: an engine computes a row alone and among others in different orders."""
    return f"the two logits are {gap:.2g} apart: this engine rounds differently for K + 1 tokens than for one"


def acceptance_lines(counts):
    """The end of the line about target calls, and two lines about draft tokens."""
    shares = [f"{i}: {share:.0%}" for i, share in enumerate(counts["acceptance_by_position"], 1)]
    share = f" ({counts['acceptance']:.0%}), all rounds" if counts["drafted"] else ""
    by_position = "  ".join(shares) + ", of the rounds that drafted this far" if shares else "nothing was drafted"
    accepted = f"{counts['accepted']} of {counts['drafted']} drafted tokens{share}"
    levels = sum(counts["drafted_by_position"])
    if levels < counts["drafted"]:  # a tree: at each depth, at most one node can be accepted
        n = counts["drafted_by_position"][0]
        accepted = f"{counts['accepted'] / n:.1f} tokens of a tree of depth {levels / n:.1f} "
        accepted += f"with {counts['drafted'] / n:.1f} nodes, on average"
    return f"""{counts["tokens_per_target_call"]:.2f} tokens per call
accepted      {accepted}
by position   {by_position}"""


def costs_line(costs):
    v = " ".join(f"{number:.2f}" for number in costs["v"])
    return f"an autoregressive step {1000 * costs['step']:.2f} ms, c = {costs['c']:.3f}, v(1..{len(costs['v'])}) = {v}"
