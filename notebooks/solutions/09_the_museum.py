import numpy as np

import speculative
from speculative import Draft, Verdict, sample_token


# Exercise 1. The draw that did not match is the token: a second draw would give the rejected guess another chance.
def match(draft, target_probs, rng):
    for i, token in enumerate(draft.tokens):
        own = sample_token(target_probs[i], rng)
        if own != token:
            return Verdict(i, own)
    return Verdict(len(draft.tokens), sample_token(target_probs[-1], rng))


# Exercise 2. A drawn token is kept: if unlikely ones are thrown away, the guess no longer has the row's distribution.
def propose_while_sure(model, tokens, K, rng, floor=0.3):
    tokens, guesses, rows = [int(token) for token in tokens], [], []
    for _ in range(K):
        row = speculative.Sampling()(model(tokens))[0]
        guess = sample_token(row, rng)
        guesses, rows, tokens = [*guesses, guess], [*rows, row], [*tokens, guess]
        if row[guess] < floor:
            break
    return Draft(np.array(guesses, np.int64), np.reshape(rows, (len(guesses), model.n_vocab)))


# Exercise 3. Any q will do if the guess was drawn from it (a, e), any K that depends on earlier rounds only (g), and a
# bonus thrown away can be drawn in the next round (b). The others change the distribution.
def seen_by():
    """dict "a" .. "g" -> "check_verifier", "check_drafter", "check_sampler" or "none"."""
    return {
        "a": "none",
        "b": "none",
        "c": "check_verifier",
        "d": "check_drafter",
        "e": "none",
        "f": "check_sampler",
        "g": "none",
    }
