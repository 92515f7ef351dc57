"""From rounds to records, which are plain dicts, and to a file and back.

A record is small, a round is not: of p and q, a row over the vocabulary each, a record keeps the entries of the draft
token and the few largest. The schema is in __init__.py.
"""

import json
from collections import Counter
from pathlib import Path

from ..theory.expected import estimate_alpha
from ..tree import is_chain, n_common
from .parts import flat, guesses_of, next_of
from .reading import read_trace


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
        self._tokens, self._held_back = list(self.prompt), []
        self._cached, self._n_slots = [], 0  # the text that a cache has, and how many slots it takes

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
        reused = min(n_common(self._cached, called), len(self._tokens) - 1)
        cache = {"reused": reused, "dropped": self._n_slots - reused, "computed": len(called) - reused}
        guesses = guesses_of(step, self.decode)
        held_back = list(self._held_back)  # changed here alone until all is known: `decode` may be interrupted
        give_texts(guesses, held_back, self.decode)
        record = {
            "at": len(self._tokens),
            "tokens": step.tokens.tolist(),
            "texts": [readable(token, held_back, self.decode) for token in step.tokens.tolist()],
            "origins": step.origins,
            "guesses": guesses,
            "next": next_of(step, self.decode),
            "uniforms": flat(step.uniforms),
            "cache": cache,
            "seconds": step.seconds,
        }  # fmt: skip
        if not is_chain(step.parents):  # of a tree, only the accepted branch is of use later
            called = [*self._tokens, *step.tokens[: step.n_accepted].tolist()]
        n_slots, tokens = len(self._tokens) + len(step.drafted), [*self._tokens, *step.tokens.tolist()]
        self._cached, self._n_slots, self._tokens, self._held_back = called, n_slots, tokens, held_back
        self.rounds += [record]  # no call since the line before, so nothing can come between them
        return record

    @property
    def summary(self):
        """Counts over the rounds (dict), with the rates of `Stats` and `theory.estimate_alpha`."""
        guesses = [guess for record in self.rounds for guess in record["guesses"]]
        accepted = sum(guess["decision"] == "accepted" for guess in guesses)
        rejected = sum(record["origins"][-1] == "correction" for record in self.rounds)
        n_tokens = sum(len(record["tokens"]) for record in self.rounds)
        drafted_at, accepted_at = Counter(), Counter()
        for record in self.rounds:
            places = places_of(record["guesses"])
            drafted_at.update(set(places))
            accepted_at.update(i for i, guess in zip(places, record["guesses"]) if guess["decision"] == "accepted")
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
        """Read a file written by `save`; a ValueError names the first line that is wrong. No rounds can be added."""
        header, records = read_trace(path)
        trace = cls(header["prompt"], lambda tokens: header["text"], header["about"])
        trace.rounds += records
        trace.decode = none_to_decode
        return trace


def none_to_decode(tokens):
    raise ValueError("a trace that was read from a file takes no more rounds: the file does not have the tokenizer")


def to_json(value):
    """A value of a trace as JSON; ValueError for NaN and infinity, which JSON does not have."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        raise ValueError(
            "expected finite numbers in a trace, got NaN or infinity: look at `about` and the rounds"
        ) from None


def places_of(guesses):
    """The place of each draft token after the text, from 0: in a tree, its depth."""
    places = []
    for i, guess in enumerate(guesses):
        parent = guess.get("parent", i - 1)
        places.append(places[parent] + 1 if parent >= 0 else 0)
    return places


def branches(guesses):
    """[(index, place)] of the draft tokens as a tree is printed: after each one all that follows it."""
    below, found = {}, []
    for i, guess in enumerate(guesses):
        below.setdefault(guess.get("parent", i - 1), []).append(i)
    left = [(i, 0) for i in reversed(below.get(-1, ()))]
    while left:
        i, place = left.pop()
        found.append((i, place))
        left += [(child, place + 1) for child in reversed(below.get(i, ()))]
    return found


def give_texts(guesses, held_back, decode):
    """Set the text of each draft token, given the tokens of an incomplete character on its path."""
    held = {-1: held_back}
    for i, guess in enumerate(guesses):
        held[i] = list(held[guess.get("parent", i - 1)])
        guess["text"] = readable(guess["token"], held[i], decode)


def readable(token, held_back, decode):
    """The text that this token completes; tokens that may be the beginning of a character are kept in `held_back`."""
    held_back.append(token)
    text = decode(held_back)
    if not text.endswith("\ufffd"):
        held_back.clear()
        return text
    for n in range(len(held_back) - 1, -1, -1):  # as few as possible are kept
        before, rest = decode(held_back[:n]) if n else "", decode(held_back[n:])
        if before + rest == text:
            break
    del held_back[:n]
    return before


def as_ids(tokens):
    """The ids themselves, as text."""
    return "".join(f" {token}" for token in tokens)
