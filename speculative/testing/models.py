"""The grader of language models: the logits must depend on the tokens alone, and in a tree on the path alone."""

from functools import partial
from types import SimpleNamespace

import numpy as np

from ..interfaces import LanguageModel
from ..tree import path
from .cases import Passed, shortened
from .mistakes.models import BEFORE, CACHED, IMPRECISE, IN_TREES, ONE_OFF, ROWS, answers, close, gap, same_logits
from .sources import Sources
from .watch import asked, fail, note

MANY = 40  # nodes of the largest tree, if the context holds them

SHAPES = [[-1], [-1, -1], [-1, 0, 0, -1], [-1, -1, 0, 0, 1, 2, 2], [-1, 0, -1, 2, 1, 0, -1, 6, 3]]  # parents of trees


def check_language_model(model: LanguageModel, *, seed: int = 0, n_calls: int = 60, trees: bool | None = None) -> str:
    """Raise AssertionError unless model(tokens, n_last) returns logits that depend only on the tokens.

    The model is called in a random walk that extends, branches and shortens the text, as a sampler does, with one list
    that changes between the calls. A cache that is not rolled back changes the answer when the same tokens are reached
    in a different way; a missing causal mask changes it when later tokens change. A model whose call has the parameter
    `parents` is also asked for trees: each row must be that of the model on the path alone. Returns one line that lists
    the checks.

    Parameters
    ----------
    model
        A function or an object with the attributes n_vocab and n_ctx.
    seed
        Varies the walk.
    n_calls
        The length of the walk.
    trees
        Whether to ask for trees; by default if the call has the parameter `parents`.
    """
    check_it_can_be_asked(model)
    for n_last in (1, 2, 4):
        ask(model, [0, 1, 0, 1], n_last)
    check_last_token(model)
    with Sources() as sources:
        wrong = walk(model, seed, n_calls)
    if wrong:
        fail(*mistake_in_a_walk(partial(ask, model), wrong, sources))
    if hint := of_a_cache(partial(ask, model), [0, 1, min(2, model.n_vocab - 1), 0]):
        fail(hint)
    check_logits(model)
    if trees := takes_parents(model) if trees is None else trees:
        check_trees(model, seed)
    try:
        asked(lambda: model(np.array([0, 1]), n_last=1), "your model", lambda: "for an array of tokens")
    except AssertionError as error:
        note(f"your model is right for a list of tokens, but not for an array: {str(error).splitlines()[0]}")
    and_trees = ", and in trees on the path alone" if trees else ""
    return Passed(f"check_language_model: in {n_calls} calls the logits depend on the tokens alone{and_trees}")


def check_it_can_be_asked(model):
    if isinstance(model, type):
        fail(f"pass a model, not its class: check_language_model({model.__name__}(...))")
    if not callable(model):
        fail(f"a language model is called as model(tokens, n_last=1); yours, {shortened(model)}, cannot be called")
    for name, what, least in (
        ("n_vocab", "the size of its vocabulary", 2),
        ("n_ctx", "the largest number of tokens it accepts", 4),
    ):
        if not hasattr(model, name):
            fail(f"a language model has an attribute {name}, {what}; yours does not")
        value = getattr(model, name)
        if not isinstance(value, (int, np.integer)) or value < least:
            fail(
                f"{name} is a whole number, and at least {least} for this grader, which asks for texts such as 0, 1, "
                f"0, 1; yours is {value!r}"
            )


def takes_parents(model):
    """Whether the model accepts trees, which is found out by asking it."""
    try:
        model([0, 1], n_last=2, parents=[-1])
    except TypeError as error:
        return "'parents'" not in str(error)
    except Exception:  # check_trees reports it
        return True
    return True


def walk(model, seed, n_calls):
    """Call the model many times; return (tokens, n_last, i, known, row) of the first row that changed, or None."""
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
            if not same_logits(rows.setdefault(prefix, row), row):
                return list(tokens), n_last, i, rows[prefix], row
    return None


def ask(model, tokens, n_last, parents=None, asked_before=False):
    """A copy of the logits [n_last, n_vocab]; AssertionError unless they have the right form."""
    tree = {} if parents is None else {"parents": list(parents)}

    def where():
        return f"for tokens = {list(tokens)}, n_last = {n_last}" + "".join(f", parents = {p}" for p in tree.values())

    logits = asked(lambda: model(tokens, n_last=n_last, **tree), "your model", where, (tokens, *tree.values()))
    if not isinstance(logits, np.ndarray):
        fail(f"logits are a NumPy array; yours are {article(logits)}", *remedy(logits), f"  {where()}")
    wanted = n_last, model.n_vocab
    if logits.shape != wanted:
        hint = f"logits have the shape (n_last, n_vocab) = {wanted}; yours have {logits.shape}"
        if tree:
            fail(
                f"with a tree the logits have the shape (n_last, n_vocab) = {wanted}, the row after the text and one "
                f"for each node; yours have {logits.shape}",
                f"  {where()}",
            )
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
    """A type with its article."""
    module, name = type(value).__module__.split(".")[0], type(value).__name__
    return "None" if value is None else f"a {name}" if module == "builtins" else f"a {module}.{name}"


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
    """The remedy for a wrong shape, for the end of the sentence."""
    if len(shape) == 3 and shape[0] == 1:
        return ": there is no batch axis, logits[0]"
    if shape == (n_tokens, n_vocab):
        return ": return only the last n_last rows, logits[-n_last:]"
    if shape == (1, n_vocab):
        return ": one row for each of the last n_last tokens, not only for the last"
    return ""


def mistake_in_a_walk(ask, wrong, sources):
    """The lines of a failure; `wrong` is (tokens, n_last, i, known, row): row i was different in an earlier call."""
    tokens, n_last, i, known_row, row = wrong
    prefix = tokens[: len(tokens) - n_last + i + 1]
    again = [ask(tokens, n_last) for _ in range(3)]
    if sources.changed and not all(same_logits(answer, again[0]) for answer in again):
        return (
            "your model gives two answers to the same tokens: is it in training mode, with dropout (model.eval()), or "
            "does it draw random numbers?",
            "",
            f"  for tokens = {tokens}, n_last = {n_last}",
        )
    if hint := of_a_cache(ask, tokens if len(tokens) > 3 else [0, 1, 1, 0]):
        return (hint,)
    other = [1 - min(token, 1) for token in tokens]
    questions = [(tokens, n_last), (prefix, 1), (tokens[:-1] or tokens, 1), (tokens, n_last), (other, n_last),
                 (tokens, n_last), (prefix, 1), (tokens[:1], 1), (tokens, n_last)]  # fmt: skip
    first = {}
    for (text, n), answer in [*((q, ask(*q)) for q in questions), *(((tokens, n_last), answer) for answer in again)]:
        known = first.setdefault((tuple(text), n), answer)
        if not same_logits(known, answer):
            hint = IMPRECISE.format(gap(known, answer)) if close(known, answer) else BEFORE
            return hint, "", f"  for the tokens {text} the answer changed"
    if close(known_row, row):
        return (IMPRECISE.format(gap(known_row, row)),)
    n = min(6, len(tokens))
    rows = ask(tokens, n)
    alone = np.concatenate([ask(tokens[: len(tokens) - n + i + 1], 1) for i in range(n)])
    seen = SimpleNamespace(rows=rows, alone=alone, changed=ask([*tokens[:-1], 1 - min(tokens[-1], 1)], n))
    known = ROWS if n > 1 else ROWS[-2:]
    hint = next(mistake.hint for mistake in known if mistake.tell(seen))
    case = f"  for tokens = {tokens}, n_last = {n}: the rows differ from those for n_last = 1, one prefix at a time"
    return hint.format(gap(seen.rows, alone)), "", case


def of_a_cache(ask, text):
    """A sentence if the answer to a text depends on the text that was asked before, or None."""
    after = answers_after(ask, text)
    if not all(same_logits(answer, answers[0]) for answers in after for answer in answers):
        return BEFORE
    if not all(same_logits(a, b) or close(a, b) for a, *_ in after for b, *_ in after):
        return CACHED
    return None


def answers_after(ask, text):
    """The answers to a text after others that begin like it, which a cache keeps, and go on differently: lists.

    The answers of a list have the same number of tokens in common with the text asked before, and of others.
    """
    found, tokens = [], sorted({0, 1, *text})
    for n_kept in range(1, len(text)):
        first = [token for token in tokens if token != text[n_kept]]
        for rests in [[token] for token in first], [[first[0], token] for token in tokens]:
            found.append([])
            for rest in rests[: None if n_kept + len(rests[0]) <= len(text) else 0]:
                ask([*text[:n_kept], *rest], 1)
                found[-1].append(ask(text, 1))
    return [answers for answers in found if answers]


def check_last_token(model):
    """Fail if the last token never matters but the one before it does, because the rows are then off by one."""

    def differ(a, b):
        return not np.array_equal(ask(model, a, 1), ask(model, b, 1))

    texts = [[0, 1, 1], [1, 0, 0], [0, 0, 1], [1, 1, 0]]
    last = any(differ(text, [*text[:-1], 1 - text[-1]]) for text in texts)
    before = any(differ(text, [text[0], 1 - text[1], text[2]]) for text in texts)
    if before and not last:
        fail(ONE_OFF)


def check_logits(model):
    """Fail if the model returns probabilities instead of logits, which means one softmax too many."""
    rows = np.concatenate([ask(model, text, 1) for text in ([0], [1], [0, 1], [1, 0], [1, 1, 0])])
    if (rows >= 0).all() and np.allclose(rows.sum(axis=1, dtype=np.float64), 1, rtol=0, atol=1e-3):
        fail(
            "you return probabilities, not logits: samplers apply a softmax to a model's result; leave yours out, "
            "or return np.log(probabilities)",
            f"  for the tokens [0] your row is {shortened(rows[0])}, which adds up to 1",
        )


def check_trees(model, seed):
    """AssertionError unless the rows of trees are those of their paths, and the model can continue along a branch."""
    rng, shapes = np.random.default_rng(seed), [*SHAPES, *SHAPES[::-1]]
    if model.n_ctx > MANY + 8:
        shapes.append([int(rng.integers(-1, i)) for i in range(MANY)])
    for parents in shapes:
        text = rng.integers(0, min(model.n_vocab, 3), int(rng.integers(1, 6))).tolist()
        nodes = rng.integers(0, min(model.n_vocab, 3), len(parents)).tolist()
        if not is_right(model, text, nodes, parents):
            seen = answers(partial(ask, model), [0, 1, 1], model.n_ctx)
            hint = next(mistake.hint for mistake in IN_TREES if mistake.tell(seen))
            fail(hint, "", f"  for the text {text}, draft tokens {nodes}, parents = {parents}")


def is_right(model, text, nodes, parents):
    """Whether a tree has the rows of its paths, and the model's answer along its last path is unchanged."""
    paths = [[*text, *(nodes[node] for node in path(parents, i))] for i in range(-1, len(nodes))]
    wanted, further = [ask(model, branch, 1)[0] for branch in paths], [*paths[-1], 0]
    further = further if len(further) <= model.n_ctx else text
    after = ask(model, further, 1)
    rows = ask(model, [*text, *nodes], len(nodes) + 1, parents)
    return same_logits(rows, wanted) and same_logits(ask(model, further, 1), after)
