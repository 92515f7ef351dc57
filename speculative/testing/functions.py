"""The grader of functions with other signatures: speculative sampling as exercises and papers write it.

    def speculative_decode(target_probs, draft_probs, draft_tokens): -> the tokens of the round

1. `form_of`       finds out how the function is called, from a specification or from the names of its parameters
                   (forms.py), by trials of drafts with a certain outcome (trials.py)
2. `called`        calls it with the arguments of one draft (calling.py), with random functions of NumPy, Python and
                   PyTorch that are enumerated (draws.py)
3. `read`          reads the result: how many draft tokens are accepted, and which token follows them
4. `verifier_of`   makes a verifier of this, for `check_verifier`: the same cases, by exact enumeration, the same hints
5. `check_rows`    calls a function of a batch with two texts, which must not depend on each other

A function of two models is a sampler (two_models.py). Functions in PyTorch run in float64. If a function leaves out the
bonus, the grader draws it.
"""

import contextlib
import io
import re
import sys
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from ..exact.enumeration import CannotEnumerate, exact_distribution, total_variation
from ..interfaces import Verdict
from ..logits.probs import sample_token
from ..reference import residual
from .calling import NO_TOKEN, Given, Unreadable, called, called_with, read
from .cases import (
    NEARLY_CERTAIN,
    TOLERANCE,
    Case,
    Passed,
    compared,
    entry_like,
    has,
    independent,
    marginal,
    show,
)
from .diagnosis import KINDS
from .draws import OpenFloat, OpenFloat64, float_replaced
from .forms import (
    array_of,
    by_position,
    guesses,
    models_of,
    needed_of_a_draft,
    needed_of_models,
    parsed,
)
from .sampler_diagnosis import ONE
from .trials import form_of
from .two_models import check_function_of_models
from .verifiers import check_verifier
from .watch import fail, note, told_error

SHARED = (
    "each text of a batch is right by itself, but together they are not: they share random numbers; draw one for each "
    "text and each draft token"
)
BESIDE = (
    "a batch of one is right, but of two texts the {} has a different distribution: is it cut where the other one "
    "ends, or read from the other one's rows?"
)
NEVER = 1e-14  # the probability of a path that is there only because of rounding


def check_function(
    fn: Callable[..., Any], spec: str | None = None, *, array: Callable[..., Any] | None = None, seed: int = 0
) -> str:
    """Raise AssertionError unless the function is exact speculative sampling, whatever its signature.

    Parameters
    ----------
    fn
    spec
        "target, draft, tokens -> tokens": the arguments, by position, and the parts of the result.

        Arguments: target, draft, tokens, rng, uniforms, uniform, bonus (the token drawn after all draft tokens), output
        (written to), K, B, V, temperature, seed. Axes other than the usual ones follow in brackets: target[K,V] has no
        row for the bonus, target[B,K+1,V] is a batch (called with one text, and with two), target[V] is for one draft
        token. "log target" means logarithms of probabilities, or logits; "list tokens" is always a list. Without
        tokens, the function draws one draft token itself, and is graded as a sampler of one token.

        Result: tokens (of the round: the accepted ones and one more), padded (the same, filled up with zeros), accepted
        (the accepted ones alone), mask, flag (whether each draft token was accepted), count, length (one more than
        count), token (the one after the accepted ones), _ (anything else). If there is no such token, the caller draws
        it: the test alone is graded.

        A function of two models is a sampler: "prompt, target_model, draft_model, n_tokens, K -> text" is graded by
        `check_sampler`. A model is called with the tokens of a text and returns logits, or probabilities ("probs
        target_model"), [n, V] for n tokens; or for the last n_last of them, one by default ("last target_model"), as
        this library's models; or for the next token alone ("next target_model"). The result is the text, or the new
        tokens, at least n_tokens of them; without n_tokens, a round's. If nothing is drawn, it must be the greedy text.

        `spec` may be omitted if the parameters have the usual names, such as (target_probs, draft_probs,
        draft_tokens).
    array
        Converts an array to an argument: np.array, torch.tensor or list; by default inferred from the function's code.
    seed
        Varies the distributions.

    Examples
    --------
    >>> def decode(target_probs, draft_probs, draft_tokens, rng):
    ...     for i, x in enumerate(draft_tokens.tolist()):
    ...         p, q = target_probs[i], draft_probs[i]
    ...         if not rng.random() < p[x] / q[x]:
    ...             excess = np.maximum(p - q, 0)
    ...             return [*draft_tokens[:i], rng.choice(len(p), p=excess / excess.sum())]
    ...     return [*draft_tokens, rng.choice(len(p), p=target_probs[-1])]
    >>> check_function(decode, "target, draft, tokens, rng -> tokens")  # doctest: +ELLIPSIS
    check_function: the tokens of a round have the target's distribution, to 1e-12, in 79 cases...
    """
    if not callable(fn) or isinstance(fn, type):
        fail(f"pass a function of target_probs, draft_probs and draft_tokens; yours is {fn!r:.80}")
    if "torch" in sys.modules:
        from . import torch_functions  # noqa: F401  imported before random functions are replaced
    first = None  # the message if all ways refuse
    for kind in (None, OpenFloat64, OpenFloat):  # what `float` means: float(u) needs a class, .astype(float) the type
        try:
            with float_replaced(fn, kind):
                return graded(fn, spec, array or array_of(fn), seed)
        except AssertionError as error:
            if first and str(error).startswith("your function fails"):  # because of the replaced name
                continue
            if not re.search("as a value|the value of", str(error)):
                raise
            first = first or error
    raise first


def graded(fn, spec, array, seed):
    """The result of check_function."""
    if spec_of_models := spec if "_model" in (spec or "") else spec is None and models_of(fn):
        fn = by_position(fn, None if spec else needed_of_models(fn))
        return check_function_of_models(fn, spec_of_models, array, seed)
    fn = by_position(fn, None if spec else needed_of_a_draft(fn))
    form = parsed(spec or next(guesses(fn)), array)
    if "tokens" not in form.axes:
        return check_one_token(fn, form, seed)
    form = form_of(fn, spec, array)
    passed = checked_as_verifier(fn, form, seed, spec or "")
    if form.is_batch:
        check_rows(fn, form, np.random.default_rng(seed))
    if form.is_test:
        note(
            "your function tests alone: left to the caller is a token from max(0, p - q), normalised, after a "
            "rejection (a new draw from p would be wrong there), and one from the target's next row after none"
        )
    elif not (form.bonus or form.one):
        note(
            "your function is exact, but wastes the bonus: if all K draft tokens pass, the target's row after "
            "them yields one more token, for K + 1 rows"
        )
    return Passed(f"{passed.replace('check_verifier', 'check_function')}; read as {form}")


def check_one_token(fn, form, seed):
    """A line; AssertionError unless a function that draws the draft token itself returns tokens from the target."""
    rng = np.random.default_rng(seed)
    cases = [
        Case(n, 1, kind, rng) for n in (2, 3, 4) for kind in ("random", *KINDS, *(NEARLY_CERTAIN if n == 3 else ()))
    ]

    def token(case, rng):
        inputs = Given(np.zeros(1, int), case.q[()][None], np.array([case.p[()]] * 2))
        parts = dict(zip(form.results, called(fn, form, inputs, rng)))
        token = parts.get("token", next(iter(parts.values())))
        return token[0] if isinstance(token, tuple) else token

    def told(_, case):
        distributions = [exact_distribution(partial(token, case)) for case in cases]

        def agrees(wrong, until):
            runs = ((lambda rng, case=case: first_of(case.run(wrong, rng))) for case in cases)
            return all(has(run, wanted, until) for run, wanted in zip(runs, distributions))

        hint = entry_like(((mistake.hint, wrong) for mistake in ONE for wrong in mistake.variants), agrees)
        hint = hint or KINDS.get(case.kind, "your function's tokens do not have the target's distribution")
        return hint, "", f"  target p = {show(case.p[()])}, draft q = {show(case.q[()])}", f"  (read as {form})"

    for case in cases:
        compared("your function", partial(token, case), dict(enumerate(case.p[()])), partial(told, case=case))
    return Passed(
        "check_function: a sampler of one token, which draws the draft token itself: its token has the target's "
        f"distribution, to {TOLERANCE:g}, in {len(cases)} cases; read as {form}"
    )


def first_of(run):
    drafted, n_accepted, next_token = run
    return drafted[0] if n_accepted else next_token


def checked_as_verifier(fn, form, seed, spec):
    """The result of check_verifier; its messages and notes are about a function."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            passed = check_verifier(verifier_of(fn, form), seed=seed, trees=False)
    except AssertionError as error:
        first, *rest = str(error).replace("your verifier", "your function").splitlines()
        first = first.replace("target_probs[k]", "row K of the target")
        more = "; if it returns no bonus: target[K,V]" * ("bonus" in first and form.bonus and "target[" not in spec)
        raise told_error(first, *rest, f"  (read as {form}{more})") from None
    for line in dict.fromkeys(printed.getvalue().replace("your verifier", "your function").splitlines()):
        if line.startswith("note: ") and "wastes the bonus" not in line:
            print(line)
    return passed


def verifier_of(fn, form):
    """The function as a verifier."""

    def verifier(draft, rows, rng):
        K = len(draft.tokens)
        if K == 0:  # functions are not called without a draft token
            return Verdict(0, sample_token(rows[0], rng))
        if form.one:
            for i in range(K):
                n, token = at_once(draft.tokens[i : i + 1], draft.probs[i : i + 1], rows[i : i + 2], rng)
                if n == 0:
                    return Verdict(i, token)
            return Verdict(K, sample_token(rows[K], rng))
        n, token = at_once(draft.tokens, draft.probs, rows, rng)
        return Verdict(n, sample_token(rows[K], rng) if token is None else token)

    def at_once(tokens, q, p, rng):
        K, n_vocab = q.shape
        try:
            bonus = sample_token(p[-1], rng) if "bonus" in form.axes else None
            parts = called(fn, form, Given(tokens, q, p, bonus), rng)
        except AssertionError:
            if hasattr(rng, "reached") and rng.reached() < NEVER:
                return K, None
            raise
        drafted = [*tokens.tolist(), *[n_vocab - 1] * (not form.bonus and not form.one)]
        try:
            n, token, count = read(form, parts, drafted, K, n_vocab)
            if n < K and token is None:
                if not form.is_test:
                    raise Unreadable(NO_TOKEN)
                token = sample_token(residual(p[n], q[n]), rng)
            if count is not None and "token" not in form.results and count != n and not n == K < len(drafted) == count:
                raise Unreadable(f"your count is {count}, but {n} draft tokens are accepted")
        except Unreadable as error:
            fail(str(error), f"  for the draft tokens {tokens.tolist()} it returned {parts}")
        return n, token

    return verifier


def check_rows(fn, form, rng):
    """Raise AssertionError unless two texts of a batch have the right distributions, independently of each other.

    The rows of p and q depend only on their positions, not on earlier tokens. So the rest of the K + 1 tokens after a
    round can be drawn from p.
    """
    for K, n_vocab in (1, 3), (2, 2):
        p, q = rng.dirichlet(np.ones(n_vocab), size=(2, K + 1)), rng.dirichlet(np.ones(n_vocab), size=(2, K))

        def texts(rng, p=p, q=q, K=K, n_vocab=n_vocab):
            tokens = [np.array([sample_token(row, rng) for row in rows]) for rows in q]
            bonus = [sample_token(rows[-1], rng) if "bonus" in form.axes else None for rows in p]
            parts = called_with(fn, form, [*map(Given, tokens, q, p, bonus)], rng)
            return [whole_text(form, *each, n_vocab, rng) for each in zip(parts, tokens, p)]

        wanted = [independent([dict(enumerate(row.tolist())) for row in rows]) for rows in p]
        try:
            distribution = exact_distribution(texts)
        except (AssertionError, CannotEnumerate, Unreadable) as error:
            note(f"your function is right for one text; for a batch of two: {str(error).splitlines()[0]}")
            return
        where = f"  for two texts with K = {K}, called as {form}"
        for i, name in enumerate(("first", "second")):
            if total_variation(marginal(distribution, itemgetter(i)), wanted[i]) > TOLERANCE:
                fail(BESIDE.format(name), where)
        if total_variation(distribution, independent(wanted)) > TOLERANCE:
            fail(SHARED, where)


def whole_text(form, parts, tokens, p, n_vocab, rng):
    """The tokens of a round, followed by tokens drawn from p, K + 1 in all."""
    drafted = [*tokens.tolist(), *[n_vocab - 1] * (not form.bonus)]
    n, token, _ = read(form, parts, drafted, len(tokens), n_vocab)
    text = [*tokens[:n].tolist(), *([] if token is None else [token])]
    return [*text, *(sample_token(row, rng) for row in p[len(text) :])]
