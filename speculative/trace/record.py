"""From rounds to records, which are plain dicts, and to a file and back.

A record is small, a round is not: of p and q, a row over the vocabulary each, a record keeps the entries of the draft
token and the few largest. The schema is in __init__.py.
Next: reading.py
"""

import json
from collections import Counter
from pathlib import Path

import numpy as np

from ..probs import residual
from ..theory import estimate_alpha
from ..timing import n_common
from .reading import read_trace

N_TOP, N_RESIDUAL = 8, 5


class Trace:
    """The records of a generation.

    Parameters
    ----------
    prompt : sequence of int
    decode : callable, optional
        From a list of token ids to text (str); without it the ids are shown.
    about : dict, optional
        Anything else worth keeping, as JSON values.

    Attributes
    ----------
    rounds : list of dict
    """

    def __init__(self, prompt, decode=None, about=None):
        self.decode, self.about, self.rounds = decode or as_ids, dict(about or {}), []
        self.prompt = [int(token) for token in prompt]
        self.text = self.decode(self.prompt)
        self._tokens, self._called, self._held_back = list(self.prompt), [], []

    @classmethod
    def of(cls, generation, decode=None, about=None):
        """The trace of a `Generation`; with p and q if it was generated with keep_probs=True."""
        trace = cls(generation.prompt, decode, about)
        for step in generation.rounds:
            trace.add(step)
        return trace

    def add(self, step):
        """Add a `Round`, and return its record (dict)."""
        called = [*self._tokens, *step.drafted.tolist()]
        reused = min(n_common(self._called, called), len(called) - len(step.drafted) - 1)
        cache = {"reused": reused, "dropped": len(self._called) - reused, "computed": len(called) - reused}
        guesses, held_back = guesses_of(step, self.decode), list(self._held_back)
        for guess in guesses:
            guess["text"] = readable(guess["token"], held_back, self.decode)
        self.rounds.append({
            "at": len(self._tokens),
            "tokens": step.tokens.tolist(),
            "texts": [readable(token, self._held_back, self.decode) for token in step.tokens.tolist()],
            "origins": step.origins,
            "guesses": guesses,
            "next": next_of(step, self.decode),
            "uniforms": flat(step.uniforms),
            "cache": cache,
            "seconds": step.seconds,
        })  # fmt: skip
        self._tokens, self._called = [*self._tokens, *step.tokens.tolist()], called
        return self.rounds[-1]

    @property
    def summary(self):
        """Counts over the rounds (dict), with the rates of `Stats` and `theory.estimate_alpha`."""
        guesses = [guess for record in self.rounds for guess in record["guesses"]]
        accepted = sum(guess["decision"] == "accepted" for guess in guesses)
        rejected = sum(guess["decision"] == "rejected" for guess in guesses)
        n_tokens = sum(len(record["tokens"]) for record in self.rounds)
        drafted_at, accepted_at = Counter(), Counter()
        for record in self.rounds:
            for i, guess in enumerate(record["guesses"]):
                drafted_at[i] += 1
                accepted_at[i] += guess["decision"] == "accepted"
        return {
            "n_tokens": n_tokens,
            "target_calls": len(self.rounds),
            "tokens_per_target_call": n_tokens / len(self.rounds) if self.rounds else 0.0,
            "drafted": len(guesses),
            "accepted": accepted,
            "acceptance": accepted / len(guesses) if guesses else 0.0,
            "alpha": estimate_alpha(accepted, rejected)[0] if accepted + rejected else None,
            "acceptance_by_position": [accepted_at[i] / drafted_at[i] for i in range(len(drafted_at))],
        }

    def save(self, path):
        """Write the trace as JSON lines."""
        header = {"trace": 1, "prompt": self.prompt, "text": self.text, "about": self.about}
        lines = [to_json(line) + "\n" for line in (header, *self.rounds)]
        Path(path).write_text("".join(lines), encoding="utf-8")

    @classmethod
    def load(cls, path):
        """Read a file written by `save`; a ValueError names the first line that is wrong."""
        header, records = read_trace(path)
        trace = cls(header["prompt"], lambda tokens: header["text"], header["about"])
        trace.rounds += records
        return trace


def to_json(value):
    """A value of a trace as JSON; ValueError for NaN and infinity, which JSON does not have."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        raise ValueError(
            "expected finite numbers in a trace, got NaN or infinity: look at `about` and the rounds"
        ) from None


# ------------------------------------------------------------------------------------------------ parts of a record


def guesses_of(step, decode):
    """The records of the draft tokens of a `Round`, without their texts."""
    ends_early, guesses = len(step.tokens) == step.n_accepted, []
    of_guesses, _ = uniforms_of(step)
    for i, token in enumerate(step.drafted.tolist()):
        is_rejected = i == step.n_accepted and not ends_early
        decision = "accepted" if i < step.n_accepted else "rejected" if is_rejected else "dropped"
        guess = {"token": token, "text": "", "decision": decision, "u": of_guesses[i]}
        if step.target_probs is not None:
            p, q = step.target_probs[i], step.draft_probs[i]
            likely = largest(np.maximum(p, q), N_TOP, token)
            after = residual(p, q)
            guess |= {
                "p": float(p[token]), "q": float(q[token]), "overlap": float(np.minimum(p, q).sum()),
                "top": [[x, decode([x]), float(p[x]), float(q[x])] for x in likely],
                "residual": [[x, decode([x]), float(after[x])] for x in largest(after, N_RESIDUAL)],
            }  # fmt: skip
        guesses.append(guess)
    return guesses


def next_of(step, decode):
    """The record of the token after the accepted ones, or None."""
    if len(step.tokens) == step.n_accepted:
        return None
    token = int(step.tokens[-1])
    record = {"token": token, "text": decode([token]), "origin": step.origins[-1], "u": uniforms_of(step)[1]}
    if step.target_probs is not None:
        p = step.target_probs[step.n_accepted]
        record |= {"p": float(p[token]), "top": [[x, decode([x]), float(p[x])] for x in largest(p, N_TOP, token)]}
    return record


def uniforms_of(step):
    """([k] the number that decided on each draft token or None, the number that drew the last token or None).

    The rules of this library draw one number for each draft token that they test: up to the first rejection
    (rejection), or all of them (block). Most draw one more for the token that follows. If the count fits neither case,
    the second result is None.
    """
    numbers, k = flat(step.uniforms), len(step.drafted)
    n_tested = min(step.n_accepted + 1, k)
    n_decided = len(numbers) - 1 if len(numbers) in (n_tested + 1, k + 1) else min(len(numbers), n_tested)
    return [numbers[i] if i < n_decided else None for i in range(k)], numbers[-1] if n_decided < len(numbers) else None


def flat(uniforms):
    """The numbers [n] as floats; a rule may draw several at once."""
    return [float(number) for drawn in uniforms for number in np.ravel(drawn)]


def largest(values, n, also=None):
    """The indices of the n largest positive values [n_vocab], largest first, and the index `also` if it is missing."""
    n = min(n, len(values))
    some = np.argpartition(-values, n - 1)[:n]
    some = some[values[some] > 0]
    found = some[np.argsort(-values[some], kind="stable")].tolist()
    return found if also is None or also in found else [*found, also]


def readable(token, held_back, decode):
    """The text that this token completes; tokens of an incomplete character are kept in `held_back`."""
    held_back.append(token)
    text = decode(held_back)
    if text.endswith("\ufffd") and len(held_back) < 4:  # a character has at most four bytes
        return ""
    held_back.clear()
    return text


def as_ids(tokens):
    """The ids themselves, as text."""
    return "".join(f" {token}" for token in tokens)
