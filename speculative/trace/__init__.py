"""The trace: a record of each round of a generation, which can be saved, loaded and viewed without a model.

    trace = Trace(prompt, tokenizer.decode)         or Trace.of(generation, tokenizer.decode), after keep_probs=True
    trace.add(round)                                for each round, as it is generated
    trace.save("trace.jsonl"); Trace.load("trace.jsonl")
    round_line(trace.rounds[-1])                    a round in a terminal (terminal.py)
    page(trace)                                     one HTML file with everything (html.py)

After `show_tokens_as(tokenizer.decode)` a notebook displays `Round` and `Generation` as coloured text and tables
(notebook.py). record.py turns a round into a record.

The file is JSON lines. The first line is {"trace": 2, "prompt": [ids], "text": str, "about": {...}}. "about" contains
anything the author added: names of models, the acceptance rule, the seed. Its "alone", {"texts": [n], "seconds": [n]}
for the tokens that the target generated alone, is shown next to the rounds, as a race. Each further line is a round:

    "at"        number of tokens before the round, including the prompt
    "tokens" [n] ids that the round added; "texts" [n] the text of each (see below); "origins" [n] "accepted",
                "correction", "bonus" or "plain"
    "drafted"   [k] one object for each draft token, those of a tree in the order in which they are tested:
        "token", "text"
        "parent"    the index, in this list, of the draft token that this one follows; -1 for the text
        "decision"  "accepted"; "rejected"; or "dropped": not tested, after a rejection or on a branch that was not
                    taken, or after the end of the text; the rule block also tests the tokens after a rejection
        "u"         the uniform number that decided on it; null if the rule drew none for it
        "p", "q"    the probabilities of the token under target and draft; p of a younger sibling in a tree is its
                    probability under the residual after the rejection of its elder siblings
        "overlap"   sum_x min(p(x), q(x)): the probability that a draft token at this position is accepted
        "top"       [id, text, p, q] of the tokens with the largest max(p, q) above 0, and of the draft token
        "residual"  [id, text, probability]: the five largest of norm(max(0, p - q))
    "next"      the token after the accepted ones: "token", "text", "origin", "u", "p", "top" ([id, text, p]);
                null if the text ended before it
    "uniforms"  all numbers that the rule drew with rng.random(), in order; none with common random numbers
    "cache"     "reused", "dropped", "computed": the numbers of tokens that a target with a cache finds in it, removes
                from it and computes
    "seconds"   "draft", "target", "verify"

p, q, overlap, top and residual are present if the round kept its probabilities. A token may hold a part of a UTF-8
character. In "texts" and "drafted" its text is then empty, and the character belongs to the text of the token that
completes it; in "next", "top" and "residual", where tokens are decoded alone, it is U+FFFD.
"""

from .html import page
from .notebook import show_tokens_as
from .record import Trace
from .terminal import round_line

__all__ = ["Trace", "page", "round_line", "show_tokens_as"]
