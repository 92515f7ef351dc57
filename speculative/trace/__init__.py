"""The trace: what happened in each round of a generation, to be kept, read back and looked at without a model.

    trace = Trace(prompt, tokenizer.decode)         or Trace.of(generation, tokenizer.decode), after keep_probs=True
    trace.add(round)                                for each round, as it comes
    trace.save("trace.jsonl"); Trace.load("trace.jsonl")
    round_line(trace.rounds[-1])                    a round in a terminal (terminal.py)
    page(trace)                                     one HTML file with all of it (html.py)

In a notebook `Round` and `Generation` show themselves (notebook.py), as text after `show_tokens_as(tokenizer.decode)`.

The file is JSON lines. The first is {"trace": 1, "prompt": [ids], "text": str, "about": {...}}, where "about" is what
the maker had to say: names of models, the rule, the seed. Each further line is a round:

    "at"        tokens before the round, those of the prompt included
    "tokens"    [n] ids that it added; "texts" [n] what each makes readable (see below); "origins" [n] "accepted",
                "correction", "bonus" or "plain"
    "guesses"   [k] one for each drafted token:
        "token", "text"
        "decision"  "accepted"; "rejected"; "dropped", behind a rejection or behind the end of the text
        "u"         the uniform number that decided on it; null where the rule drew none for it
        "p", "q"    probabilities that target and draft gave the token
        "overlap"   sum_x min(p(x), q(x)): the probability that a guess at this place is accepted
        "top"       [id, text, p, q] of the tokens with the largest max(p, q) above 0, and the guess
        "residual"  [id, text, probability]: the first five of norm(max(0, p - q))
    "next"      the token of the target's own behind the accepted ones: "token", "text", "origin", "u", "p", "top"
                ([id, text, p]); null where the text ended before it
    "uniforms"  all numbers that the rule drew with rng.random(), in order; with shared noise there are none
    "cache"     "reused", "dropped", "computed": what a target that keeps its last call's tokens in a cache found
                there, cut off, and ran
    "seconds"   "draft", "target", "verify"

p, q, overlap, top and residual are there if the round had its probabilities. A token may hold a part of a character
in UTF-8: its text is then empty, and the character is the text of the token that completes it.
"""

from .html import page
from .notebook import show_tokens_as
from .record import Trace
from .terminal import round_line

__all__ = ["Trace", "page", "round_line", "show_tokens_as"]
