"""Functions of two models, as papers write the whole of speculative sampling, graded as samplers.

def speculative_sampling(prompt, target_model, draft_model, n_tokens, K): -> the text
"""

import re
from types import SimpleNamespace

import numpy as np

from ..drafters.model import ModelDrafter
from ..exact.enumeration import CannotEnumerate, exact_distribution
from ..exact.table import TableModel
from ..logits.probs import Sampling
from .cases import Passed
from .draws import Draws, borrowed, on_cpu
from .forms import NEUTRAL, OF_MODELS, parsed, parts_of
from .samplers import check_sampler
from .watch import asked, fail, told_error

CYCLE = TableModel(np.roll(np.eye(3), 1, axis=1))  # 0, 1, 2, 0, 1, ...


def check_function_of_models(fn, spec, array, seed):
    """The result of check_sampler; its messages are about a function."""
    form = form_of_models(fn, spec, array)
    made = sampler_of(fn, form)
    try:
        passed = check_sampler(made, seed=seed, with_models=True)
    except AssertionError as error:
        lines = str(error).replace("your sampler", "your function").splitlines()
        raise told_error(*lines, f"  (read as {form})") from error.__cause__
    passed = passed.replace("check_sampler", "check_function")
    if made.n_more:
        passed = passed.replace("as many tokens as asked for", f"up to {made.n_more} tokens more than asked for")
    return Passed(f"{passed}; read as {form}" + " (what else it returns is ignored)" * made.ignores)


def form_of_models(fn, spec, array):
    """The Form in which the text of a one-hot target is right, if there is one; of several the one with fewest calls.

    A draft from the wrong row is exact as well, but it is rejected.
    """
    whole = [spec] if "->" in spec else [f"{spec} -> {result}" for result in ("text", "tokens")]
    specs = [*whole, *(candidate.replace("prompt", "prompt[B,n]") for candidate in whole if "prompt[" not in candidate)]
    if "probs" not in spec:
        specs += [re.sub(r"(\w+_model)", r"probs \1", candidate) for candidate in specs]
    if "last" not in spec and "next" not in spec:
        specs += [
            re.sub(r"((?:probs )?\w+_model)", rf"{word} \1", candidate)
            for word in ("last", "next")
            for candidate in specs
        ]
    specs += [re.sub(r"\bprompt(?!\[)", "list prompt", candidate) for candidate in specs if "prompt[" not in candidate]
    first = None
    for kind in ("", "pair ", "triple "):  # what a model returns: its rows, (rows, cache), (loss, rows, cache)
        forms, tries = (
            [parsed(re.sub(r"((?:\w+ )?\w+_model)", rf"{kind}\1", candidate), array) for candidate in specs],
            [],
        )
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
                tries.append((round(share, 9), True, -len(calls), form, None))
            except (AssertionError, CannotEnumerate) as error:
                tries.append((0, False, -len(calls), form, error))
        best = max(tries, key=lambda candidate: candidate[:3])
        first = first or tries
        if best[0] > 0:
            return best[3]
    if all(isinstance(error, AssertionError) for *_, error in first):
        raise first[0][-1]
    return max(first, key=lambda candidate: candidate[:3])[3]


def sampler_of(fn, form):
    """A class of samplers whose `generate` calls the function with models that include the sampling."""

    class OfModels:
        n_more = 0  # the most tokens that it has returned in excess of n_tokens
        ignores = False  # whether it has returned something other than tokens
        of_one_row = any("next" in words for *_, words in form.arguments)

        def __init__(self, target, drafter, *, K, sampling):
            self.K, self.drafter = K, drafter
            self.models = {"target_model": (target, sampling), "draft_model": (drafter.model, drafter.sampling)}

        def generate(self, prompt, n_tokens, rng):
            new, is_step = [], "n_tokens" not in form.axes  # a function of one round is called until there are enough
            while len(new) < n_tokens:
                text = self.called([*prompt, *new], n_tokens, rng)
                new += (added := text[len(prompt) + len(new) :] if "text" in form.results else text)
                if not is_step:
                    break
                if not added:
                    fail(f"a round adds a token, yours none; a function of a whole text needs n_tokens: {OF_MODELS!r}")
            OfModels.n_more = max(OfModels.n_more, (len(new) - n_tokens) * (not is_step))
            return new[:n_tokens]

        def called(self, text, n_tokens, rng):
            values = {"prompt": np.array(text), "n_tokens": n_tokens, "K": self.K, "rng": Draws(rng), "V": 3, "B": 1,
                      "temperature": 1.0, "seed": 0, **NEUTRAL}  # fmt: skip
            with borrowed(fn, rng, seeded="seed" in form.axes):
                inputs = [self.argument(role, axes, words, values) for role, axes, words in form.arguments]
                result = fn(*inputs)
                tokens = tokens_of(result) if len(form.results) == 1 else result
                OfModels.ignores |= tokens is not result
                parts = dict(zip(form.results, parts_of(tokens, form.results)))
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
                rows = with_logits(rows.to(tokens.device) if hasattr(rows, "to") and hasattr(tokens, "to") else rows)
                return (rows, None) if "pair" in words else (None, rows, None) if "triple" in words else rows

            called.eval, called.to, called.device = lambda: called, lambda *_, **__: called, "cpu"
            called.config = SimpleNamespace(vocab_size=3, eos_token_id=None)
            return called

    return OfModels


def tokens_of(result):
    """The tokens of a result: of a dict, an object or a tuple with more than them, by name or place."""
    named = (
        result if isinstance(result, dict) else getattr(result, "_asdict", lambda: getattr(result, "__dict__", {}))()
    )
    names = "sequences", "tokens", "output_ids", "text", "output", "emitted", "generated"
    if key := next((name for name in names if name in named), None):
        return named[key]
    several = isinstance(result, tuple) and result and not isinstance(result[0], (int, np.integer))
    return result[0] if several and np.ndim(on_cpu(result[0])) >= 1 else result


class Rows(np.ndarray):
    """Rows of a model with an attribute `logits` that returns the same rows, as in transformers."""


def with_logits(rows):
    rows = rows.view(Rows) if isinstance(rows, np.ndarray) else rows
    rows.logits = rows
    return rows
