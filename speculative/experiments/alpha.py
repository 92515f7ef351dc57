"""The table of acceptance: alpha of every drafter at every temperature, along the target's own text.

alpha is measured as it is defined, without a draw: at each place of the target's text the drafter is asked for one
guess, and the overlap of p with the distribution q it was drawn from is the probability that such a guess is accepted.
A drafter that copies has no guess at some places; alpha is the mean over the others, `guessed` the share that they are.
Source: arXiv:2211.17192, corollary 3.6; in form, its table 3.
Next: methods.py
"""

from functools import partial

import numpy as np

from ..autoregressive import AutoregressiveSampler
from ..theory import overlap
from .clock import at_once, ratio
from .repeated import repetition


def alpha_table(target, drafters, prompts, n_tokens, *, sampling, seed=0, progress=iter, keep=at_once):
    """alpha of each drafter at one temperature.

    Parameters
    ----------
    target : LanguageModel
    drafters : dict name -> Drafter
        With the sampling that they are to draft with.
    prompts, n_tokens, seed, progress, keep
        As in `race`.
    sampling : Sampling
        The target's.

    Returns
    -------
    dict
        repetition: the mean `repetition` of the target's texts; rows, for each drafter: alpha, low, high (from drawing
        the texts anew; None where nothing was guessed), guessed.
    """
    texts = []
    for i, prompt in enumerate(progress(prompts)):
        measure = partial(overlaps_along, target, drafters, prompt, n_tokens, sampling, seed + i)
        texts.append(keep(f"text {i + 1}", measure))
    rows = []
    for j, name in enumerate(drafters):
        sums, counts = (np.array([text[what][j] for text in texts]) for what in ("overlap", "guessed"))
        alpha, low, high = ratio(sums, counts)
        guessed = float(counts.sum() / (n_tokens * len(prompts)))
        rows.append({"drafter": name, "alpha": alpha, "low": low, "high": high, "guessed": guessed})
    return {"repetition": float(np.mean([text["repetition"] for text in texts])), "rows": rows}


def overlaps_along(target, drafters, prompt, n_tokens, sampling, seed):
    """Along one text: for each drafter the sum of the overlaps, and the number of places that it guesses at."""
    generation = AutoregressiveSampler(target, sampling=sampling).generate(prompt, n_tokens, seed, keep_probs=True)
    text, rng = [*generation.prompt.tolist(), *generation.tokens.tolist()], np.random.default_rng(seed)
    sums, counts = [], []
    for drafter in drafters.values():
        drafts = [drafter.propose(text[: len(prompt) + i], 1, rng) for i in range(n_tokens)]
        found = [
            float(overlap(r.target_probs[0], draft.probs[0]))
            for r, draft in zip(generation.rounds, drafts)
            if len(draft.tokens)
        ]
        sums.append(sum(found))
        counts.append(len(found))
    return {"overlap": sums, "guessed": counts, "repetition": repetition(generation.tokens.tolist())}
