"""The messages that live.html shows: a text as it is written, and the costs of drafting on this machine.

`answer` is a generator, so that whoever runs it can stop between two rounds: the server of `main.py explore`, or
Pyodide in a browser (live.js). It says dicts of JSON values, with a "kind":

    "drafted"   "texts" of the draft tokens before they are checked; for a tree, of the first path
    "round"     "texts", "origins", and the "rejected" text, of a round
    "note"      "words" about what is happening
    "end"       "page", the trace as HTML
    "costs"     a row of the table, "cells"
    "verdict"   "words": whether drafting pays here, and why
"""

import json
import sys
from pathlib import Path
from statistics import median, median_low

from ..trace import Trace, page

LENGTHS = (0, 1, 2, 3, 4)  # of the drafts that `costs` compares


def live_page(**settings):
    """live.html (str) with the first values of its form; `served` says that a Python process answers the page."""
    embedded = json.dumps(settings).replace("<", "\\u003c")
    return Path(__file__).with_name("live.html").read_text(encoding="utf-8").replace("{{settings}}", embedded)


def answer(say, make, request):
    """Generate the text, or measure the costs, that a request asks for; yields after each round.

    Parameters
    ----------
    say : callable
        Receives each message (dict).
    make : callable
        make(K=, ...) with the other values of the form -> (sampler, rounds, prompt, decode, about): the rounds of the
        sampler, not begun; the prompt's tokens; tokens -> text; and `Trace.about`. K = 0 is the target alone.
    request : dict
        The values of the form, and "costs": whether to measure instead.
    """
    return (costs if request.pop("costs", False) else text)(say, make, request)


class Announced:
    """A drafter that says what it proposes."""

    def __init__(self, drafter, say):
        self.drafter, self.say = drafter, say

    def __getattr__(self, name):
        return getattr(self.drafter, name)

    def propose(self, tokens, K, rng):
        draft = self.drafter.propose(tokens, K, rng)
        self.say(draft)
        return draft


def text(say, make, request):
    sampler, rounds, prompt, decode, about = make(**request)
    trace = Trace(prompt, decode, about)

    def show(draft):
        node, path = -1, []
        while children := draft.children(node):
            node = children[0]
            path.append(int(draft.tokens[node]))
        say({"kind": "drafted", "texts": [decode([token]) for token in path]})

    if request["K"]:
        sampler.drafter = Announced(sampler.drafter, show)
    for r in rounds:
        record = trace.add(r)
        rejected = "".join(draft["text"] for draft in record["drafted"] if draft["decision"] == "rejected")
        say({"kind": "round", "texts": record["texts"], "origins": record["origins"], "rejected": rejected})
        yield
    if request["K"]:
        say({"kind": "note", "words": "now the target alone, to compare \u2026"})
        alone = Trace(prompt, decode)
        for r in make(**request | {"K": 0})[1]:
            alone.add(r)
            yield
        texts = [text for record in alone.rounds for text in record["texts"]]
        trace.about["alone"] = {"texts": texts, "seconds": [sum(r["seconds"].values()) for r in alone.rounds]}
    say({"kind": "end", "page": page(trace)})


def costs(say, make, request):
    """Say a row for each draft length, whether drafting pays, and why; V(n) is the cost of a pass over n tokens.

    An `Experiment` generates whole texts; this yields after each round, as a page may ask for a text in the meantime.
    """
    per_token, passes = {}, {}
    for K in LENGTHS if isinstance(request["K"], int) else (0, request["K"]):
        rounds = []
        for r in make(**request | {"K": K})[1]:
            rounds.append(r.without_probs())
            yield
        rounds = rounds[1:]  # the first includes the prompt
        if not rounds:
            raise ValueError("the text ends in its first round: ask for more tokens")
        n_tokens = sum(len(r.tokens) for r in rounds)
        n = median_low(len(r.drafted) for r in rounds) + 1
        per_token[K] = 1000 * sum(sum(r.seconds.values()) for r in rounds) / n_tokens
        passes.setdefault(n, median(r.seconds["target"] for r in rounds if len(r.drafted) == n - 1))
        gain, v = per_token[0] / per_token[K], passes[n] / passes[1]
        numbers = f"{per_token[K]:.1f}", f"{n_tokens / len(rounds):.2f}", f"{gain:.2f}×", f"V({n}) = {v:.2f}"
        say({"kind": "costs", "cells": [str(K), *numbers]})
    best, n = min(per_token, key=per_token.get), max(passes)
    gain, v = per_token[0] / per_token[best], passes[n] / passes[1]
    words = f"K = {best} pays: it is {gain:.2f} times as fast." if best else "Here the target is fastest alone."
    words += f" A pass over {n} tokens takes {v:.1f} times as long as over one, so checking a token costs "
    words += "far less than generating one." if v < (n + 1) / 2 else "about as much as generating one."
    if sys.platform == "emscripten":
        words += " NumPy has no BLAS in a browser, so the time goes into computing, not into reading the weights."
    say({"kind": "verdict", "words": words})
