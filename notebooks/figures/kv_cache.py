"""The figures of notebook 03: the cost of a token with and without a cache, and the cache during a generation."""

import matplotlib.pyplot as plt

from figures.palette import ACCEPTED, Look, Q, box, legend

plt.style.use("figures.mplstyle")
WITHOUT, WITH = ("C3", "--", "without a cache"), ("C0", "-", "with a cache")
CACHED = Look("#d9d9d9", "", "black")


def counted(positions, without, with_cache):
    """Multiplications for the token at each position; logarithmic, or the lower curve would hardly be visible."""
    _, axis = plt.subplots(figsize=(7, 3.4))
    for counts, (colour, line, name) in (without, WITHOUT), (with_cache, WITH):
        axis.semilogy(positions, counts, line, color=colour)
        label = f"{name}: {counts.sum() / 1e9:,.1f} billion in all"
        axis.text(positions[-1], 1.4 * counts[-1], label, color=colour, ha="right")
    axis.set(xlabel="position of the token", ylabel="multiplications", xlim=(1, positions[-1]))
    axis.set_ylim(with_cache[0] / 2, 5 * without[-1])
    axis.set_title("How many multiplications does each token cost?")


def measured(positions, without, with_cache):
    """Milliseconds for the token at some positions."""
    _, axis = plt.subplots(figsize=(7, 3.4))
    for times, (colour, line, name) in (without, WITHOUT), (with_cache, WITH):
        axis.plot(positions, times, f"o{line}", color=colour)
        axis.text(positions[-1], times[-1] + 0.06 * without[-1], name, color=colour, ha="right")
    axis.set(xlabel="position of the token", ylabel="milliseconds, shortest run", ylim=(0, 1.2 * max(without)))
    axis.set_title("How long does each token take?")


def calls(parts):
    """A bar for each call of the target; parts is a list of (tokens cached before, kept afterwards, in all)."""
    _, axis = plt.subplots(figsize=(7.6, 0.9 + 0.29 * len(parts)))
    for i, (before, kept, after) in enumerate(parts):
        for begin, end, look in (0, before, CACHED), (before, kept, ACCEPTED), (kept, after, Q):
            box(axis, begin, i + 0.6, end - begin, 0.8, look)
        axis.text(after + 0.6, i + 1, f"{after}", va="center", size=10)
    axis.set(xlabel="tokens in the cache (number: cache.length after the call)", ylabel="call of the target")
    axis.set_yticks(range(1, len(parts) + 1))
    axis.set_ylim(len(parts) + 0.6, 0.4)
    axis.set_title("How does the cache change in each call?")
    names = {"in the cache before": CACHED, "run and kept": ACCEPTED, "run and truncated": Q}
    legend(axis, names, loc="upper right", bbox_to_anchor=(1, 0.98))
    axis.grid(visible=False)
