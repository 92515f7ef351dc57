"""From rounds to records, which are plain dicts, and to a file and back.

A record is small, but a round is not: p and q are rows over the vocabulary, of which a record keeps only the entries of
the draft token and the few largest. The schema is in __init__.py.
"""

import json
from pathlib import Path

import numpy as np

from ..drafters.ranked import top
from ..generation import Stats
from ..logits.probs import residual
from ..theory.expected import estimate_alpha
from ..tree import depth_of, is_chain, n_kept
from .terminal import round_line

VERSION = 2
HEADER = {"trace", "prompt", "text", "about"}
N_TOP, N_RESIDUAL = 8, 5  # tokens of p and q, and of the residual, in a record
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
        self.decode, self.about = decode or as_ids, dict(about or {})
        self.rounds = []
        self.prompt = [int(token) for token in prompt]
        self.text = self.decode(self.prompt)
        self._tokens, self._held_back = list(self.prompt), []
        self._called = [], ()  # the tokens and parents of the last call, which a cache contains

    @classmethod
    def of(cls, generation, decode=None, about=None):
        """The trace of a `Generation`; with p and q if it was generated with keep_probs=True."""
        trace = cls(generation.prompt, decode, about)
        for r in generation.rounds:
            trace.add(r)
        return trace

    def add(self, round_):
        """Add a `Round`, and return its record (dict)."""
        drafted, held_back = drafted_of(round_, self.decode), list(self._held_back)
        give_texts(drafted, held_back, self.decode)
        parents = [record["parent"] for record in drafted]
        called = [*self._tokens, *(record["token"] for record in drafted)], () if is_chain(parents) else parents
        reused = min(n_kept(*self._called, *called), len(self._tokens) - 1)
        new = round_.tokens.tolist()
        record = {
            "at": len(self._tokens),
            "tokens": new,
            "texts": [readable(token, held_back, self.decode) for token in new],
            "origins": round_.origins,
            "drafted": drafted,
            "next": next_of(round_, self.decode),
            "uniforms": flat(round_.uniforms),
            "cache": {
                "reused": reused,
                "dropped": len(self._called[0]) - reused,
                "computed": len(called[0]) - reused,
            },
            "seconds": round_.seconds,
        }
        # all is known and nothing is called from here on, so an interruption leaves the whole round or nothing of it
        self._called, self._held_back = called, held_back
        self._tokens = self._tokens + new
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
        """Read a file written by `save`. A ValueError names the first line that is wrong. No rounds can be added."""
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
                    round_line(record), summary_of([record]), "".join(record["texts"])  # check that it can be shown
                    trace.rounds.append(record)
            except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
                raise ValueError(
                    f"{path}, line {number}: expected a trace as Trace.save writes it; make it again"
                ) from error
        return trace


def summary_of(records):
    """See `Trace.summary`."""
    rows = []
    for record in records:
        depth = depth_of([draft["parent"] for draft in record["drafted"]])
        n_accepted = sum(draft["decision"] == "accepted" for draft in record["drafted"])
        is_rejected = record["origins"][-1] == "correction"
        rows.append((len(record["tokens"]), len(record["drafted"]), depth, n_accepted, is_rejected))
    stats = Stats.of(rows)
    names = ("n_tokens", "target_calls", "tokens_per_target_call", "drafted", "accepted", "acceptance")
    return {
        **{name: getattr(stats, name) for name in names},
        "alpha": estimate_alpha(stats.accepted, stats.rejected)[0] if stats.accepted + stats.rejected else None,
        "drafted_by_position": stats.drafted_by_position,
        "acceptance_by_position": stats.acceptance_by_position,
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


# ------------------------------------------------------------------------------------------------ the parts of a record


def decisions(round_):
    """{draft token: "accepted", "rejected" or "dropped"} of a `Round`, in the order of the tests.

    That is, position by position, the siblings up to the accepted one, then the untested rest; in a chain, draft order.
    """
    reached = [-1, *round_.nodes]  # the text, and each accepted draft token; the nodes after these were tested
    if len(round_.tokens) == round_.n_accepted:
        reached.pop()  # but the text ended with the last of them
    tested = {}
    for node, accepted in zip(reached, [*round_.nodes, None]):
        for child in round_.draft.children(node):
            tested[child] = "accepted" if child == accepted else "rejected"
            if child == accepted:
                break
    return tested | {node: "dropped" for node in range(len(round_.drafted)) if node not in tested}


def drafted_of(round_, decode):
    """The records of the draft tokens of a `Round`, without their texts."""
    decided = decisions(round_)
    deciding, _ = uniforms_of(round_)
    above = {child: node for node in range(-1, len(round_.drafted)) for child in round_.draft.children(node)}
    index = {node: i for i, node in enumerate([-1, *decided], -1)}
    rows = rows_of(round_) if round_.target_probs is not None else {}
    records = []
    for node, decision in decided.items():
        token = int(round_.drafted[node])
        record = {
            "token": token, "text": "", "parent": index[above[node]], "decision": decision, "u": deciding.get(node),
        }  # fmt: skip
        if rows:
            p, q = rows[node]
            likely, rest = largest(np.maximum(p, q), N_TOP, token), residual(p, q)
            record |= {
                "p": float(p[token]), "q": float(q[token]), "overlap": float(np.minimum(p, q).sum()),
                "top": [[x, decode([x]), float(p[x]), float(q[x])] for x in likely],
                "residual": [[x, decode([x]), float(rest[x])] for x in largest(rest, N_RESIDUAL)],
            }  # fmt: skip
        records.append(record)
    return records


def rows_of(round_):
    """{draft token: (p, q)}: q is the row that it was drawn from, p the row against which it is tested.

    For the first child of a node p is the target's distribution; for each further one it is the residual after the
    rejection of its elder siblings.
    """
    rows = {}
    for above in range(-1, len(round_.drafted)):
        p = round_.target_probs[above + 1]
        for child in round_.draft.children(above):
            rows[child] = p, round_.draft_probs[child]
            p = residual(*rows[child])
    return rows


def next_of(round_, decode):
    """The record of the token after the accepted ones, or None."""
    if len(round_.tokens) == round_.n_accepted:
        return None
    token = int(round_.tokens[-1])
    record = {"token": token, "text": decode([token]), "origin": round_.origins[-1], "u": uniforms_of(round_)[1]}
    if round_.target_probs is not None:
        p = round_.target_probs[[-1, *round_.nodes][-1] + 1]
        record |= {"p": float(p[token]), "top": [[x, decode([x]), float(p[x])] for x in largest(p, N_TOP, token)]}
    return record


def uniforms_of(round_):
    """({draft token: the number that decided on it}, the number that drew the last token or None).

    The verifier declares which these are (see `Verifier`): one for each tested draft token, for each draft token, or
    for each position; then one for the token that follows. For a verifier that declares nothing, no number is shown.
    """
    numbers, decided = flat(round_.uniforms), decisions(round_)
    tested = [node for node, decision in decided.items() if decision != "dropped"]
    order = {"tested": tested, "drafted": range(len(round_.drafted)), "positions": round_.nodes}
    if round_.draws not in order or not numbers:
        return {}, None
    nodes = list(order[round_.draws])
    return dict(zip(nodes, numbers)), numbers[len(nodes)] if len(numbers) > len(nodes) else None


def flat(uniforms):
    """The numbers [n] as floats; a rule may draw several at once."""
    return [float(number) for drawn in uniforms for number in np.ravel(drawn)]


def largest(values, n, also=None):
    """The indices of the n largest positive values [n_vocab], largest first, and the index `also` if it is missing."""
    indices = [i for i in top(values[None], n)[0].tolist() if values[i] > 0]
    return indices if also is None or also in indices else [*indices, also]
