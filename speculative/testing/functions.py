"""The grader of functions with other signatures: speculative sampling as exercises and papers write it.

    def speculative_decode(target_probs, draft_probs, draft_tokens): -> the tokens of the round

`check_function(fn, "target, draft, tokens -> tokens")` calls such a function with the arguments before the arrow, and
reads its result as the parts after it. It wraps the function as a verifier, which `check_verifier` grades: the same
cases, by exact enumeration, and the same hints. Functions in PyTorch run in float64, and all random functions of
PyTorch, NumPy and Python are enumerated (draws.py). If a function leaves out the bonus, the grader draws it.
"""

import contextlib
import inspect
import io
import itertools
import re
import sys
from dataclasses import dataclass, is_dataclass

import numpy as np

from ..drafters.model import ModelDrafter
from ..exact.enumeration import CannotEnumerate, exact_distribution, total_variation
from ..exact.table import TableModel
from ..interfaces import Verdict
from ..logits.probs import Sampling, sample_token
from .cases import TOLERANCE, Passed
from .draws import Draws, borrowed, globals_of
from .names import names_in
from .samplers import check_sampler
from .verifiers import check_verifier
from .watch import asked, fail, note, told_error

AXES = {"target": "K+1,V", "draft": "K,V", "tokens": "K", "uniforms": "K+1", "output": "K+1"}  # the usual axes
ARGUMENTS = *AXES, "uniform", "bonus", "rng", "K", "B", "V", "temperature", "seed"
OF_MODELS = "prompt, target_model, draft_model, n_tokens, K -> text"
LISTS, NUMBERS = ("tokens", "padded", "accepted", "mask"), ("flag", "count", "length", "token")
NAMES = {  # role: a regular expression for the names of parameters that are known without a specification
    "temperature": "temp", "output": "^out", "uniforms": "uniform|coin|^us?$", "rng": "^rng|^gen",
    "V": "^(n_)?vocab|^V$",
    "tokens": "token|_ids?$|candidate|drafted|^xs?$", "draft": "draft|proposal|small|assist|^qs?(_|$)",
    "target": "target|large|big|main|^ps?(_|$)", "K": "^(K|T|gamma)$", "B": "^B$",
}  # fmt: skip
MODELS = {  # the same for functions of two models
    "temperature": "temp",
    "rng": "^rng|^gen",
    "K": "^(K|k|gamma|lookahead|draft_len|n_draft)$|speculat|num_assist",
    "draft_model": "draft|approx|small|assist|^(M|model)_?[qs]$",
    "target_model": "target|large|big|main|^(M|model)_?[pl]?$",
    "n_tokens": "^(N|n|T)$|max|num|n_tok|steps|len",
    "prompt": "prompt|prefix|ids|tokens|context|text|^x$|^seq",
}
USUAL = "tokens", "tokens, count", "count, token", "accepted, token", "accepted, count, token", "token, flag"
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
JAX = "a function of a JAX key cannot be graded: take uniform numbers, u [K + 1], as an argument instead"
V = 9
TRIALS = {(7, 5, 6): (2, 6), (8, 5, 6): (0, 8), (7, 8, 6): (1, 8)}  # one-hot rows of the target, after the draft 7, 5
NEVER = 1e-14  # the probability of a path that is there only because of rounding


def check_function(fn, spec=None, *, array=None, seed=0):
    """Raise AssertionError unless the function is exact speculative sampling, whatever its signature.

    Parameters
    ----------
    fn : callable
    spec : str, optional
        "target, draft, tokens -> tokens": the arguments, by position, and the parts of the result.

        Arguments: target, draft, tokens, rng, uniforms, uniform, bonus (the token drawn after all draft tokens), output
        (written to), K, B, V, temperature, seed. Axes other than the usual ones follow in brackets: target[K,V] has no
        row for the bonus, target[B,K+1,V] is a batch (called with one text, and with two), target[V] is for one draft
        token. "log target" means logarithms of probabilities, or logits; "list tokens" is always a list.

        Result: tokens (of the round: the accepted ones and one more), padded (the same, filled up with zeros), accepted
        (the accepted ones alone), mask, flag (whether each draft token was accepted), count, length (one more than
        count), token (the one after the accepted ones), _ (anything else).

        A function of two models is a sampler: "prompt, target_model, draft_model, n_tokens, K -> text" is graded by
        `check_sampler`. A model is called with the tokens of a text and returns logits, or probabilities ("probs
        target_model"), [n, V] for n tokens. The result is the text, or the new tokens, at least n_tokens of them.

        `spec` may be omitted if the parameters have the usual names, such as (target_probs, draft_probs,
        draft_tokens).
    array : callable, optional
        Converts an array to an argument: np.array, torch.tensor or list; by default inferred from the function's code.
    seed : int
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
    check_function: the tokens of a round have the target's distribution, to 1e-12, in 24 cases...
    """
    if not callable(fn) or isinstance(fn, type):
        fail(f"pass a function of target_probs, draft_probs and draft_tokens; yours is {fn!r:.80}")
    if "torch" in sys.modules:
        from . import torch_functions  # noqa: F401  imported before random functions are replaced
    if spec_of_models := spec if "_model" in (spec or "") else spec is None and models_of(fn):
        form = form_of_models(fn, spec_of_models, array or array_of(fn))
        try:
            passed = check_sampler(sampler_of(fn, form), seed=seed, with_models=True)
        except AssertionError as error:
            told = str(error).replace("your sampler", "your function").splitlines()
            raise told_error(*told, f"  (read as {form})") from error.__cause__
        return Passed(f"{passed.replace('check_sampler', 'check_function')}; read as {form}")
    form, printed = form_of(fn, spec, array or array_of(fn)), io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            passed = check_verifier(verifier_of(fn, form), seed=seed, trees=False)
    except AssertionError as error:
        first, *rest = str(error).replace("your verifier", "your function").splitlines()
        raise told_error(
            first.replace("target_probs[k]", "row K of the target"), *rest, f"  (read as {form})"
        ) from None
    for line in dict.fromkeys(printed.getvalue().replace("your verifier", "your function").splitlines()):
        if line.startswith("note: ") and "wastes the bonus" not in line:
            print(line)
    if any(axes.startswith("B") for axes in form.axes.values()):
        check_rows(fn, form, np.random.default_rng(seed))
    if not (form.bonus or form.one):
        note(
            "your function is exact, but wastes the bonus: if all K draft tokens pass, the target's row after "
            "them yields one more token, for K + 1 rows"
        )
    return Passed(f"{passed.replace('check_verifier', 'check_function')}; read as {form}")


# ------------------------------------------------------------------------------------------------ the form


@dataclass(frozen=True)
class Form:
    """The arguments of a function, and the parts of its result."""

    spec: str
    arguments: tuple  # (role, axes, words before it)
    results: tuple
    array: object

    def __post_init__(self):
        self.__dict__["axes"] = {role: axes for role, axes, _ in self.arguments}
        self.__dict__["one"] = self.axes.get("target") == "V"
        self.__dict__["bonus"] = "K+1" in self.axes.get("target", "") or "bonus" in self.axes

    def __str__(self):
        return self.spec


def parsed(spec, array):
    """The Form of a specification."""
    before, arrow, after = spec.partition("->")
    found = re.findall(r"((?:log |list |probs )*)(\w+)(\[[^\]]*\])?\s*(?:,|$)", " ".join(before.split()))
    batch = re.search(r"target\[B,", spec.replace(" ", ""))
    arguments = []
    for words, role, axes in found:
        axes = axes.strip("[]").replace(" ", "") or AXES.get(role, "")
        axes = f"B,{axes}" if batch and role in AXES and axes[:1] != "B" else axes
        arguments.append((role, axes, tuple(words.split())))
    results = tuple(name.strip() for name in after.split(","))
    unknown = [name for name, *_ in arguments if name not in (*ARGUMENTS, *MODELS)]
    unknown += [name for name in results if name not in (*LISTS, *NUMBERS, "text", "_")]
    if unknown or not arrow or len(found) != len(re.sub(r"\[[^\]]*\]", "", before).split(",")):
        fail(
            f"expected a specification such as 'target, draft, tokens -> tokens', got {spec!r:.100}"
            + "".join(f": {name!r} is unknown" for name in unknown[:1]),
            f"  arguments: {', '.join(ARGUMENTS)}; results: {', '.join((*LISTS, *NUMBERS))}",
        )
    return Form(spec, tuple(arguments), results, array)


def form_of(fn, spec, array):
    """The Form in which most one-hot drafts have the right results; AssertionError if these name the mistake."""
    specs = [spec] if spec else guesses(fn)
    forms = [parsed(one.replace("target", f"target[{rows}]") if "target[" not in one else one, array)
             for one in specs for rows in ("K+1,V", "K,V", "B,K+1,V")]  # fmt: skip
    n_right, hint, form = max((tried(fn, form) for form in dict.fromkeys(forms)), key=lambda report: report[0])
    if form.axes.get("draft") in ("K", "B,K") and n_right > 0:
        fail(SCALARS)
    if hint:
        raise told_error(*hint.splitlines(), f"  (read as {form})")
    return form


def guesses(fn):
    """Specifications of a function whose parameters have the usual names."""

    def role_of(name):
        return next((role for role, pattern in NAMES.items() if re.search(pattern, name)), None)

    parameters = inspect.signature(fn).parameters.values()
    if any(p.name == "key" for p in parameters):
        fail(JAX)
    needed = [p.name for p in parameters if role_of(p.name) or p.default is p.empty]
    if missing := [name for name in needed if not role_of(name)]:
        fail(f"which argument is {missing[0]!r}? Pass a specification, such as 'target, draft, tokens, rng -> tokens'")
    before = ", ".join("log " * ("log" in name) + role_of(name) for name in needed)
    yield from (f"{before} -> {after}" for after in USUAL)
    yield f"{before.replace('target', 'target[V]').replace('draft', 'draft[V]')} -> token, flag"
    yield from (f"{before.replace('draft', 'draft[K]')} -> {after}" for after in USUAL)


def array_of(fn):
    """The conversion for a function's arrays, inferred from its calls and annotations."""
    names = {*names_in(fn), *(str(p.annotation) for p in inspect.signature(fn).parameters.values())}
    torch = any("torch" in name or "Tensor" in name for name in names)
    torch = torch or any(getattr(value, "__name__", "").startswith("torch") for value in globals_of(fn).values())
    if torch and not names & {"np", "numpy"}:
        return sys.modules["torch"].tensor
    return list if any(re.search(r"[Ll]ist\[", name) for name in names) and "np" not in names else np.array


def tried(fn, form):
    """(how many results of one-hot drafts are right, a hint or None, the form)."""
    hints, counts, n_right, passes = [], [], 0, False
    for rows, (n_wanted, wanted) in TRIALS.items():
        n_real = 1 if form.one else 2
        drafted, q, p, errors = [7, 5][:n_real], likely(np.eye(V)[[7, 5]][:n_real]), np.eye(V)[list(rows)], []

        def outcome(rng, drafted=drafted, q=q, p=p, bonus=rows[2], errors=errors):
            try:
                return called(fn, form, np.array(drafted), q, p, rng, bonus)
            except AssertionError as error:
                errors.append(str(error))

        try:
            found = exact_distribution(outcome, max_leaves=300)
        except CannotEnumerate:
            return 1, None, form  # check_verifier says why
        if errors:
            return -9, errors[0], form
        for parts, share in found.items():
            try:
                n, token, count = read(form, parts, [*drafted, *[V - 1] * (not form.bonus)], n_real, V)
            except Unreadable as error:
                hints += [str(error)] * (share == 1)
                continue
            counts.append(None if count is None else count - n_wanted - (n_wanted == 2 and not form.bonus))
            is_right, passes = n == min(n_wanted, n_real), passes or n == n_real
            n_right += share * (is_right + (token == wanted if n < n_real or form.bonus else is_right))
            if share == 1 and (n_wanted, n, token) == (0, 1, 8) and {"tokens", "padded"} & {*form.results}:
                hints.append(TWICE)
    n_right -= 3 * (not passes) + 0.1 * len(hints)  # all tokens of a draft should pass in some trial
    return n_right, COUNTS.get(tuple(counts)) or (hints or [None])[0], form


# ------------------------------------------------------------------------------------------------ calls


def likely(one_hot):
    """Rows in which the target's only tokens have probability 1 / 2, so that they pass and no residual is 0."""
    return (one_hot + np.roll(one_hot, 1, axis=-1)) / 2


def called(fn, form, tokens, q, p, rng, bonus=None):
    """The parts of the result of fn for one draft, as Python numbers and tuples; AssertionError if it fails.

    tokens [n] int, q [n, V] and p [n + 1, V] are probabilities. For a function without a bonus, a draft token with a
    one-hot row is added, so that the length of the result tells whether all tokens before it passed.
    """
    return called_with(fn, form, [(tokens, q, p, bonus)], rng)


def called_with(fn, form, drafts, rng):
    """Like `called`; for a batch of several drafts (tokens, q, p, bonus) of the same length, a list of such parts."""
    n_vocab = drafts[0][1].shape[1]
    if not (form.bonus or form.one):
        one_hot = np.eye(n_vocab)[-1:]
        drafts = [
            (
                np.append(tokens, n_vocab - 1),
                np.concatenate([q, likely(one_hot)]),
                np.concatenate([p[:-1], one_hot]),
                bonus,
            )
            for tokens, q, p, bonus in drafts
        ]
    n, n_rows, is_batch = len(drafts[0][0]), len(drafts), "B," in form.axes.get("target", "")
    arrays = [{"target": p, "draft": q, "tokens": tokens, "output": np.full(n + 1, -1)} for tokens, q, p, _ in drafts]
    bonuses = [bonus or 0 for *_, bonus in drafts]
    values = {"bonus": np.array(bonuses) if is_batch else bonuses[0], "K": n, "B": n_rows, "V": n_vocab,
              "temperature": 1.0, "seed": 0, "rng": Draws(rng)}  # fmt: skip

    def array(role, axes, words, i):
        tokens, value = drafts[i][0], arrays[i][role]
        if role == "draft" and axes.endswith("K"):
            value = value[np.arange(n), tokens]
        if "log" in words:
            with np.errstate(divide="ignore"):
                value = np.log(value)
        return value[0] if form.one else value

    def made(role, axes, words):
        if role in ("uniforms", "uniform"):
            sizes = {"B": n_rows, "K": n, "K+1": n + 1}
            return uniforms([sizes[axis] for axis in axes.split(",") if axis], form.array, rng)
        if role in arrays[0]:
            value = [array(role, axes, words, i) for i in range(n_rows)]
            value = np.array(value if axes.startswith("B") else value[0])
        elif not isinstance(value := values[role], np.ndarray):
            return value
        if np.ndim(value) == 0:
            return int(value)
        return value.tolist() if form.array is list or "list" in words else form.array(value)

    def call():
        with borrowed(fn, rng, seeded="seed" in form.axes):
            given = [made(*argument) for argument in form.arguments]
            before = [plain(value) if is_data(value) else None for value in given]
            result = fn(*given)
            if "output" in form.axes and result is None:
                result = given[[*form.axes].index("output")]
            elif any(known is not None and plain(value) != known for value, known in zip(given, before)):
                fail("your function writes to its arguments: work on a copy", f"  {where()}")
            parts = parts_of(result, len(form.results))
            return parts if n_rows == 1 else rows_of(parts, n_rows)

    def where():
        tokens = [draft[0].tolist() for draft in drafts]
        return f"for draft tokens {tokens if n_rows > 1 else tokens[0]}, K = {n}, called as {form}"

    return asked(call, "your function", where)


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


def plain(value):
    """A tensor or array as numbers in tuples, without the axis of a batch of one."""
    value = value.detach().cpu() if hasattr(value, "detach") else value
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, (list, tuple)):
        return value
    parts = tuple(plain(one) for one in value)
    return parts[0] if len(parts) == 1 and isinstance(parts[0], tuple) else parts


def parts_of(result, n_parts):
    result = tuple(vars(result).values()) if is_dataclass(result) else result
    result = tuple(result.values()) if isinstance(result, dict) else result
    if n_parts == 1:
        return (plain(result),)
    if not isinstance(result, tuple) or len(result) != n_parts:
        fail(f"your function returns {plain(result)!r:.80}, and {n_parts} parts are expected")
    return tuple(plain(part) for part in result)


# ------------------------------------------------------------------------------------------------ results


class Unreadable(Exception):
    """A result that does not fit; its text is the hint."""


def read(form, parts, drafted, n_real, n_vocab):
    """(number of accepted draft tokens, next token or None, count or None); Unreadable if the result does not fit.

    `drafted` are the draft tokens that were passed in; all but the first n_real have one-hot rows.
    """
    values = {name: whole(name, part) for name, part in zip(form.results, parts) if name != "_"}
    token, more = values.get("token"), "length" in values
    count = values["length"] - 1 if more else values.get("count")
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
    if not 0 <= n <= len(drafted):
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
    if any(one is not None and (not np.isscalar(one) or isinstance(one, str) or one != one // 1) for one in numbers):
        raise Unreadable(f"expected whole numbers for the {name!r} of the result, got {value!r:.60}")
    if name in LISTS:
        return [int(one) for one in numbers]
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
            parts = called(fn, form, tokens, q, p, rng, sample_token(p[-1], rng) if "bonus" in form.axes else None)
        except AssertionError:
            if hasattr(rng, "reached") and rng.reached() < NEVER:
                return K, None
            raise
        drafted = [*tokens.tolist(), *[n_vocab - 1] * (not form.bonus and not form.one)]
        try:
            n, token, count = read(form, parts, drafted, K, n_vocab)
            if n < K and token is None:
                raise Unreadable(NO_TOKEN)
            if count is not None and "token" not in form.results and count != n and not n == K < len(drafted) == count:
                raise Unreadable(f"your count is {count}, but {n} draft tokens are accepted")
        except Unreadable as error:
            fail(str(error), f"  for the draft tokens {tokens.tolist()} it returned {parts}")
        return n, token

    return verifier


# ------------------------------------------------------------------------------------------------ batches


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
            parts = called_with(fn, form, [*zip(tokens, q, p, bonus)], rng)
            return [whole_text(form, *each, n_vocab, rng) for each in zip(parts, tokens, p)]

        wanted, alone = [positions(rows) for rows in p], [{}, {}]
        try:
            found = exact_distribution(texts)
        except (AssertionError, CannotEnumerate, Unreadable) as error:
            note(f"your function is right for one text; for a batch of two: {str(error).splitlines()[0]}")
            return
        for pair, share in found.items():
            for one, text in zip(alone, pair):
                one[text] = one.get(text, 0) + share
        where = f"  for two texts with K = {K}, called as {form}"
        for i, name in enumerate(("first", "second")):
            if total_variation(alone[i], wanted[i]) > TOLERANCE:
                fail(BESIDE.format(name), where)
        together = {(a, b): share * other for a, share in wanted[0].items() for b, other in wanted[1].items()}
        if total_variation(found, together) > TOLERANCE:
            fail(SHARED, where)


def whole_text(form, parts, tokens, p, n_vocab, rng):
    """The tokens of a round, followed by tokens drawn from p, K + 1 in all."""
    drafted = [*tokens.tolist(), *[n_vocab - 1] * (not form.bonus)]
    n, token, _ = read(form, parts, drafted, len(tokens), n_vocab)
    text = [*tokens[:n].tolist(), *([] if token is None else [token])]
    return [*text, *(sample_token(row, rng) for row in p[len(text) :])]


def positions(rows):
    """The product of the rows, a dict tokens -> probability."""
    texts = {(): 1.0}
    for row in rows:
        texts = {(*text, x): share * chance for text, share in texts.items() for x, chance in enumerate(row.tolist())}
    return texts


# ------------------------------------------------------------------------------------------------ two models


def models_of(fn):
    """The specification, without its result, of a function of two models with usual names; otherwise ""."""
    names = [p.name for p in inspect.signature(fn).parameters.values() if p.default is p.empty or p.name == "rng"]
    roles = [next((role for role, pattern in MODELS.items() if re.search(pattern, name)), name) for name in names
             if not re.search("prob|logit|log_?p|draft_tok|dist|^[pq]s?$", name)]  # fmt: skip
    if len(roles) < len(names):
        return ""
    if {"draft_model", "target_model"} <= {*roles} and not {"prompt", "n_tokens"} <= {*roles}:
        fail(f"which arguments are the prompt and the number of tokens? Pass a specification, such as {OF_MODELS!r}")
    return ", ".join(roles) if "draft_model" in roles and "target_model" in roles else ""


def form_of_models(fn, spec, array):
    """The Form in which the text of a one-hot target is right, if there is one."""
    whole = [spec] if "->" in spec else [f"{spec} -> {result}" for result in ("text", "tokens")]
    specs = [*whole, *(one.replace("prompt", "prompt[B,n]") for one in whole if "prompt[" not in one)]
    if "probs" not in spec:
        specs += [re.sub(r"(\w+_model)", r"probs \1", one) for one in specs]
    forms, tries = [parsed(one, array) for one in specs], []
    for form in forms:
        sampler = sampler_of(fn, form)(CYCLE, ModelDrafter(CYCLE, sampling=Sampling()), K=2, sampling=Sampling())

        def text(rng, sampler=sampler, form=form):
            return asked(lambda: sampler.generate([2, 1], 4, rng), "your function", lambda: f"called as {form}")

        try:
            tries.append((exact_distribution(text, max_leaves=300).get((2, 0, 1, 2), 0), None))
        except (AssertionError, CannotEnumerate) as error:
            tries.append((0, error))
    best = max(range(len(forms)), key=lambda i: tries[i][0])
    if all(isinstance(error, AssertionError) for _, error in tries):
        raise tries[0][1]
    return forms[best]


def sampler_of(fn, form):
    """A class of samplers whose `generate` calls the function with models that include the sampling."""

    class OfModels:
        def __init__(self, target, drafter, *, K, sampling):
            self.K, self.drafter = K, drafter
            self.models = {"target_model": (target, sampling), "draft_model": (drafter.model, drafter.sampling)}

        def generate(self, prompt, n_tokens, rng):
            values = {"prompt": np.array(prompt), "n_tokens": n_tokens, "K": self.K, "rng": Draws(rng), "V": 3, "B": 1,
                      "temperature": 1.0, "seed": 0}  # fmt: skip
            with borrowed(fn, rng, seeded="seed" in form.axes):
                given = [self.argument(role, axes, words, values) for role, axes, words in form.arguments]
                parts = dict(zip(form.results, parts_of(fn(*given), len(form.results))))
            text = [*map(int, np.ravel(parts.get("text", parts.get("tokens", ()))))]
            return text[len(prompt) * ("text" in parts) :][:n_tokens]

        def argument(self, role, axes, words, values):
            if role == "prompt":
                value = values[role][None] if axes.startswith("B") else values[role]
                return value.tolist() if form.array is list or "list" in words else form.array(value)
            return self.model(role, words) if role in self.models else values[role]

        def model(self, role, words):
            model, sampling = self.models[role]

            def called(tokens, *_, **__):
                has_batch, tokens = np.ndim(plain_list(tokens)) == 2, [int(token) for token in np.ravel(plain(tokens))]
                rows = sampling(model(tokens, n_last=len(tokens)), tokens)
                with np.errstate(divide="ignore"):
                    rows = rows if "probs" in words else np.log(rows)
                rows = rows[None] if has_batch else rows
                return rows.tolist() if form.array is list else with_logits(form.array(rows))

            return called

    return OfModels


CYCLE = TableModel(np.roll(np.eye(3), 1, axis=1))  # 0, 1, 2, 0, 1, ...


def plain_list(tokens):
    return tokens.tolist() if hasattr(tokens, "tolist") else tokens


class Rows(np.ndarray):
    """Rows of a model with an attribute `logits` that returns the same rows, as in transformers."""


def with_logits(rows):
    rows = rows.view(Rows) if isinstance(rows, np.ndarray) else rows
    rows.logits = rows
    return rows
