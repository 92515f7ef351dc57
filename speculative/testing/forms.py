"""The form of a function: its arguments and the parts of its result, from a specification or from parameter names.

    target[K,V], draft, log tokens -> count, token

`parsed` reads a specification, `guesses` makes some from the names of the parameters, and `array_of` infers whether the
function takes arrays, tensors or lists. `parts_of` are the parts of a result, as numbers of Python.
"""

import functools
import inspect
import re
import sys
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from itertools import takewhile
from types import SimpleNamespace

import numpy as np

from .draws import function_of, globals_of
from .sources import codes
from .watch import fail

AXES = {"target": "K+1,V", "draft": "K,V", "tokens": "K", "uniforms": "K+1", "output": "K+1"}  # the usual axes
ARGUMENTS = *AXES, "uniform", "bonus", "rng", "K", "B", "V", "temperature", "seed"
KINDS = "log|list|probs|last|next|pair|triple"  # words before an argument
LISTS, NUMBERS = ("tokens", "padded", "accepted", "mask"), ("flag", "count", "length", "token")
NAMES = {  # role: a regular expression for the names of parameters that are known without a specification
    "temperature": "temp", "output": "^out", "uniforms": "uniform|coin|^us?$", "rng": "^rng|^gen",
    "V": "^(n_)?vocab|^V$", "bonus": "bonus",
    "tokens": "token|_ids?$|candidate|drafted|guess|^xs?$", "draft": "draft|proposal|small|assist|^qs?(_|$)",
    "target": "target|large|big|main|^verif\\w*_(logit|prob)|^ps?(_|$)", "K": "^(K|T|gamma)$", "B": "^B$",
}  # fmt: skip
MODELS = {  # the same for functions of two models
    "temperature": "temp", "top_k": "^top_?k$", "top_p": "^top_?p$|^nucleus", "min_p": "^min_?p$", "penalty": "penalty",
    "tokenizer": "tokenizer", "device": "device", "verbose": "verbose|debug|^log$|print|progress",
    "eos": "eos|stop|end_?id|pad", "rng": "^rng|^gen(erator)?$",
    "K": "^(K|k|gamma|lookahead|depth|draft_len|draft_length|n_draft|n_guess)$|speculat|num_assist|draft_max|n_spec",
    "draft_model": "draft|approx|small|assist|proposal_model|^(M|model)_?[qs]$",
    "target_model": "target|large|big|main|base_model|verifier|^(M|model)_?[pl]?$",
    "n_tokens": "^(N|n|T)$|max|num|n_tok|steps|len",
    "prompt": "prompt|prefix|ids|tokens|context|text|ctx|^idx$|^x$|^seq",
}  # fmt: skip
MEANING = {  # of the roles that every function has, for the nearest reading of a name that is not known
    "target": "the target's rows", "draft": "the draft's rows", "tokens": "the draft tokens",
    "target_model": "the target", "draft_model": "the draft model", "prompt": "the prompt",
    "n_tokens": "the number of new tokens", "K": "the number of draft tokens",
}  # fmt: skip
TOKENIZER = SimpleNamespace(
    eos_token_id=None, pad_token_id=None, bos_token_id=None, decode=lambda tokens, **_: str(tokens)
)
NEUTRAL = {"top_k": 3, "top_p": 1.0, "min_p": 0.0, "penalty": 1.0, "device": "cpu", "verbose": False, "eos": -1,
           "tokenizer": TOKENIZER}  # fmt: skip
PASSED = "K", "n_tokens", "rng", "temperature", "top_k", "top_p", "min_p", "penalty"  # also where they have a default
OF_MODELS = "prompt, target_model, draft_model, n_tokens, K -> text"
USUAL = "tokens", "tokens, count", "count, token", "accepted, token", "accepted, count, token", "token, flag"
TESTS = "accepted", "accepted, count", "count"  # without a replacement, which is left to the caller
JAX = "a function of a JAX key cannot be graded: take uniform numbers, u [K + 1], as an argument instead"


@dataclass(frozen=True)
class Form:
    """The arguments of a function, and the parts of its result."""

    spec: str
    arguments: tuple  # (role, axes, words before it)
    results: tuple
    array: object  # makes an argument from an array

    @cached_property
    def axes(self):
        """dict role -> axes."""
        return {role: axes for role, axes, _ in self.arguments}

    @property
    def one(self):
        """Whether a call is about one draft token."""
        return self.axes.get("target") == "V"

    @property
    def bonus(self):
        """Whether the function returns a bonus, from its own row or drawn by the caller."""
        return "K+1" in self.axes.get("target", "") or "bonus" in self.axes

    @property
    def is_test(self):
        """Whether the caller draws the token after the accepted ones."""
        return not {"tokens", "padded", "token"} & {*self.results}

    @property
    def is_batch(self):
        return any(axes.startswith("B") for axes in self.axes.values())

    def __str__(self):
        return self.spec


def parsed(spec, array):
    """The Form of a specification."""
    before, arrow, after = spec.partition("->")
    argument = rf"((?:(?:{KINDS}) )*)(\w+)(\[[^\]]*\])?\s*(?:,|$)"
    matches = re.findall(argument, " ".join(before.split()))
    batch = re.search(r"target\[B,", spec.replace(" ", ""))
    arguments, usual = (
        [],
        AXES if "tokens" in [role for _, role, _ in matches] else AXES | {"target": "V", "draft": "V"},
    )
    for words, role, axes in matches:
        axes = axes.strip("[]").replace(" ", "") or usual.get(role, "")
        axes = f"B,{axes}" if batch and role in AXES and axes[:1] != "B" else axes
        arguments.append((role, axes, tuple(words.split())))
    results = tuple(name.strip() for name in after.split(","))
    unknown = [name for name, *_ in arguments if name not in (*ARGUMENTS, *MODELS)]
    unknown += [name for name in results if name not in (*LISTS, *NUMBERS, "text", "_")]
    if unknown or not arrow or len(matches) != len(re.sub(r"\[[^\]]*\]", "", before).split(",")):
        fail(
            f"expected a specification such as 'target, draft, tokens -> tokens', got {spec!r:.100}"
            + "".join(f": {name!r} is unknown" for name in unknown[:1]),
            f"  arguments: {', '.join(ARGUMENTS)}; results: {', '.join((*LISTS, *NUMBERS))}",
            f"  of two models: {OF_MODELS}",
        )
    return Form(spec, tuple(arguments), results, array)


def role_of(name, roles):
    """The first role whose expression matches the name of a parameter, or None."""
    return next((role for role, pattern in roles.items() if re.search(pattern, name)), None)


def known_roles(names, table, needed, result):
    """The roles of parameters; AssertionError, with the nearest reading, for a name that is not in the table."""
    roles = [role_of(name, table) for name in names]
    nearest = next((role for role in needed if role not in roles), None)
    spec = ", ".join(role or nearest or "?" for role in roles) + f" -> {result}"
    for name in [name for name, role in zip(names, roles) if role is None]:
        if nearest is None or roles.count(None) > 1:
            usual = OF_MODELS if table is MODELS else "target, draft, tokens, rng -> tokens"
            fail(f"which argument is {name!r}? Pass a specification, such as {usual!r}")
        fail(f"which argument is {name!r}? If it is {MEANING[nearest]}: check_function(fn, {spec!r})")
    return [("log " if table is NAMES and "log" in name else "") + role for name, role in zip(names, roles)]


def guesses(fn):
    """Specifications of a function whose parameters have the usual names."""
    parameters = inspect.signature(fn).parameters.values()
    if any(p.name == "key" for p in parameters):
        fail(JAX)
    roles = known_roles(needed_of_a_draft(fn), NAMES, ("target", "draft", "tokens"), "tokens")
    if not any("tokens" in role for role in roles):  # the draft token is drawn inside
        yield f"{', '.join(roles)} -> token"
        return
    before, of_drafted = ", ".join(roles), ", ".join(role.replace("draft", "draft[K]") for role in roles)
    yield from (f"{before} -> {after}" for after in USUAL)
    of_one = before.replace("target", "target[V]").replace("draft", "draft[V]")
    yield from (f"{of_one} -> {after}" for after in ("token, flag", "flag, token"))
    yield from (f"{of_drafted} -> {after}" for after in USUAL)
    yield from (f"{before} -> {after}" for after in TESTS)
    yield from (f"{of_drafted.replace('target', 'target[K]')} -> {after}" for after in TESTS)


def models_of(fn):
    """The specification, without its result, of a function of two models with usual names; otherwise ""."""
    names = needed_of_models(fn)
    of_a_text = any(re.search("prompt|prefix|context|^seq|input_ids", name) for name in names)
    if any(re.search("draft_tok|^[pq]s?$" + "|prob|logit|log_?p|dist" * (not of_a_text), name) for name in names):
        return ""
    models, roles = {"draft_model", "target_model"}, {role_of(name, MODELS) for name in names}
    if not models & roles or (not models <= roles and not {None, "prompt"} <= roles):
        return ""
    if not {None, "prompt"} & roles:
        fail(f"which argument is the prompt? Pass a specification, such as {OF_MODELS!r}")
    return ", ".join(known_roles(names, MODELS, ("target_model", "draft_model", "prompt", "n_tokens", "K"), "text"))


def needed_of_a_draft(fn):
    """The names of the parameters that are passed to a function of a draft without a specification."""
    parameters = inspect.signature(fn).parameters.values()
    needed = [p for p in parameters if role_of(p.name, NAMES) or p.default is p.empty]
    return [p.name for p in needed if p.kind is not p.VAR_KEYWORD]


def needed_of_models(fn):
    """The same for a function of two models."""
    parameters = [
        p for p in inspect.signature(fn).parameters.values() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    return [p.name for p in parameters if p.default is p.empty or role_of(p.name, MODELS) in PASSED]


def by_position(fn, names=None):
    """fn, to be called by position with its parameters of these names, by default with all of them.

    Keyword-only parameters, and those after an option that is left out, are passed by name.
    """
    parameters = inspect.signature(fn).parameters
    taken = [parameters[name] for name in names or parameters]
    pairs = zip(taken, parameters.values())
    n_first = len([*takewhile(lambda pair: pair[0] is pair[1] and pair[0].kind is not pair[0].KEYWORD_ONLY, pairs)])
    if n_first == len(taken):
        return fn

    @functools.wraps(fn, updated=())
    def called(*values):
        named = dict(zip((parameter.name for parameter in taken[n_first:]), values[n_first:]))
        return fn(*values[:n_first], **named)

    return called


def array_of(fn):
    """The conversion for a function's arrays, inferred from its calls and annotations."""
    code = getattr(function_of(fn), "__code__", None)
    names = {name for part in codes(code) for name in part.co_names} if code else set()
    names |= {str(parameter.annotation) for parameter in inspect.signature(fn).parameters.values()}
    torch = any("torch" in name or "Tensor" in name for name in names)
    torch = torch or any(getattr(value, "__name__", "").startswith("torch") for value in globals_of(fn).values())
    if torch and not names & {"np", "numpy"}:
        return sys.modules["torch"].tensor
    return list if any(re.search(r"[Ll]ist\[", name) for name in names) and "np" not in names else np.array


# ------------------------------------------------------------------------------------------------ results


def plain(value):
    """A tensor or array as numbers in tuples, without the axis of a batch of one."""
    value = value.detach().cpu() if hasattr(value, "detach") else value
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, (list, tuple)):
        return value
    parts = tuple(plain(part) for part in value)
    return parts[0] if len(parts) == 1 and isinstance(parts[0], tuple) else parts


def parts_of(result, names):
    """The parts of a result, a tuple; None for those named _, which may be anything."""
    result = list(result) if inspect.isgenerator(result) else result
    result = tuple(vars(result).values()) if is_dataclass(result) else result
    result = tuple(result.values()) if isinstance(result, dict) else result
    result = (result,) if len(names) == 1 else result
    if not isinstance(result, tuple) or len(result) != len(names):
        fail(f"your function returns {plain(result)!r:.80}, and {len(names)} parts are expected")
    return tuple(None if name == "_" else plain(part) for name, part in zip(names, result))
