"""The grader of functions with a signature of their own: speculative sampling as exercises and papers write it.

    def speculative_decode(target_probs, draft_probs, draft_tokens): -> the tokens of the round

`check_function` finds out how such a function is called (forms.py) and what it returns (readings.py), makes a verifier
of it, and has `check_verifier` grade that: the same cases, by exact enumeration, and the same hints. Functions in
PyTorch run in float64, and all random functions of PyTorch, NumPy and Python are enumerated (draws.py). What a function
leaves out, the bonus, is drawn by the grader.
"""

import contextlib
import io
import sys
from dataclasses import replace

from ..interfaces import Verdict
from ..logits.probs import sample_token
from .forms import called, forms
from .readings import NO_TOKEN, TWICE, Unreadable, of_trials, points, read, readings, trials, unused_count
from .verifiers import check_verifier
from .watch import fail, note, told_error

WEIGHT = 3  # of results that can be read, against those that are right
FULL = 8.99  # points of a form that fits
NEVER = 1e-14  # the probability of a path that is there only because of rounding
SCALARS = (
    "draft_probs has one number for each draft token: pass the draft's whole rows [K, V], for what replaces a rejected "
    "token is drawn from max(0, p - q), which needs q of every token"
)


def check_function(fn, *, roles=None, returns=None, batch=None, seed=0):
    """Raise AssertionError unless the function is exact speculative sampling, whatever its signature.

    It is given K draft tokens, the distributions [K, V] that they were drawn from, and the target's, [K, V] or
    [K + 1, V]: as lists, arrays or tensors, as probabilities or, where a parameter is called logits or logprobs, as
    logarithms; with a batch dimension if it needs one; or one draft token with two rows [V]. It returns the tokens of
    the round, or the number of accepted draft tokens and the token after them, or the like. Both are recognised, by the
    names of the parameters and by trials; the rest can be told. Prints a note if the function leaves out the bonus.

    Parameters
    ----------
    fn : callable
    roles : tuple of str, or dict, optional
        The role of each argument, by position, or by name: target, draft, tokens, rng, uniforms, bonus (the token drawn
        after all draft tokens), output (written to), K, B, V, temperature, seed.
    returns : str, optional
        The role of each part of the result, such as "tokens" or "count, token": see readings.py.
    batch : bool, optional
        Whether arrays have a batch dimension.
    seed : int
        Varies the distributions.

    Raises
    ------
    AssertionError
        The first line names the mistake; also if the form of the function is not recognised.

    Examples
    --------
    >>> import numpy as np
    >>> def decode(target_probs, draft_probs, draft_tokens, rng):
    ...     for i, x in enumerate(draft_tokens.tolist()):
    ...         p, q = target_probs[i], draft_probs[i]
    ...         if not rng.random() < p[x] / q[x]:
    ...             excess = np.maximum(p - q, 0)
    ...             return [*draft_tokens[:i], rng.choice(len(p), p=excess / excess.sum())]
    ...     return [*draft_tokens, rng.choice(len(p), p=target_probs[-1])]
    >>> check_function(decode)
    """
    form, reading = form_of(fn, roles, returns, batch)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            check_verifier(verifier_of(fn, form, reading), seed=seed, trees=False)
    except AssertionError as error:
        first, *rest = in_words_of_functions(str(error)).splitlines()
        raise told_error(first, *rest, f"  (read as {form.told()}; returns {reading.told()})") from None
    for line in dict.fromkeys(in_words_of_functions(printed.getvalue()).splitlines()):
        if line.startswith("note: ") and "wastes the bonus" not in line:
            print(line)
    if form.certain or not form.n_more_rows:
        note(
            "your function is exact, but gives the bonus away: if all K draft tokens pass, the target's row after them "
            "gives one more token, for K + 1 rows"
        )


def form_of(fn, roles=None, returns=None, batch=None):
    """(`Form`, `Reading`) in which the function has the most right results; AssertionError without any."""
    if not callable(fn) or isinstance(fn, type):
        fail(f"pass a function of target_probs, draft_probs and draft_tokens; yours is {fn!r:.80}")
    if "torch" in sys.modules:
        from . import torch_functions  # noqa: F401  imported before random functions are replaced
    best, first_error = (0.0, 0, None, None, None), None
    every = list(forms(fn, roles, batch))
    for form in [*every, *(replace(form, scalars=True) for form in every)]:
        found, error = trials(fn, form)
        first_error = first_error or error
        for i, reading in enumerate(readings(found, returns)):
            if fits(form, reading):
                right, readable, passes = points(reading, form, found)
                usual = preference(form, reading, every[0].logs, passes)
                score = (right + WEIGHT * readable) * usual
                if score > 0 and (score, -i) > best[:2]:
                    best = (score, -i, form, reading, found)
        if best[0] > FULL:
            break
    _, _, form, reading, found = best
    if form is None:
        if first_error is not None:
            raise told_error(*str(first_error).splitlines()) from None
        fail("what your function returns is not recognised: pass returns=..., such as 'tokens' or 'count, token'")
    if form.scalars:
        fail(SCALARS)
    if hint := unused_count(reading, form, found):
        fail(hint, f"  (read as {form.told()}; returns {reading.told()})")
    if is_kept_twice(reading, found[1]):
        fail(
            TWICE, "  for the draft tokens [7, 5], where the target is certain of 8 in place of 7, it returns 7, 8, ..."
        )
    if hint := of_trials(reading, form, found):
        fail(hint, f"  (read as {form.told()}; returns {reading.told()})")
    return form, reading


def fits(form, reading):
    """Whether results of a function of this form can be read in this way."""
    if form.certain:
        return reading.names[0] in ("tokens", "padded")
    return form.one or not ("flag" in reading.names or reading.names == ("token",))


def preference(form, reading, logs, passes):
    """The weight of the points of an unusual form and reading, since a wrong function fits many of them a little."""
    has_token = {"tokens", "padded", "token"} & {*reading.names}
    return (
        (1.0 if has_token else 0.3)
        * 0.6 ** (max(reading.n_parts, 1) - len(reading.names))  # parts of the result that are left over
        * (0.9 if not (form.n_more_rows or form.certain or form.one) else 1.0)  # a bonus without its row
        * (0.5 if not passes and has_token else 1.0)  # all tokens of a draft should pass in some trial
        * (0.6 if form.logs != logs or form.scalars else 1.0)  # not said by any name
    )


def is_kept_twice(reading, rejected):
    """Whether the rejected token is returned, and its replacement after it."""
    if reading.names[0] not in ("tokens", "padded", "accepted") or not rejected:
        return False
    if reading.n_parts == 0:
        return False
    values = [parts[reading.places[0]][1] for parts in rejected if len(parts) > reading.places[0]]
    return bool(values) and all(value and tuple(value[:2]) == (7, 8) for value in values)


def verifier_of(fn, form, reading):
    """The function as a verifier."""

    def verifier(draft, target_probs, rng):
        K = len(draft.tokens)

        def bonus():
            return sample_token(target_probs[K], rng)

        if K == 0:  # no function is asked for that
            return Verdict(0, bonus())
        n, token = (one_by_one if form.one else at_once)(draft.tokens, draft.probs, target_probs, rng, bonus)
        if n < K and token is None:
            fail(NO_TOKEN)
        return Verdict(n, bonus() if token is None else token)

    def at_once(tokens, q, p, rng, bonus):
        K, n_vocab = q.shape
        drawn = bonus() if any(role == "bonus" for _, role in form.roles) else None
        try:
            parts = called(fn, form, tokens, q, p, rng, drawn)
        except AssertionError:
            if hasattr(rng, "reached") and rng.reached() < NEVER:
                return K, None
            raise
        drafted = [*tokens.tolist(), n_vocab - 1] if form.certain else tokens.tolist()
        try:
            return read(reading, parts, drafted, K, n_vocab)
        except Unreadable as error:
            shown = [value for _, value in parts]
            fail(str(error), f"  for the draft tokens {tokens.tolist()} it returned {shown}")

    def one_by_one(tokens, q, p, rng, bonus):
        for i in range(len(tokens)):
            n, token = at_once(tokens[i : i + 1], q[i : i + 1], p[i : i + 2], rng, bonus)
            if n == 0:
                return i, token
        return len(tokens), None

    return verifier


def in_words_of_functions(text):
    return text.replace("your verifier", "your function").replace("target_probs[k]", "row K of the target")
