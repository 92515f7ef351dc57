"""How somebody's function is called and what it returns: its form, from the names of its parameters and from trials.

A form says which parameter is what (`roles`), in what arrays and with how many rows; how to read the result is a
reading (readings.py).
Trials are drafts of certain tokens, whose right result is certain: one where both pass, one that rejects the first, and
one that rejects the second. Of all forms that the names allow, the one whose results are right most often is taken; a
function that accepts everything still fits one of three.
"""

import dataclasses
import inspect
import itertools
import re
from dataclasses import dataclass

import numpy as np

from .draws import Draws, borrowed, globals_of
from .names import names_in
from .watch import asked, fail

ROLES = "target", "draft", "tokens", "rng", "uniforms", "bonus", "output", "K", "B", "V", "temperature", "seed"
TARGET = {"target", "large", "big", "main", "verifier", "verify", "base", "oracle", "llm", "teacher", "full"}
DRAFT = {"draft", "drafter", "drafts", "small", "proposal", "proposals", "assistant", "approx", "ssm", "student"}
DRAFT |= {"spec", "speculator", "proposer", "cheap"}
PROBS = {"prob", "probs", "probabilities", "probability", "dist", "dists", "distribution", "distributions", "rows"}
LOGS = {"logit", "logits", "logp", "logq", "logprob", "logprobs", "log", "lp", "lq", "logps"}
TOKENS = {"token", "tokens", "id", "ids", "candidate", "candidates", "sequence", "seq", "guess", "guesses", "proposed"}
WORDS = {  # role -> the words of a parameter's name, after those that are looked at first
    "uniforms": {"uniform", "uniforms", "coins", "coin", "u", "us", "rand", "rands", "randoms", "r", "rs", "noise"},
    "rng": {"rng", "generator", "gen", "prng", "random", "state"},
    "seed": {"seed"},
    "key": {"key"},
    "output": {"output", "out", "outputs", "result"},
    "temperature": {"temperature", "temp"},
    "B": {"b", "batch", "bs"},
    "V": {"v", "vocab", "vocabulary", "nvocab"},
    "K": {"k", "gamma", "t", "n", "s", "num", "len", "length", "lookahead"},
}
CERTAIN = "target", "draft", "tokens"


@dataclass(frozen=True)
class Form:
    """How a function is called: roles by position, the kind of its arrays, and its shapes."""

    roles: tuple  # a role for each parameter that is passed
    arrays: str  # "torch", "numpy" or "list"
    token_list: bool = False  # the draft tokens are a list, whatever the rows are
    batch: bool = False  # a batch dimension, of 1
    one: bool = False  # one draft token: rows [V] and a token, without K
    logs: tuple = ()  # which of target and draft are logarithms of probabilities
    scalars: bool = False  # of the draft, the probability of each draft token alone
    n_more_rows: int = 1  # rows of the target besides those of the draft tokens
    certain: bool = False  # a draft token that is certain follows the others, so that the length tells what passed
    n_uniforms: int = 1  # uniform numbers besides one for each draft token; None: one number

    def told(self):
        """The form in words."""
        axes = "[V]" if self.one else f"[{'B, ' * self.batch}K{' + 1' * (self.n_more_rows > 0)}, V]"
        logs = f", logarithms of {' and '.join(self.logs)}" if self.logs else ""
        return f"called as f({', '.join(role for _, role in self.roles)}), target {axes}{logs}, {self.arrays}"


# ------------------------------------------------------------------------------------------------ roles


def words_of(name):
    """The words in a name, in lower case."""
    return re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower())


def role_of(name):
    """The role of a parameter, by its name; None if it is not recognised."""
    words = set(words_of(name))
    whose = "target" if words & TARGET else "draft" if words & DRAFT else None
    if "bonus" in words:
        return "bonus"
    if words & {"size", "num", "len", "length", "n"} and words & {"vocab", "batch"}:
        return "V" if "vocab" in words else "B"
    if words & {"num", "len", "length", "n"} and len(words) > 1:
        return "K"
    if words & (PROBS | LOGS) and (whose or words & {"p", "q"}):
        return whose or ("target" if "p" in words else "draft")
    if words & TOKENS:
        return "tokens"
    if whose:
        return "tokens" if words & {"x", "xs"} else whose
    for role, known in WORDS.items():
        if words & known:
            return role
    if words & {"p", "ps", "q", "qs", "logp", "logq"}:
        return "target" if words & {"p", "ps", "logp"} else "draft"
    return "tokens" if words & {"x", "xs", "y"} else None


def parameters_of(fn):
    """The parameters of a function that can be given by position."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        fail("your function has no signature: pass roles=(...), one for each argument, such as " + repr(CERTAIN))
    return [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def all_roles(fn):
    """Possible roles of the parameters, dicts name -> role, the most likely first; AssertionError if nothing fits.

    A parameter with a default is passed only if its role is known.
    """
    parameters = parameters_of(fn)
    found = {p.name: role_of(p.name) for p in parameters}
    if any("model" in words_of(name) for name in found):
        fail(
            "your function takes models, so it is a sampler: check_sampler(make) grades it, where make(target, "
            "drafter, K, sampling) returns an object with a method generate(prompt, n_tokens, rng)"
        )
    if "key" in found.values():
        fail("a function of a JAX key cannot be graded: take uniform numbers, u [K + 1], as an argument instead")
    order = [role for role in found.values() if role in CERTAIN]
    if "draft" in order and "tokens" not in order and order.count("draft") == 2:  # draft, draft_probs
        name = next(n for n, r in found.items() if r == "draft" and not set(words_of(n)) & (PROBS | LOGS))
        found[name] = "tokens"
    needed = {p.name for p in parameters if p.default is p.empty}
    found = {name: role for name, role in found.items() if role not in (None, "output") or name in needed}
    found = {n: r for n, r in found.items() if n in needed or r not in ("K", "B", "V", "bonus")}
    open_ones = [name for name, role in found.items() if role is None or (role in CERTAIN and order.count(role) > 1)]
    missing = [role for role in CERTAIN if role not in [r for n, r in found.items() if n not in open_ones]]
    if not open_ones and not missing:
        return [found]
    if open_ones and len(missing) <= len(open_ones) <= 3:
        more = ["uniforms"] * (len(open_ones) - len(missing))
        orders = dict.fromkeys(itertools.permutations([*missing, *more]))
        return [{**found, **dict(zip(open_ones, one))} for one in orders]
    unknown = [r for r in ("K", "uniforms", "V", "B") if r in found.values()]
    names = [n for n, r in found.items() if r in unknown or r is None or n in open_ones]
    if len(missing) <= len(names) <= 3:  # names such as t, d and n
        return [{**found, **dict(zip(names, one))} for one in itertools.permutations(missing, len(names))]
    fail(
        f"which parameter is what? Yours are ({', '.join(p.name for p in parameters)}): pass roles=(...), a role for "
        f"each, of {', '.join(ROLES)}"
    )


def swapped_by_docstring(fn, roles):
    """The roles, with p and q swapped if the docstring says so: Chen et al. write p for the draft, q for the target."""
    text = " ".join((inspect.getdoc(fn) or "").lower().split())
    says = re.search(r"\bq\b[^.;,]{0,25}\btarget|\bp\b[^.;,]{0,25}\bdraft", text)
    bare = all(set(words_of(n)) <= {"p", "q", "probs", "ps", "qs"} for n, r in roles.items() if r in CERTAIN[:2])
    if not (says and bare):
        return roles
    other = {"target": "draft", "draft": "target"}
    return {name: other.get(role, role) for name, role in roles.items()}


def forms(fn, roles=None, batch=None):
    """All forms in which a function may be called, the most likely first."""
    if roles is not None:
        names = [p.name for p in parameters_of(fn)] if isinstance(roles, dict) else None
        check_roles(roles.values() if names else roles)
        found = [roles if names else dict(enumerate(roles))]
    else:
        found = [swapped_by_docstring(fn, one) for one in all_roles(fn)]
    kinds = arrays_of(fn)
    for one in found:
        named = tuple(one.items())
        words = {role: set(words_of(n)) if isinstance(n, str) else set() for n, role in named}
        says_logs = tuple(role for role in CERTAIN[:2] if words[role] & LOGS)
        says_probs = any(words[role] & PROBS for role in CERTAIN[:2])
        logs = [says_logs] if says_logs or says_probs else [(), CERTAIN[:2]]
        uniforms = [0, 1, None] if "uniforms" in one.values() else [1]
        batches = [False, True] if batch is None else [batch]
        for log, kind, with_batch, n_uniforms in itertools.product(logs, kinds, batches, uniforms):
            for more, certain, single in ((1, False, 0), (0, True, 0), (0, False, 0), (1, True, 0), (0, False, 1)):
                for token_list in (False, True) if kind != "list" and not with_batch else (False,):
                    if single and with_batch:
                        continue
                    yield Form(named, kind, token_list, with_batch, bool(single), log, False, more, certain, n_uniforms)


def check_roles(roles):
    for role in roles:
        if role not in ROLES:
            fail(f"expected roles of {', '.join(ROLES)}, got {role!r}")


def arrays_of(fn):
    """The kinds of arrays to try: by what the function calls, and by its annotations."""
    names = set(names_in(fn)) | {str(p.annotation) for p in parameters_of(fn)}
    lists = any(re.search(r"[Ll]ist\[", name) for name in names)
    others = ["list", "numpy"] if lists and not names & {"np", "numpy"} else ["numpy", "list"]
    if any("torch" in name or "Tensor" in name for name in names):
        return ["torch", *others]
    if any(getattr(value, "__name__", "").startswith("torch") for value in globals_of(fn).values()):
        return [*others, "torch"] if names & {"np", "numpy"} else ["torch", *others]
    return others


# ------------------------------------------------------------------------------------------------ calls


def arguments_of(form, tokens, q, p, rng, bonus):
    """(positional arguments, keyword arguments, [output]) for a draft.

    tokens [n] int, q [n, V] and p [n + 1, V] are probabilities, the certain token not among them.
    """
    n_vocab, n = q.shape[1], len(tokens)
    if form.certain:
        one_hot = np.eye(n_vocab)[-1:]
        tokens, q = np.append(tokens, n_vocab - 1), np.concatenate([q, likely(one_hot)])
        p = np.concatenate([p[:n], one_hot, *([one_hot] * form.n_more_rows)])
        # subtle: the row after all draft tokens is never read, as the grader draws the bonus
    elif not form.n_more_rows:
        p = p[:n]
    with np.errstate(divide="ignore"):
        p, q = (np.log(rows) if role in form.logs else rows for role, rows in zip(CERTAIN, (p, q)))
    n = len(tokens)
    if form.scalars:
        q = q[np.arange(n), tokens]
    values = {
        "target": p, "draft": q, "tokens": np.array(tokens, np.int64), "rng": Draws(rng), "K": n, "B": 1, "V": n_vocab,
        "temperature": 1.0, "seed": 0, "bonus": np.array([bonus] if bonus is not None else [0], np.int64),
    }  # fmt: skip
    if form.one:
        values |= {"target": p[0], "draft": q[0], "tokens": int(tokens[0])}
    output = np.full(n + 1, -1, np.int64)
    positional, named, result = [], {}, []
    for name, role in form.roles:
        if role == "uniforms":
            size = None if form.n_uniforms is None or form.one else (*[1] * form.batch, n + form.n_uniforms)
            value = uniforms(form.arrays, size, rng)
        elif role == "output":
            value = in_arrays(output, form)
            result = [value]
        elif role == "tokens" and form.token_list and not form.one:
            value = [int(token) for token in tokens]
        elif role in ("target", "draft", "tokens", "bonus"):
            value = in_arrays(values[role], form)
        else:
            value = values[role]
        if isinstance(name, str):
            named[name] = value
        else:
            positional.append(value)
    return positional, named, result


def likely(one_hot):
    """Rows in which the certain tokens of the target have 1 / 2: they pass, and no residual is 0."""
    return (one_hot + np.roll(one_hot, 1, axis=-1)) / 2


def in_arrays(value, form):
    """An array of the kind of the form."""
    if np.ndim(value) == 0:
        return value
    value = np.array(value)[None] if form.batch else np.array(value)
    if form.arrays == "torch":
        import torch

        return torch.from_numpy(value)
    return value.tolist() if form.arrays == "list" else value


def uniforms(kind, size, rng):
    """Uniform numbers that are not drawn yet."""
    if kind == "torch" and size is not None:
        import torch

        return torch.rand(size, dtype=torch.float64)  # answered by rng
    drawn = rng.random(size)
    return drawn.tolist() if kind == "list" and size is not None else drawn


def parts_of(result, form):
    """The parts of a result, each (kind, value), with kinds int, bool, ints, bools, none and other."""
    if dataclasses.is_dataclass(result):
        result = tuple(vars(result).values())
    elif hasattr(result, "n_accepted"):
        result = (result.n_accepted, result.next_token)
    elif isinstance(result, dict):
        result = tuple(result.values())
    if isinstance(result, list) and not form.one and is_flat(result):
        return (part_of(result, form),)
    if isinstance(result, tuple) or (isinstance(result, list) and not form.batch):
        return tuple(part_of(part, form) for part in result)
    return (part_of(result, form),)


def is_flat(values):
    return all(np.ndim(plain(value)) == 0 and value is not None for value in values)


def plain(value):
    """A tensor or array as numbers in lists."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    return value.tolist() if hasattr(value, "tolist") else value


def part_of(value, form):
    value = plain(value)
    if isinstance(value, (list, tuple)):
        value = [plain(one) for one in value]
        if len(value) == 1 and isinstance(value[0], list):
            value = value[0]
        if value and all(isinstance(one, bool) for one in value):
            return "bools", tuple(value)
        if all(is_whole(one) for one in value):
            return "ints", tuple(int(one) for one in value)
        return "other", None
    if value is None:
        return "none", None
    if isinstance(value, (bool, np.bool_)):
        return "bool", bool(value)
    return ("int", int(value)) if is_whole(value) else ("other", None)


def is_whole(value):
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and value == int_or_nan(value)


def int_or_nan(value):
    return int(value) if abs(value) < 1e18 else float("nan")


def called(fn, form, tokens, q, p, rng, bonus=None):
    """The parts of the result of fn for one draft; AssertionError for an error in it."""
    seeded = "seed" in (role for _, role in form.roles)

    def where():
        return f"for draft tokens {list(map(int, tokens))}, K = {len(tokens)}, {form.told()}"

    def call():
        with borrowed(fn, rng, seeded=seeded):
            positional, named, result = arguments_of(form, tokens, q, p, rng, bonus)
            given = [*positional, *named.values()]
            before = [plain(value) if is_data(value) else None for value in given]
            returned = fn(*positional, **named)
            if not result:
                for value, known in zip(given, before):
                    if known is not None and plain(value) != known:
                        fail("your function writes to its arguments: work on a copy", f"  {where()}")
            elif returned is None:
                returned = result[0]
            return parts_of(returned, form)

    return asked(call, "your function", where)


def is_data(value):
    return (
        hasattr(value, "tolist") and not hasattr(value, "uniforms") and str(getattr(value, "dtype", None)) != "object"
    )
