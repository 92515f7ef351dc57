"""Stop tokens and counts: a text ends with its first stop token, and `stats.accepted` counts the draft tokens in it."""

import itertools

from ..tree import n_common
from .watch import fail


def takes_stop_tokens(made):
    try:
        made.text(0, 0, stop_tokens=[1])
    except AssertionError as error:
        return "unexpected keyword argument 'stop_tokens'" not in str(error)
    return True


def check_stops(*made_with_draft):
    """With a stop token a text must be the same up to its first occurrence, and end there, wherever the limit is."""
    for made, n_tokens, seed in itertools.product(made_with_draft, range(11), range(8)):
        tokens = made.text(n_tokens, seed, case="stop_tokens = [1]", stop_tokens=[1])
        where = f"  K = {made.K}, n_tokens = {n_tokens}, stop_tokens = [1]: your text is {tokens}"
        if len(tokens) < n_tokens and 1 not in tokens:
            fail("your sampler leaves the stop token out; the text ends with it", where)
        if 1 in tokens[:-1]:
            longer = (made.text(n, seed, stop_tokens=[1]) for n in range(n_tokens + 1, 11))
            if any(tokens[: tokens.index(1) + 1] == text for text in longer):
                hint = "where a round reaches both a stop token and n_tokens, your sampler misses the stop token: look "
                fail(hint + "for it in every token that the round adds, before the text is cut at n_tokens", where)
            fail(
                "your sampler misses a stop token in the middle of a block: look at every token that a round adds, and "
                "drop those after the first",
                where,
            )


def check_counts(made, takes_stops):
    """Compare stats.accepted, if there is one, with the draft tokens that are in the text, if they were observed."""
    runs, stop, n_rounds = [], {"stop_tokens": [1]}, 0
    for options, n_tokens, seed in itertools.product(({}, stop) if takes_stops else ({},), range(11), range(4)):
        made.drafter.rounds = []
        new = made.text(n_tokens, seed, **options)
        text, accepted = [*made.prompt, *new], getattr(made.stats, "accepted", None)
        questions = [tokens for model, tokens in made.target.calls if model is made.target]
        if accepted is None or any([*before, *drafted] not in questions for before, drafted in made.drafter.rounds):
            return  # not counted, or drafted for a different text
        n_rounds += len(made.drafter.rounds)
        case = f"K = {made.K}, n_tokens = {n_tokens}, {options}"
        runs.append((accepted, kept_of(text, made.drafter.rounds), len(new), case))
    if n_rounds:  # otherwise the sampler drafts with drafter.model itself
        check_accepted(runs, "your sampler", str(stop))


def check_accepted(runs, what, stop):
    """AssertionError unless the counts are right; runs: (count, the right ones, number of new tokens, case)."""
    wrong = [(n, kept, case) for n, kept, _, case in runs if n not in kept]
    if not wrong:
        return
    n, kept, case = wrong[0]
    late = all(n > kept[-1] for n, kept, _ in wrong)
    if all(n == n_new for n, _, n_new, _ in runs):
        hint = f"{what} counts the correction and the bonus as accepted"
    elif late and all(stop in str(case) for *_, case in wrong):
        hint = f"{what} counts draft tokens after the stop token as accepted: cut n_accepted with the tokens"
    else:
        hint = f"{what} counts {'too many' if late else 'a wrong number of'} draft tokens as accepted"
    where = "accepted is the number of draft tokens that are in the text"
    fail(hint if ":" in hint else f"{hint}: {where}", f"  {n} are counted, and {kept[-1]} are in the text", f"  {case}")


def kept_of(text, rounds):
    """The numbers that may be called accepted; `rounds` lists (the text before it, its draft tokens) for each round.

    There are two if a round adds no token but its draft: the last draft token may then count as the target's.
    """
    ends = [*(len(before) for before, _ in rounds[1:]), len(text)]
    added = [text[len(before) : end] for (before, _), end in zip(rounds, ends)]
    kept = [n_common(drafted, new) for (_, drafted), new in zip(rounds, added)]
    doubtful = sum(0 < n == len(new) for n, new in zip(kept[:-1], added))
    return range(sum(kept) - doubtful, sum(kept) + 1)
