"""From rounds to records, which are plain dicts, and to a file and back.

A record is small, a round is not: of p and q, a row over the vocabulary each, a record keeps the entries of the draft
token and the few largest. The schema is in __init__.py.
"""

import json
from pathlib import Path

from ..theory.expected import estimate_alpha
from ..tree import depth_of, is_chain, n_kept
from .parts import drafted_of, flat, next_of
from .terminal import round_line

VERSION = 2
HEADER = {"trace", "prompt", "text", "about"}
RECORD = {"at", "tokens", "texts", "origins", "drafted", "next", "uniforms", "cache", "seconds"}


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
        self._called = [], ()  # the tokens and parents of the last call, which a cache has

    @classmethod
    def of(cls, generation, decode=None, about=None):
        """The trace of a `Generation`; with p and q if it was generated with keep_probs=True."""
        trace = cls(generation.prompt, decode, about)
        for step in generation.rounds:
            trace.add(step)
        return trace

    def add(self, step):
        """Add a `Round`, and return its record (dict)."""
        drafted, held_back = drafted_of(step, self.decode), list(self._held_back)
        give_texts(drafted, held_back, self.decode)
        parents = [record["parent"] for record in drafted]
        called = [*self._tokens, *(record["token"] for record in drafted)], () if is_chain(parents) else parents
        reused = min(n_kept(*self._called, *called), len(self._tokens) - 1)
        new = step.tokens.tolist()
        record = {
            "at": len(self._tokens),
            "tokens": new,
            "texts": [readable(token, held_back, self.decode) for token in new],
            "origins": step.origins,
            "drafted": drafted,
            "next": next_of(step, self.decode),
            "uniforms": flat(step.uniforms),
            "cache": {
                "reused": reused,
                "dropped": len(self._called[0]) - reused,
                "computed": len(called[0]) - reused,
            },
            "seconds": step.seconds,
        }
        # all is known, and nothing is called from here on: an interruption leaves the whole round or nothing of it
        self._called, self._tokens, self._held_back = called, self._tokens + new, held_back
        self.rounds += [record]
        return record

    @property
    def summary(self):
        """Counts over the rounds (dict), with the rates of `Stats` and `theory.estimate_alpha`."""
        return summary_of(self.rounds)

    def save(self, path):
        """Write the trace as JSON lines."""
        header = {"trace": VERSION, "prompt": self.prompt, "text": self.text, "about": self.about}
        lines = [json.dumps(line, allow_nan=False) + "\n" for line in (header, *self.rounds)]
        Path(path).write_text("".join(lines), encoding="utf-8")

    @classmethod
    def load(cls, path):
        """Read a file written by `save`; a ValueError names the first line that is wrong. No rounds can be added."""
        number = 1
        with open(path, "rb") as file:  # lines end in \n alone, whatever a text contains
            try:
                header = parsed(next(file, b""), HEADER)
                if header["trace"] != VERSION:
                    raise ValueError("another version")
                trace = cls(header["prompt"], about=header["about"])
                trace.text = "".join(header["text"])
                for number, line in enumerate(file, 2):  # noqa: B007 (it is in the message)
                    record = parsed(line, RECORD)
                    round_line(record), summary_of([record]), "".join(record["texts"])  # it can be shown
                    trace.rounds.append(record)
            except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
                raise ValueError(
                    f"{path}, line {number}: expected a trace as Trace.save and main.py --trace write it; make it again"
                ) from error
        return trace


def summary_of(records):
    """See `Trace.summary`."""
    n_drafted = sum(len(record["drafted"]) for record in records)
    n_tokens = sum(len(record["tokens"]) for record in records)
    accepted = [sum(g["decision"] == "accepted" for g in record["drafted"]) for record in records]
    rejected = sum(record["origins"][-1] == "correction" for record in records)
    depths = [depth_of([g["parent"] for g in record["drafted"]]) for record in records]
    reached = [sum(depth > i for depth in depths) for i in range(max(depths, default=0))]
    return {
        "n_tokens": n_tokens,
        "target_calls": len(records),
        "tokens_per_target_call": n_tokens / len(records) if records else 0.0,
        "drafted": n_drafted,
        "accepted": sum(accepted),
        "acceptance": sum(accepted) / n_drafted if n_drafted else 0.0,
        "alpha": estimate_alpha(sum(accepted), rejected)[0] if sum(accepted) + rejected else None,
        "drafted_by_position": reached,
        "acceptance_by_position": [sum(n > i for n in accepted) / n_rounds for i, n_rounds in enumerate(reached)],
    }


def parsed(line, names):
    value = json.loads(line)
    json.dumps(value, allow_nan=False)  # 1e999 is read as infinity
    if not isinstance(value, dict) or not names <= value.keys():
        raise ValueError(f"expected an object with {sorted(names)}")
    return value


def give_texts(drafted, held_back, decode):
    """Set the text of each draft token, given the tokens of an incomplete character on its path."""
    held = {-1: held_back}
    for i, record in enumerate(drafted):
        held[i] = list(held[record["parent"]])
        record["text"] = readable(record["token"], held[i], decode)


def readable(token, held_back, decode):
    """The text that this token completes; tokens that may begin a character stay in `held_back`."""
    held_back.append(token)
    text = decode(held_back)
    if not text.endswith("\ufffd"):
        held_back.clear()
        return text
    for n in range(len(held_back) - 1, -1, -1):  # as few as possible stay
        before, rest = decode(held_back[:n]) if n else "", decode(held_back[n:])
        if before + rest == text:
            break
    del held_back[:n]
    return before


def as_ids(tokens):
    """The ids themselves, as text."""
    return "".join(f" {token}" for token in tokens)
