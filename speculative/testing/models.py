"""The grader of language models: logits that depend on the tokens alone."""

import numpy as np

from .cases import fail, frozen, guarded


def check_language_model(model, *, seed=0, n_calls=60):
    """Raise AssertionError unless model(tokens, n_last) gives logits [n_last, n_vocab] that the tokens alone decide.

    The model is asked in a random walk of extending, branching and shrinking, as a sampler asks it. A model with a
    cache and forgets to take it back answers differently when the same tokens come another way.

    Parameters
    ----------
    model : callable
        With the attributes n_vocab and n_ctx.
    seed : int
    n_calls : int
    """
    check_last_token(model)
    rng, tokens, rows = np.random.default_rng(seed), [], {}
    for _ in range(n_calls):
        keep = int(rng.integers(max(0, len(tokens) - 4), len(tokens) + 1))
        n_new = int(rng.integers(1, 5))
        tokens = tokens[:keep] + rng.integers(0, min(model.n_vocab, 3), n_new).tolist()
        tokens = tokens[: model.n_ctx] if len(tokens) <= model.n_ctx else tokens[:1]
        n_last = int(rng.integers(1, min(5, len(tokens)) + 1))
        logits = ask(model, tokens, n_last)
        for i, row in enumerate(logits):
            prefix = tuple(tokens[: len(tokens) - n_last + i + 1])
            known = rows.setdefault(prefix, row)
            if not np.allclose(known, row, rtol=1e-3, atol=1e-3):
                fail(
                    "your model's answer depends on what it was asked before: a cache must forget the tokens that are "
                    "no longer there",
                    "",
                    f"  for the tokens {list(prefix)} the logits of token 0 were {known[0]:.6g} and then {row[0]:.6g}",
                )


def ask(model, tokens, n_last):
    logits = guarded(lambda: model(frozen(tokens), n_last=n_last), "your model")
    shape, wanted = np.shape(logits), (n_last, model.n_vocab)
    if shape != wanted:
        fail(f"logits have the shape (n_last, n_vocab) = {wanted}; yours have {shape}")
    if logits.dtype != np.float32:
        fail(f"logits are float32; yours are {logits.dtype}")
    if np.isnan(logits).any():
        fail("your logits are NaN", f"  for the tokens {tokens}")
    return logits


def check_last_token(model):
    """Where the last token never matters, but the one before it does, the rows are one off."""

    def differ(a, b):
        return not np.array_equal(ask(model, a, 1), ask(model, b, 1))

    texts = [[0, 1, 1], [1, 0, 0], [0, 0, 1], [1, 1, 0]]
    last = any(differ(text, [*text[:-1], 1 - text[-1]]) for text in texts)
    before = any(differ(text, [text[0], 1 - text[1], text[2]]) for text in texts)
    if before and not last:
        fail("your rows are one off: row i of n_last predicts the token after tokens[len(tokens) - n_last + i]")
