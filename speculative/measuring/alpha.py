"""The acceptance table: alpha of every drafter at every temperature, along the target's own text.

alpha is computed from its definition, without sampling error: at each place of the target's text the drafter proposes
one token, and the overlap of p with the distribution q of that token is the probability that it is accepted. A drafter
that copies proposes nothing at some places. alpha is the mean over the other places, and `guessed` is their share.
Source: arXiv:2211.17192, corollary 3.6; in form, its table 3.
"""

from functools import partial

import numpy as np

from ..autoregressive import AutoregressiveSampler
from ..theory.expected import overlap
from .intervals import counted_share, share
from .repeated import repetition
from .runs import at_once


def alpha_table(target, drafters, prompts, n_tokens, *, sampling, seed=0, progress=iter, keep=at_once):
    """alpha of each drafter at one temperature.

    Parameters
    ----------
    target : LanguageModel
    drafters : dict name -> Drafter
        Each with the sampling that it drafts with; of chains.
    prompts, n_tokens, seed, progress, keep
        As in `race`.
    sampling : Sampling
        The sampling of the target.

    Returns
    -------
    dict
        repetition: the mean `repetition` of the target's texts; rows, for each drafter: alpha; low and high, a t
        interval over the texts, at temperature 0 at least Wilson's over the places; guessed, the share of the places
        where the drafter proposed a token. alpha, low and high are None where nothing was proposed, low and high also
        where it was in a single text.
    """
    texts = []
    for i, prompt in enumerate(progress(prompts)):
        measure = partial(overlaps_along, target, drafters, prompt, n_tokens, sampling, seed + i)
        texts.append(keep(f"text {i + 1}", measure))
    rows = []
    for j, name in enumerate(drafters):
        sums, counts = (np.array([text[what][j] for text in texts]) for what in ("overlap", "guessed"))
        alpha, low, high = (share if getattr(sampling, "temperature", 1) else counted_share)(sums, counts)
        guessed = float(counts.sum() / (n_tokens * len(prompts)))
        rows.append({"drafter": name, "alpha": alpha, "low": low, "high": high, "guessed": guessed})
    return {"repetition": float(np.mean([text["repetition"] for text in texts])), "rows": rows}


def overlaps_along(target, drafters, prompt, n_tokens, sampling, seed):
    """Along one text, for each drafter: the sum of the overlaps, and the number of places where it proposes a token."""
    generation = AutoregressiveSampler(target, sampling=sampling).generate(prompt, n_tokens, seed, keep_probs=True)
    text, rng = [*generation.prompt.tolist(), *generation.tokens.tolist()], np.random.default_rng(seed)
    sums, counts = [], []
    for drafter in drafters.values():
        drafts = [drafter.propose(text[: len(prompt) + i], 1, rng) for i in range(n_tokens)]
        if any(len(draft.tokens) > 1 for draft in drafts):
            raise ValueError("expected drafters of chains, got a tree: use acceptance_table")
        found = [
            float(overlap(r.target_probs[0], draft.probs[0]))
            for r, draft in zip(generation.rounds, drafts)
            if len(draft.tokens)
        ]
        sums.append(sum(found))
        counts.append(len(found))
    return {"overlap": sums, "guessed": counts, "repetition": repetition(generation.tokens.tolist())}
