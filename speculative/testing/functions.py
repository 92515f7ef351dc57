"""The grader of functions with other signatures: speculative sampling as exercises and papers write it.

    def speculative_decode(target_probs, draft_probs, draft_tokens): -> the tokens of the round

1. `form_of`       finds out how the function is called, from a specification or from the names of its parameters
                   (forms.py). Of several forms it takes the one in which drafts with a certain outcome come out right
2. `called`        calls it with the arguments of one draft, with random functions of NumPy, Python and PyTorch that are
                   enumerated (draws.py)
3. `read`          reads the result: how many draft tokens are accepted, and which token follows them
4. `verifier_of`   makes a verifier of this, for `check_verifier`: the same cases, by exact enumeration, the same hints
5. `check_rows`    calls a function of a batch with two texts, which must not depend on each other

A function of two models is a sampler (two_models.py). Functions in PyTorch run in float64. If a function leaves out the
bonus, the grader draws it.
"""

import contextlib
import io
import itertools
import re
import sys
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from ..exact.enumeration import CannotEnumerate, exact_distribution, total_variation
from ..interfaces import Verdict
from ..logits.probs import sample_token
from ..reference import residual
from .cases import (
    NEARLY_CERTAIN,
    TOLERANCE,
    Case,
    Passed,
    alike,
    compared,
    entry_like,
    has,
    independent,
    marginal,
    show,
)
from .diagnosis import KINDS
from .draws import Draws, OpenFloat, OpenFloat64, borrowed, float_replaced
from .forms import (
    LISTS,
    NUMBERS,
    Form,
    array_of,
    by_position,
    guesses,
    models_of,
    needed_of_a_draft,
    needed_of_models,
    parsed,
    parts_of,
    plain,
)
from .samplers import ONE
from .two_models import check_function_of_models
from .verifiers import check_verifier
from .watch import asked, fail, note, told_error

NO_TOKEN = (
    "no token takes the place of a rejected draft token: a round ends with a token drawn from max(0, p - q), normalised"
)
GOES_ON = (
    "the first rejection ends the round: your function continues after it, with draft tokens that were drafted for "
    "a different text"
)
TWICE = "the rejected draft token stays in the text, and its replacement follows it: the replacement takes its place"
LATE = "you count the rejected token as accepted; the count is the number of draft tokens before it (i, not i + 1)"
ALL_THAT_PASS = "you count all draft tokens that pass; the first rejection ends the round"
SHARED = (
    "each text of a batch is right by itself, but together they are not: they share random numbers; draw one for each "
    "text and each draft token"
)
BESIDE = (
    "a batch of one is right, but of two texts the {} has a different distribution: is it cut where the other one "
    "ends, or read from the other one's rows?"
)
BEYOND = (
    "your function returns a token that is one too large, the last one is {}: np.searchsorted finds no place where the "
    "cumulative sum ends below the uniform number; divide max(0, p - q) by its sum before you draw"
)
COUNTS = {  # by how much a count is too large if all pass, if the first is rejected, and if the second is
    (0, 1, 1): LATE,
    (1, 1, 1): LATE,
    (0, 1, 0): ALL_THAT_PASS,
    (0, 2, 1): ALL_THAT_PASS,
    (-1, 0, 0): "your count is one too small where all draft tokens are accepted; it is their number K",
}
SCALARS = (
    "draft_probs has one number for each draft token: pass the draft's whole rows [K, V], for what replaces a "
    "rejected token is drawn from max(0, p - q), which needs q of every token"
)
N_VOCAB = 9
# the tokens of which the target is certain, where 7 and 5 are drafted: (accepted draft tokens, the next token)
TRIALS = {(7, 5, 6): (2, 6), (8, 5, 6): (0, 8), (7, 8, 6): (1, 8)}
NEVER_LOG = -1e5  # the logarithm of 0, without the NaN of inf - inf
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


# ------------------------------------------------------------------------------------------------ 1. the form


class Tried(NamedTuple):
    """What the trials say about a form."""

    score: float  # how many results are right, and in how many trials all can be read
    hint: str | None
    form: Form
    has_bonus: bool = False  # whether a token comes back where all draft tokens are accepted


def form_of(fn, spec, array):
    """The Form in which most one-hot drafts have the right results; AssertionError if these name the mistake.

    A function that takes K + 1 rows, and returns a token after all draft tokens, is not read as one without a bonus.
    """
    specs = [spec] if spec else guesses(fn)
    forms = [parsed(candidate.replace("target", f"target[{rows}]") if "target[" not in candidate else candidate, array)
             for candidate in specs for rows in ("K+1,V", "K,V", "B,K+1,V")]  # fmt: skip
    tries = {str(form): tried(fn, form) for form in dict.fromkeys(forms)}
    best = max(tries.values(), key=lambda report: report.score)
    whole = tries.get(str(best.form).replace("target[K,V]", "target[K+1,V]"), best)
    _, hint, form, _ = whole if whole.has_bonus else best
    if form.axes.get("draft") in ("K", "B,K") and best.score > 0 and not form.is_test:
        fail(SCALARS)
    if hint:
        raise told_error(*hint.splitlines(), f"  (read as {form})")
    return form


def tried(fn, form):
    """The Tried of a form."""
    hints, counts, n_right, passes, has_bonus = [], [], 0, False, False
    for rows, (n_wanted, wanted) in TRIALS.items():
        n_real = 1 if form.one else 2
        drafted = [7, 5][:n_real]
        inputs = Given(np.array(drafted), likely(np.eye(N_VOCAB)[drafted]), np.eye(N_VOCAB)[list(rows)], rows[2])
        errors = []

        def outcome(rng, inputs=inputs, errors=errors):
            try:
                return called(fn, form, inputs, rng)
            except AssertionError as error:
                errors.append(str(error))

        try:
            distribution = exact_distribution(outcome, max_leaves=300)
        except CannotEnumerate:
            return Tried(1, None, form)  # check_verifier says why
        if errors:
            return Tried(-9, errors[0], form)
        n_right += 1
        for parts, share in distribution.items():
            try:
                n, token, count = read(form, parts, [*drafted, *[N_VOCAB - 1] * (not form.bonus)], n_real, N_VOCAB)
            except Unreadable as error:
                n_right -= share
                hints += [str(error)] * (share == 1)
                continue
            counts.append(None if count is None else count - n_wanted - (n_wanted == 2 and not form.bonus))
            is_right, passes = n == min(n_wanted, n_real), passes or n == n_real
            has_bonus = has_bonus or (n == n_real and token is not None)
            has_token = (n < n_real or form.bonus) and not form.is_test
            n_right += share * (is_right + (token == wanted if has_token else is_right))
            if share == 1 and (n_wanted, n, token) == (0, 1, 8) and {"tokens", "padded"} & {*form.results}:
                hints.append(TWICE)
    n_right -= 3 * (not passes) + 0.1 * len(hints)  # all tokens of a draft should pass in some trial
    hint = COUNTS.get(tuple(counts))
    hint = hint if hint and counts_agree(fn, form, counts) else (hints or [None])[0]
    return Tried(n_right, hint, form, has_bonus)


def counts_agree(fn, form, excess):
    """Whether the counts are too large by as much, as in COUNTS, where a draft token passes with probability a."""
    for i, a in enumerate((0.4, 0.3)):  # of two draft tokens, number i; the other one passes
        drafted, q, p = [7, 5], np.full((2, N_VOCAB), 0.1), np.full((3, N_VOCAB), 0.05)
        q[[0, 1], drafted], p[[0, 1], drafted] = 0.2, 0.6
        p[i], p[2] = (1 - 0.2 * a) / 8, 1 / N_VOCAB
        p[i, drafted[i]] = 0.2 * a
        try:
            distribution = exact_distribution(
                lambda rng, p=p, q=q: called(fn, form, Given(np.array([7, 5]), q, p, 0), rng)
            )
            distribution = marginal(
                distribution, lambda parts: read(form, parts, [7, 5, 8][: 3 - form.bonus], 2, N_VOCAB)[2]
            )
        except (AssertionError, CannotEnumerate, Unreadable):
            return False
        counts = 3 - form.bonus + excess[0], i + excess[1 + i]  # where all pass, and where number i does not
        if not alike(distribution, marginal({0: a, 1: 1 - a}, counts.__getitem__)):
            return False
    return True


def likely(one_hot):
    """Rows in which the target's only tokens have probability 1 / 2, so that they pass and no residual is 0."""
    return (one_hot + np.roll(one_hot, 1, axis=-1)) / 2


# ------------------------------------------------------------------------------------------------ 2. the call


class Given(NamedTuple):
    """A draft that the function is asked about."""

    tokens: np.ndarray  # [n] int
    q: np.ndarray  # [n, n_vocab] probabilities
    p: np.ndarray  # [n + 1, n_vocab]
    bonus: int = None  # the token drawn after all draft tokens, for a function with this argument

    def with_a_certain_token(self):
        """One more draft token, with a one-hot row: it tells, without a bonus, whether all tokens before it passed."""
        one_hot = np.eye(self.q.shape[1])[-1:]
        tokens = np.append(self.tokens, self.q.shape[1] - 1)
        return Given(
            tokens, np.concatenate([self.q, likely(one_hot)]), np.concatenate([self.p[:-1], one_hot]), self.bonus
        )


def called(fn, form, inputs, rng):
    """The parts of the result of fn for one draft, as Python numbers and tuples; AssertionError if it fails."""
    return called_with(fn, form, [inputs], rng)


def called_with(fn, form, drafts, rng):
    """Like `called`; for a batch of several drafts of the same length, a list of such parts."""
    if not (form.bonus or form.one):
        drafts = [draft.with_a_certain_token() for draft in drafts]

    def call():
        with borrowed(fn, rng, seeded="seed" in form.axes):
            arguments = [argument(form, drafts, rng, *described) for described in form.arguments]
            before = [plain(value) if is_data(value) else None for value in arguments]
            result = fn(*arguments)
            if "output" in form.axes and result is None:
                result = arguments[[*form.axes].index("output")]
            parts = parts_of(result, form.results)
            for (role, *_), value, known in zip(form.arguments, arguments, before):
                if role != "output" and known is not None and plain(value) != known:
                    fail("your function writes to its arguments: work on a copy", f"  {where()}")
            return parts if len(drafts) == 1 else rows_of(parts, len(drafts))

    def where():
        tokens = [draft.tokens.tolist() for draft in drafts]
        tokens = tokens if len(drafts) > 1 else tokens[0]
        return f"for draft tokens {tokens}, K = {len(drafts[0].tokens)}, called as {form}"

    return asked(call, "your function", where)


def argument(form, drafts, rng, role, axes, words):
    """One argument of the function."""
    n, n_vocab = drafts[0].q.shape
    if role in ("uniforms", "uniform"):
        sizes = {"B": len(drafts), "K": n, "K+1": n + 1}
        return uniforms([sizes[axis] for axis in axes.split(",") if axis], form.array, rng)
    if role == "bonus":
        bonuses = [draft.bonus or 0 for draft in drafts]
        value = np.array(bonuses) if "B," in form.axes.get("target", "") else bonuses[0]
    elif role in ("target", "draft", "tokens", "output"):
        value = [array_argument(form, draft, role, axes, words) for draft in drafts]
        value = np.array(value if axes.startswith("B") else value[0])
    else:
        numbers = {"K": n, "B": len(drafts), "V": n_vocab, "temperature": 1.0, "seed": 0, "rng": Draws(rng)}
        return numbers[role]
    if not isinstance(value, np.ndarray):
        return value
    if np.ndim(value) == 0:
        return int(value)
    return value.tolist() if form.array is list or "list" in words else form.array(value)


def array_argument(form, draft, role, axes, words):
    """An array about one draft."""
    n = len(draft.tokens)
    value = {"target": draft.p, "draft": draft.q, "tokens": draft.tokens, "output": np.full(n + 1, -1)}[role]
    if role == "target" and axes.endswith("K,V") and "bonus" in form.axes:
        value = value[:n]  # without the row of the bonus
    if role in ("draft", "target") and axes.endswith("K"):
        value = value[np.arange(n), draft.tokens]
    if "log" in words:
        value = np.log(value, out=np.full(value.shape, NEVER_LOG), where=value > 0)
    return value[0] if form.one else value


def rows_of(parts, n_rows):
    """The parts of each row of a batch."""
    for part in parts:
        if not isinstance(part, tuple) or len(part) != n_rows:
            fail(f"for a batch of {n_rows} texts your function returns {part!r:.80}: expected a row for each of them")
    return [tuple(part[i] for part in parts) for i in range(n_rows)]


def uniforms(size, array, rng):
    """Uniform numbers that are not drawn yet."""
    if "torch" in getattr(array, "__module__", "") or "torch" in repr(array):
        torch = sys.modules["torch"]
        return torch.rand(size, dtype=torch.float64)  # answered by rng
    drawn = rng.random(size or None)
    return drawn.tolist() if array is list and size else drawn


def is_data(value):
    return hasattr(value, "tolist") and not hasattr(value, "uniforms") and str(getattr(value, "dtype", "")) != "object"


# ------------------------------------------------------------------------------------------------ 3. the result


class Unreadable(Exception):
    """A result that does not fit; its text is the hint."""


def read(form, parts, drafted, n_real, n_vocab):
    """(number of accepted draft tokens, next token or None, count or None); Unreadable if the result does not fit.

    `drafted` are the draft tokens that were passed in; all but the first n_real have one-hot rows.
    """
    values = {name: whole(name, part) for name, part in zip(form.results, parts) if name != "_"}
    token, more = values.get("token"), "length" in values
    count = values["length"] - 1 if more else values.get("count")
    if n_vocab in (token, *values.get("tokens", ())):
        raise Unreadable(BEYOND.format(n_vocab - 1))
    if {"tokens", "padded"} & values.keys():
        n, token = of_tokens(values.get("tokens", values.get("padded")), "padded" in values, drafted, n_real, n_vocab)
    elif "accepted" in values:
        accepted = [x for x in values["accepted"] if x >= 0]
        n = len(accepted)
        if accepted != drafted[:n]:
            raise Unreadable(GOES_ON)
    elif "mask" in values:
        n = len(list(itertools.takewhile(bool, values["mask"])))
    else:
        n = values.get("flag", count if count is not None else int(token == drafted[0]))
    if n is None or not 0 <= n <= len(drafted):
        raise Unreadable(f"of {n_real} draft tokens your function accepts {n}")
    if (token is not None and not 0 <= token < n_vocab) or (n and form.one) or n >= n_real < len(drafted):
        token = None  # no token, the draft token itself, or one that follows the added token
    return min(n, n_real), token, count


def whole(name, value):
    """A part of a result as one number, or as a list of them."""
    if name in NUMBERS and isinstance(value, tuple):
        if len(value) > 1:
            raise Unreadable(f"expected one number for the {name!r} of the result, got {value!r:.60}")
        value = value[0] if value else None
    numbers = value if isinstance(value, tuple) else (value,)
    known = [number for number in numbers if number is not None or name in LISTS]
    if any(not np.isscalar(number) or isinstance(number, str) or number != number // 1 for number in known):
        raise Unreadable(f"expected whole numbers for the {name!r} of the result, got {value!r:.60}")
    if name in LISTS:
        return [int(number) for number in numbers]
    return None if value is None else int(value)


def of_tokens(tokens, is_padded, drafted, n_real, n_vocab):
    emitted = list(itertools.takewhile(lambda token: 0 <= token < n_vocab, tokens))
    if is_padded:
        other = next((i for i, token in enumerate(emitted) if i >= len(drafted) or token != drafted[i]), len(emitted))
        if any(emitted[other + 1 :]):
            raise Unreadable(GOES_ON)
        emitted = emitted[: other + 1]
    n = len(emitted) - 1
    if not emitted:
        raise Unreadable(NO_TOKEN)
    if n > n_real:
        raise Unreadable(f"a round of {n_real} draft tokens has {n_real + 1} tokens at most, but yours has {n + 1}")
    if emitted[:n] != drafted[:n]:
        raise Unreadable(GOES_ON)
    return n, emitted[n]


# ------------------------------------------------------------------------------------------------ 4. a verifier


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


# ------------------------------------------------------------------------------------------------ 5. a batch


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
