"""Did the draft pay in a comparison, and what to try where it did not.

One run of each sampler says little on a busy machine. So both run a few times, alternating, and a
machine whose runs differ, or whose processor was busy with something else, is said to be busy.

The advice follows from the rounds of all runs, whose costs and acceptance go into `theory.best_K`, and for a
tree for `best_shape`. Left out are the first round of each run, which processes the prompt, and the cost of K beyond
the rounds seen: v is a straight line through v(1) = 1 and the v at the usual size of a draft, up to twice a chain's
length.
"""

from collections import Counter
from itertools import accumulate, islice
from statistics import median
from time import perf_counter, process_time

import numpy as np

from speculative import collect
from speculative.measuring.best_shape import best_shape
from speculative.theory import best_K, estimate_alpha

N_LAPS = 3  # of both samplers, alternating; the first of each is shown
LAP_SECONDS = 1.0  # of a later lap: where a text takes longer, only its first rounds are generated again
APART = 1.3  # a quiet machine's laps differ by less than this factor
SHARE = 0.85  # of a processor, which a quiet machine leaves to this process
SHORT = 0.1  # seconds: shorter texts differ from lap to lap on a quiet machine as well


def clocked(tokens, rounds, see=lambda step: None):
    """(generation, the seconds of each round). The clock stops while a round is shown."""
    seconds = []

    def steps():
        while True:
            started = perf_counter()
            step = next(rounds, None)
            if step is None:
                return
            seconds.append(perf_counter() - started)
            see(step)
            yield step

    return collect(tokens, steps()), seconds


def laps(starts, first):
    """Time the samplers again, alternating, unless the text of one is too short to be timed.

    Parameters
    ----------
    starts : sequence of functions
        Each warms a sampler up and returns its rounds.
    first : sequence of list of float
        The seconds of each round of the first lap.

    Returns
    -------
    seconds : list of list of float
        For each sampler, the seconds of each lap, the first included, over the rounds that all of its laps have.
    rounds : list of list of Round
        Those of the further laps, without the first of each.
    share : float
        The time that processors spent on this process, over the time that passed; 1 where nothing was timed again.
    """
    n_laps = N_LAPS if min(map(sum, first)) >= SHORT else 1
    counts = [1 + sum(passed < LAP_SECONDS for passed in accumulate(times[:-1])) for times in first]
    seconds = [[sum(times[:n])] for n, times in zip(counts, first)]
    rounds, wall, busy = [[] for _ in starts], 0.0, 0.0
    for _ in range(n_laps - 1):
        for start, n, times, some in zip(starts, counts, seconds, rounds):
            new, began = islice(start(), n), process_time()
            generation, passed = clocked([], new)
            busy += process_time() - began
            times.append(sum(passed))
            wall += times[-1]
            some += generation.rounds[1:]
    return seconds, rounds, busy / wall if wall else 1.0


def outcome(alone, assisted, seconds, share):
    """The result of the laps, in plain numbers.

    Parameters
    ----------
    alone, assisted : float
        Seconds of the whole texts in the first lap.
    seconds, share
        As `laps` returns them.

    Returns
    -------
    dict
        speedup, the median of `speedups`, one a lap; doubt, why the times cannot be relied on, in words, or "".
    """
    (first, *_), (other, *_) = seconds  # parts of the two whole texts, where these are long
    speedups = [(alone / first * a) / (assisted / other * b) for a, b in zip(*seconds)]
    apart, signs = [max(times) / min(times) for times in seconds], []
    if max(apart) > APART:
        times = seconds[int(np.argmax(apart))]
        signs.append(f"the same run took {min(times):.2f} to {max(times):.2f} s")
    if share < SHARE:
        signs.append(f"this process had {share:.0%} of a processor")
    found = ", ".join(signs)
    if min(alone, assisted) < SHORT:
        found = f"texts of less than {SHORT} s are too short to tell: generate more"
    elif signs:
        found = f"this machine is busy ({found}): measure again"
    return {"speedup": median(speedups), "speedups": speedups, "doubt": found}


# ------------------------------------------------------------------------------------------------ what to try


def suggestion(plain, assisted, stats, most_levels=None):
    """Which K, or which tree, the rounds suggest.

    Parameters
    ----------
    plain, assisted : list of Round
        Of the target alone, and with a draft.
    stats : Stats
        Of one text with a draft.
    most_levels : int, optional
        Of a tree; None for drafts whose shape cannot be chosen.

    Returns
    -------
    dict
        best_K: 0 where every K is expected to be slower than the target alone; best_tree, for trees: nodes and levels,
        0 where none pays. Either comes with best_from: its acceptance, c, v as {number of tokens: v}, and for K most_K,
        the largest considered. All are None where too little was drafted, and best_K for trees.
    """
    found, some = {"best_K": None, "best_tree": None, "best_from": None}, [r for r in assisted if len(r.drafted)]
    if not some or not plain:
        return found
    step, counts = median(map(checking, plain)), Counter(len(r.drafted) for r in some)
    size = max(counts, key=lambda n: (counts[n], n))  # the usual one
    c = median(r.seconds["draft"] / r.draft.depth for r in some) / step
    v = max(1.0, median(checking(r) for r in some if len(r.drafted) == size) / step)  # less than 1 is noise
    costs = {"c": c, "v": {str(size + 1): v}}
    if all(r.draft.depth == len(r.drafted) for r in some):
        alpha, _, _ = estimate_alpha(stats.accepted, stats.rejected)
        K = best_K(alpha, c, 1 + (v - 1) * np.arange(2 * size + 1) / size)
        return found | {"best_K": K, "best_from": {"alpha": alpha, **costs, "most_K": 2 * size}}
    if most_levels:
        w = accepted_by_rank(some)
        shape, _ = best_shape(w, c, 1 + (v - 1) * np.arange(size + 1) / size, most_levels)
        tree = {"nodes": len(shape), "levels": shape.depth}
        return found | {"best_tree": tree, "best_from": {"acceptance_by_rank": w.tolist(), **costs}}
    return found


def accepted_by_rank(rounds):
    """w [n_ranks]: how often the child of each rank was the accepted one, of the nodes that had such a child."""
    tested, accepted = Counter(), Counter()
    for r in rounds:
        for node, following in zip([-1, *r.nodes], [*r.nodes, None]):
            children = r.draft.children(node)
            tested.update(range(len(children)))
            accepted.update([children.index(following)] if following is not None else [])
    return np.array([accepted[rank] / tested[rank] for rank in sorted(tested)])


def checking(r):
    """Seconds of a round without the drafting."""
    return r.seconds["target"] + r.seconds["verify"]


# ------------------------------------------------------------------------------------------------ in words


def lines(report):
    """The lines of the verdict: a busy machine, or the best K or tree; whether the draft paid; the speedup."""
    if report["doubt"]:
        yield f"note          {report['doubt']}"
    elif report["best_K"] is not None or (report["best_tree"] or {}).get("nodes"):
        yield best_line(report)
    if report["speedup"] < 1:
        yield f"verdict       slower than the target alone: {what_to_try(report)}"
    least, greatest = min(report["speedups"]), max(report["speedups"])
    runs = f" ({n} runs: {least:.2f} to {greatest:.2f})" if (n := len(report["speedups"])) > 1 else ""
    yield f"speedup       {report['speedup']:.2f}{runs}"


def best_line(report):
    """The best K, or the best tree as the options that draft it."""
    K, tree, found = report["best_K"], report["best_tree"], report["best_from"]
    ((m, v),) = found["v"].items()
    costs = f"c {found['c']:.2f}, v({m}) {v:.2f}"
    if K is None:
        return f"best tree     {as_options(tree)} (first child accepted {found['acceptance_by_rank'][0]:.0%}, {costs})"
    number = f"{K} or more" if K == found["most_K"] else f"{K} (no draft)" if K == 0 else K
    return f"best K        {number} by this run (alpha {found['alpha']:.2f} of the tested tokens, {costs})"


def as_options(tree):
    """A tree in the words of a command line."""
    nodes, levels = tree["nodes"], tree["levels"]
    shape = f"{','.join('1' * nodes)}, a chain" if nodes == levels else nodes
    return f"--K {levels} --tree {shape}"


def what_to_try(report):
    """What may be faster: the best that the runs suggest, or what finds it by itself."""
    best, auto = None if report["doubt"] else report["best_K"], report["auto"]
    if best and best != report["K"]:
        return f"try --K {best}{f', or {auto}' if auto else ''}"
    if auto and (best is None or auto == "--tree auto"):
        return f"try {auto}"
    return "try another --drafter, or a larger target"
