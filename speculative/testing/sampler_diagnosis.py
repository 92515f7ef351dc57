"""What a sampler does wrong, in a sentence: an entry of the catalogue (mistakes/) with its distribution, or a place.

`mistake_in_a_text` compares the entries in the case that failed, in a few others, and in the windows that are wrong.
"""

import contextlib
from dataclasses import replace
from functools import cache, partial

from ..exact.enumeration import CannotEnumerate, exact_distribution
from .cases import NEARLY_RIGHT, TOLERANCE, alike, entry_like, largest_difference, marginal
from .mistakes import samplers as catalogue
from .mistakes import verifiers
from .sampler_parts import PROMPT, nearly_certain
from .tree_windows import TreeWindow, WindowTree
from .tree_windows import facts as tree_facts
from .windows import facts, shared

TIED = "K = 2, Sampling(temperature=0), two equal maxima"
LIMIT = "right, but not where tokens are nearly certain: is a probability compared with a limit, or rounded?"
AROUND = [*catalogue.SAMPLING, *catalogue.LOOPS]
LOOKING_BACK = catalogue.LOOKING_BACK
ONE = [*verifiers.WHOLE, *verifiers.BONUS, *verifiers.ACCEPT, *verifiers.REST]
ONE = [mistake for mistake in ONE if len(mistake.variants) < 10]  # not those of an epsilon, which has many values
SEVERAL = [*verifiers.SEVERAL, *verifiers.BLOCK]


def mistake_in_a_text(distribution, wanted, made, n_tokens, known=None):
    """The mistake in a sentence, from the catalogue's entry with this distribution in the same case."""
    error = largest_difference(distribution, wanted)
    if known is None and error < 1e-4:
        return NEARLY_RIGHT.format(error)
    if made.case == TIED and (len(distribution) == 1 or error > 0.1):
        return (
            "at temperature 0 your sampler does not take the first of two equal maxima, as the target alone does: "
            "np.argmax, not a softmax at a small temperature"
        )
    if known is None and getattr(made.sampling, "temperature", 1) == 0 and len(distribution) > 1:
        return (
            "your sampler draws at temperature 0, where the text is the greedy one: put the logits through `sampling`"
        )
    if "nearly" in made.case:
        return LIMIT
    if made.overshoots:  # a function of models that drafts no more than are missing
        exact_end = replace(made, overshoots=False)
        if hint := entry_in_a_text(distribution, exact_end, n_tokens, known):
            return hint
    if hint := entry_in_a_text(distribution, made, n_tokens, known):
        return hint
    if wrong := [window for window, _, right in made.elsewhere() if not right]:
        in_trees, of = ("in trees, ", tree_facts) if isinstance(wrong[0], TreeWindow) else ("", facts)
        return f"your sampler goes wrong {in_trees}{shared(wrong, [window for window, *_ in made.elsewhere()], of)}"
    return unknown_mistake(distribution, wanted, made, n_tokens, known)


def entry_in_a_text(distribution, made, n_tokens, known):
    """The sentence of the catalogue's entry with this distribution in the same case, or None."""
    by_length = {n_tokens: distribution}
    with contextlib.suppress(AssertionError, CannotEnumerate):  # three tokens tell mistakes apart, if the paths are few
        by_length[3] = exact_distribution(lambda rng: made.text(3, rng), max_leaves=3000)

    @cache
    def in_others():
        others = nearly_certain(made) if known is None else ()
        in_these = [(other, 2, exact_distribution(partial(other.text, 2))) for other in others]
        if made.K > 1:
            return in_these
        block = replace(made, K=2)
        with contextlib.suppress(CannotEnumerate):  # a function of models has more paths, and drafts two for two tokens
            return [*in_these, (block, 3, exact_distribution(partial(block.text, 3), max_leaves=500))]
        return [*in_these, (block, 2, exact_distribution(partial(block.text, 2)))]

    def agrees(make, until):
        if not all(made.is_like(make, n, shares, until) for n, shares in by_length.items()):
            return False
        if not all(other.is_like(make, n, shares, until) for other, n, shares in in_others()):
            return False
        in_windows = made.elsewhere()  # an entry that is like it is wrong in the same ones
        likes = ((replace(other, make=make), window.n_tokens, right) for window, other, right in in_windows)
        return all(other.is_right(n, until) == right for other, n, right in likes)

    return entry_like(known_samplers(made, known), agrees)


def known_samplers(made, known):
    """(hint, class of samplers) of the entries that may be wrong here; cases with K = 1 came before the others."""
    if isinstance(made.drafter, WindowTree):
        return loops(catalogue.IN_TREES, verifiers.TREES, catalogue.TreeLoop)
    return loops(known, ()) if known else loops(AROUND, ONE if made.K == 1 else SEVERAL)


def loops(around, inside, base=catalogue.Loop):
    """(hint, class of samplers) of entries that are wrong around a verifier, and of wrong verifiers."""
    for mistake in around:
        yield from ((mistake.hint, make) for make in mistake.variants)
    for mistake in inside:
        yield from ((mistake.hint, catalogue.loop(base, verifier=staticmethod(wrong))) for wrong in mistake.variants)


def unknown_mistake(distribution, wanted, made, n_tokens, known):
    """A sentence for a mistake that no entry matches."""
    if known is not None:
        return "your sampler goes wrong with a sampling that looks back, as penalties and grammars do" + catalogue.ROW_I
    if len(distribution) == 1 and len(wanted) > 1:
        return "the text does not depend on the generator: draw from the one that is passed, do not seed in the loop"
    if len(made.prompt) > len(PROMPT):
        return (
            "your sampler goes wrong near the end of the context: where min(K, remaining - 1, n_ctx - len(tokens) - 1) "
            "is less than K, ask the drafter for so many tokens, after the text as it is then, or draft none"
        )
    if n_tokens == 1:
        return (
            "even the first token does not have the target's distribution: where nothing is drafted it is a draw "
            "from sampling(target(tokens), tokens)[0]"
        )
    if "as its own draft" in made.case:
        return (
            "your sampler goes wrong where every draft token is accepted, as it is where draft and target are equal: "
            "accept x with probability min(1, p(x) / q(x)), and keep all K of them and the bonus"
        )
    if "fewer" in made.case:
        return "your sampler goes wrong where the drafter proposes fewer than K tokens: count the tokens of the draft"
    firsts = ((of_first(n, distribution), of_first(n, wanted)) for n in range(1, n_tokens + 1))
    n_right = next(n for n, both in enumerate(firsts) if not alike(*both, TOLERANCE))
    if n_right == 0:
        return (
            "your sampler goes wrong where a draft token is rejected: accept x with probability min(1, p(x) / q(x)), "
            "and replace the first rejected one by a draw from max(0, p - q), normalised; or, in exact match, by the "
            "draw from p that it did not match"
        )
    if made.K > 1:
        return (
            "right for K = 1, but not for a block of several draft tokens: test draft token i against row i, with a "
            "uniform number of its own, replace the first rejected one from its own row, and drop those after it"
        )
    return (
        f"the first {n_right} tokens are right and the next is wrong: which text, draft and rows does it come from? A "
        "rejection, an acceptance, or a round in which nothing is drafted may leave too much or too little"
    )


def of_first(n, distribution):
    """The distribution of the first n tokens."""
    return marginal(distribution, lambda tokens: tokens[:n])
