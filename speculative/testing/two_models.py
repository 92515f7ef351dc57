"""Functions of two models, as papers write the whole of speculative sampling, graded as samplers.

def speculative_sampling(prompt, target_model, draft_model, n_tokens, K): -> the text
"""

import re

import numpy as np

from ..drafters.model import ModelDrafter
from ..exact.enumeration import CannotEnumerate, exact_distribution
from ..exact.table import TableModel
from ..logits.probs import Sampling
from .cases import Passed
from .draws import Draws, borrowed, on_cpu
from .forms import NEUTRAL, parsed, parts_of
from .samplers import check_sampler
from .watch import asked, told_error

CYCLE = TableModel(np.roll(np.eye(3), 1, axis=1))  # 0, 1, 2, 0, 1, ...


def check_function_of_models(fn, spec, array, seed):
    """The result of check_sampler; its messages are about a function."""
    form = form_of_models(fn, spec, array)
    made = sampler_of(fn, form)
    try:
        passed = check_sampler(made, seed=seed, with_models=True)
    except AssertionError as error:
        told = str(error).replace("your sampler", "your function").splitlines()
        raise told_error(*told, f"  (read as {form})") from error.__cause__
    passed = passed.replace("check_sampler", "check_function")
    if made.n_more:
        passed = passed.replace("as many tokens as asked for", f"up to {made.n_more} tokens more than asked for")
    return Passed(f"{passed}; read as {form}")


def form_of_models(fn, spec, array):
    """The Form in which the text of a one-hot target is right, if there is one; of several the one with fewest calls.

    A draft from the wrong row is exact as well, but it is rejected.
    """
    whole = [spec] if "->" in spec else [f"{spec} -> {result}" for result in ("text", "tokens")]
    specs = [*whole, *(one.replace("prompt", "prompt[B,n]") for one in whole if "prompt[" not in one)]
    if "probs" not in spec:
        specs += [re.sub(r"(\w+_model)", r"probs \1", one) for one in specs]
    if "last" not in spec and "next" not in spec:
        specs += [re.sub(r"((?:probs )?\w+_model)", rf"{word} \1", one) for word in ("last", "next") for one in specs]
    forms, tries = [parsed(one, array) for one in specs], []
    forms += [parsed(re.sub(r"\bprompt(?!\[)", "list prompt", one), array) for one in specs if "prompt[" not in one]
    for form in forms:
        calls = []

        def target(text, n_last, calls=calls):
            calls.append(n_last)
            return CYCLE(text, n_last=n_last)

        sampler = sampler_of(fn, form)(target, ModelDrafter(CYCLE, sampling=Sampling()), K=2, sampling=Sampling())

        def text(rng, sampler=sampler, form=form):
            return asked(lambda: sampler.generate([2, 1], 4, rng), "your function", lambda: f"called as {form}")

        try:
            share = exact_distribution(text, max_leaves=300).get((2, 0, 1, 2), 0)
            tries.append((round(share, 9), -len(calls), None))
        except (AssertionError, CannotEnumerate) as error:
            tries.append((0, -len(calls), error))
    best = max(range(len(forms)), key=lambda i: (tries[i][0], tries[i][2] is None, tries[i][1]))
    if all(isinstance(error, AssertionError) for *_, error in tries):
        raise tries[0][-1]
    return forms[best]


def sampler_of(fn, form):
    """A class of samplers whose `generate` calls the function with models that include the sampling."""

    class OfModels:
        n_more = 0  # the most tokens that it has returned in excess of n_tokens

        def __init__(self, target, drafter, *, K, sampling):
            self.K, self.drafter = K, drafter
            self.models = {"target_model": (target, sampling), "draft_model": (drafter.model, drafter.sampling)}

        def generate(self, prompt, n_tokens, rng):
            new, is_step = [], "n_tokens" not in form.axes  # a function of one round is called until there are enough
            while len(new) < n_tokens:
                text = self.called([*prompt, *new], n_tokens, rng)
                if len(text) <= len(prompt) + len(new) if "text" in form.results else not text:
                    break
                new += text[len(prompt) + len(new) :] if "text" in form.results else text
                if not is_step:
                    break
            OfModels.n_more = max(OfModels.n_more, (len(new) - n_tokens) * (not is_step))
            return new[:n_tokens]

        def called(self, text, n_tokens, rng):
            values = {"prompt": np.array(text), "n_tokens": n_tokens, "K": self.K, "rng": Draws(rng), "V": 3, "B": 1,
                      "temperature": 1.0, "seed": 0, "tokenizer": Tokenizer(), **NEUTRAL}  # fmt: skip
            with borrowed(fn, rng, seeded="seed" in form.axes):
                given = [self.argument(role, axes, words, values) for role, axes, words in form.arguments]
                result = fn(*given)
                parts = dict(
                    zip(form.results, parts_of(tokens_of(result) if len(form.results) == 1 else result, form.results))
                )
            return [*map(int, np.ravel(parts.get("text", parts.get("tokens", ()))))]

        def argument(self, role, axes, words, values):
            if role == "prompt":
                value = values[role][None] if axes.startswith("B") else values[role]
                return value.tolist() if form.array is list or "list" in words else form.array(value)
            return self.model(role, words) if role in self.models else values[role]

        def model(self, role, words):
            model, sampling = self.models[role]

            def called(tokens, *others, n_last=None, **__):
                plain = on_cpu(tokens)
                text = [int(token) for token in plain.ravel()]
                if others and np.ndim(others[0]) == 1 and n_last is None:  # the text, and the draft tokens after it
                    text, n_last, others = [*text, *map(int, others[0])], len(others[0]) + 1, ()
                if "last" in words and n_last is None:  # as the models of this library: n_last may be positional
                    n_last = others[0] if others else 1
                rows = sampling(model(text, n_last=len(text)), text)[-n_last if n_last else None :]
                with np.errstate(divide="ignore"):
                    rows = rows if "probs" in words else np.log(rows)
                rows = rows[-1] if "next" in words and n_last is None else rows
                rows = rows[None] if plain.ndim == 2 else rows
                if form.array is list:
                    return rows.tolist()
                rows = form.array(rows)
                return with_logits(rows.to(tokens.device) if hasattr(rows, "to") and hasattr(tokens, "to") else rows)

            return called

    return OfModels


class Tokenizer:
    """In the place of a tokenizer: decodes to numbers, and has no end of a text."""

    eos_token_id = pad_token_id = bos_token_id = None

    def decode(self, tokens, **_):
        return " ".join(map(str, np.ravel(tokens)))


def tokens_of(result):
    """The tokens of a result: of a dict, an object or a tuple with more than them, by name or place."""
    for name in ("sequences", "tokens", "output_ids", "text", "output", "emitted", "generated"):
        if isinstance(result, dict) and name in result:
            return result[name]
        if not isinstance(result, (list, tuple, np.ndarray)) and hasattr(result, name) and not hasattr(result, "dtype"):
            return getattr(result, name)
    if (
        isinstance(result, tuple)
        and result
        and not isinstance(result[0], (int, np.integer))
        and np.ndim(on_cpu(result[0]) if hasattr(result[0], "cpu") else result[0]) >= 1
    ):
        return result[0]
    return result


class Rows(np.ndarray):
    """Rows of a model with an attribute `logits` that returns the same rows, as in transformers."""


def with_logits(rows):
    rows = rows.view(Rows) if isinstance(rows, np.ndarray) else rows
    rows.logits = rows
    return rows
