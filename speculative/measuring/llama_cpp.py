"""What llama.cpp prints after a speculative run, from the rounds of a generation, to compare the two side by side."""

from .twice import seconds_of


def counts_of(rounds, n_prompt):
    """Counts, and [tokens, seconds] for each part, under llama.cpp's names. Encoding is the first call."""
    first, *rest = rounds
    n, drafted, accepted = (sum(some) for some in zip(*((len(r.tokens), len(r.drafted), r.n_accepted) for r in rounds)))
    return {
        "encoded": [n_prompt, seconds_of([first])], "decoded": [n - len(first.tokens), seconds_of(rest)],
        "n_draft": max(r.draft.depth for r in rounds), "n_predict": n, "n_drafted": drafted, "n_accept": accepted,
        "accept": 100 * accepted / max(1, drafted),
        "target eval": [sum(len(r.drafted) + 1 for r in rest), sum(r.seconds["target"] for r in rest)],
        "draft eval": [sum(len(r.drafted) for r in rest), sum(r.seconds["draft"] for r in rest)],
        "sample": [n, sum(r.seconds["verify"] for r in rounds)],
    }  # fmt: skip


def lines_of(counts):
    """The lines that llama.cpp prints for these counts."""
    for name in ("encoded", "decoded"):
        n, seconds = counts[name]
        yield f"{name} {n:4} tokens in {seconds:8.3f} seconds, speed: {n / max(seconds, 1e-9):8.3f} t/s"
    yield ", ".join(f"{name} = {counts[name]}" for name in ("n_draft", "n_predict", "n_drafted", "n_accept"))
    yield f"accept = {counts['accept']:.3f}%"
    for name in ("target eval", "draft eval", "sample"):
        n, ms = counts[name][0], 1000 * counts[name][1]
        yield f"{name:11} time = {ms:9.1f} ms / {n:5} tokens ({ms / max(n, 1):7.2f} ms per token)"
    seconds = counts["encoded"][1] + counts["decoded"][1]
    yield f"total time = {1000 * seconds:.1f} ms"
