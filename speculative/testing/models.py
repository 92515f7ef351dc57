"""The grader of language models: the logits must depend on the tokens alone."""

import numpy as np

from .cases import shortened
from .model_hints import BEFORE, explanation, same
from .tree_models import check_trees, takes_parents
from .watch import Sources, asked, fail, note


def check_language_model(model, *, seed=0, n_calls=60, trees=None):
    """Raise AssertionError unless model(tokens, n_last) returns logits [n_last, n_vocab] that depend only on the
    tokens.

    The model is called in a random walk that extends, branches and shortens the text, as a sampler does, with one list
    that changes between the calls. A cache that is not rolled back gives another answer when the same tokens are
    reached in another way; a missing causal mask gives another answer when later tokens change. A model whose call has
    the parameter `parents` is asked for trees, too: each row must be that of the model on the path alone.

    Parameters
    ----------
    model : callable
        With the attributes n_vocab and n_ctx.
    seed : int
    n_calls : int
    trees : bool, optional
        Whether to ask for trees; by default if the call has the parameter `parents`.
    """
    check_form(model)
    for n_last in (1, 2, 4):
        ask(model, [0, 1, 0, 1], n_last)
    check_last_token(model)
    with Sources() as sources:
        wrong = walk(model, seed, n_calls)
    if wrong:
        fail(*explanation(lambda tokens, n_last: ask(model, tokens, n_last), wrong, sources))
    check_logits(model)
    if takes_parents(model) if trees is None else trees:
        check_trees(model, lambda tokens, n_last: ask(model, list(tokens), n_last), seed)
    try:
        asked(lambda: model(np.array([0, 1]), n_last=1), "your model", lambda: "for an array of tokens")
    except AssertionError as error:
        note(f"your model is right for a list of tokens, but not for an array: {str(error).splitlines()[0]}")


def check_form(model):
    if isinstance(model, type):
        fail(f"pass a model, not its class: check_language_model({model.__name__}(...))")
    if not callable(model):
        fail(f"a language model is called as model(tokens, n_last=1); yours, {shortened(model)}, cannot be called")
    for name in ("n_vocab", "n_ctx"):
        if not hasattr(model, name):
            what = {"n_vocab": "the size of its vocabulary", "n_ctx": "the most tokens it can take"}[name]
            fail(f"a language model has an attribute {name}, {what}; yours does not")
        value, least = getattr(model, name), {"n_vocab": 2, "n_ctx": 4}[name]
        if not isinstance(value, (int, np.integer)) or value < least:
            fail(
                f"{name} is a whole number, and at least {least} for this grader, which asks for texts such as 0, 1, "
                f"0, 1; yours is {value!r}"
            )


def walk(model, seed, n_calls):
    """Call the model many times; the arguments of `explanation` for the first answer that changed, or None."""
    rng, tokens, rows = np.random.default_rng(seed), [], {}
    for _ in range(n_calls):
        keep = int(rng.integers(max(0, len(tokens) - 4), len(tokens) + 1))
        n_new = int(rng.integers(1, 5))
        tokens[keep:] = rng.integers(0, min(model.n_vocab, 3), n_new).tolist()  # in the same list, as samplers do
        if len(tokens) > model.n_ctx:
            del tokens[1:]
        n_last = int(rng.integers(1, min(5, len(tokens)) + 1))
        for i, row in enumerate(ask(model, tokens, n_last, asked_before=True)):
            prefix = tuple(tokens[: len(tokens) - n_last + i + 1])
            if not same(rows.setdefault(prefix, row), row):
                return list(tokens), n_last, i, rows[prefix], row
    return None


def ask(model, tokens, n_last, asked_before=False):
    """A copy of the logits [n_last, n_vocab]; AssertionError unless they have the right form."""

    def where():
        return f"for tokens = {list(tokens)}, n_last = {n_last}"

    logits = asked(lambda: model(tokens, n_last=n_last), "your model", where, (tokens,))
    if not isinstance(logits, np.ndarray):
        fail(f"logits are a NumPy array; yours are {article(logits)}", *remedy(logits), f"  {where()}")
    wanted = n_last, model.n_vocab
    if logits.shape != wanted:
        hint = f"logits have the shape (n_last, n_vocab) = {wanted}; yours have {logits.shape}"
        if asked_before:
            fail(BEFORE, f"  {hint}", f"  {where()}")
        fail(hint + of_shape(logits.shape, len(tokens), *wanted), f"  {where()}")
    if logits.dtype != np.float32:
        fail(f"logits are float32; yours are {logits.dtype}", f"  {where()}")
    if np.isnan(logits).any():
        fail("your logits are NaN", f"  {where()}")
    if not (logits < np.inf).all() or not np.isfinite(logits.max(axis=1)).all():
        fail("your logits are infinite: each row needs at least one finite logit, and no +inf", f"  {where()}")
    return logits.copy()


def article(value):
    return "None" if value is None else f"a {type(value).__module__.split('.')[0]}.{type(value).__name__}".replace(
        "a builtins.", "a "
    )  # fmt: skip


def remedy(logits):
    if logits is None:
        return ["  is a `return` missing?"]
    if isinstance(logits, tuple):
        return ["  return only the logits, without anything else that the model returns, such as its cache"]
    if hasattr(logits, "logits"):
        return ["  take them out: output.logits[0, -n_last:].float().numpy()"]
    if hasattr(logits, "numpy"):
        return ["  make them one: logits.detach().float().numpy()"]
    return ["  np.array(logits, dtype=np.float32)"]


def of_shape(shape, n_tokens, n_last, n_vocab):
    """What to do about a wrong shape, for the end of the sentence."""
    if len(shape) == 3 and shape[0] == 1:
        return ": there is no batch axis, logits[0]"
    if shape == (n_tokens, n_vocab):
        return ": return only the last n_last rows, logits[-n_last:]"
    if shape == (1, n_vocab):
        return ": one row for each of the last n_last tokens, not only for the last"
    return ""


def check_last_token(model):
    """If the last token never matters, but the one before it does, the rows are one off."""

    def differ(a, b):
        return not np.array_equal(ask(model, a, 1), ask(model, b, 1))

    texts = [[0, 1, 1], [1, 0, 0], [0, 0, 1], [1, 1, 0]]
    last = any(differ(text, [*text[:-1], 1 - text[-1]]) for text in texts)
    before = any(differ(text, [text[0], 1 - text[1], text[2]]) for text in texts)
    if before and not last:
        fail("your rows are one off: row i of n_last predicts the token after tokens[len(tokens) - n_last + i]")


def check_logits(model):
    """Probabilities instead of logits: a softmax too many."""
    rows = np.concatenate([ask(model, text, 1) for text in ([0], [1], [0, 1], [1, 0], [1, 1, 0])])
    if (rows >= 0).all() and np.allclose(rows.sum(axis=1, dtype=np.float64), 1, rtol=0, atol=1e-3):
        fail(
            "you return probabilities, not logits: samplers put a softmax over what a model returns; leave yours out, "
            "or return np.log(probabilities)",
            f"  for the tokens [0] your row is {shortened(rows[0])}, which adds up to 1",
        )
