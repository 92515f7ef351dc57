"""The drafters and rules of the command line. Options, help, tables and tests are derived from these two registries.

To add a drafter, write its file and add a line here. `build` makes a `Setting` of a `Context`, see builders.py.
Next: options.py
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import speculative
from speculative.interfaces import exactness_of, takes_trees

from . import builders


@dataclass(frozen=True)
class DrafterKind:
    """A value of --drafter."""

    name: str
    build: Callable  # (Context) -> Setting
    help: str  # where its draft tokens come from
    draws: bool = True  # from a model's probabilities, which calibrate and --K confidence need
    trees: bool = False  # it drafts trees, also without --tree
    grows: bool = False  # its trees have no other shape than a number of nodes
    variants: Callable = None  # (Context) -> dict name -> Setting: its rows in alpha_table, where it has several
    needs: str = ""  # what a target may lack; a table of all drafters leaves this kind out where it does
    suits: Callable = lambda context: True  # whether the target has it

    def rows(self, context):
        """dict name -> Setting: the rows of this kind in alpha_table."""
        return self.variants(context) if self.variants else {self.name.replace("_", " "): self.build(context)}


@dataclass(frozen=True)
class Rule:
    """A value of --verifier: a verifier, and the random source that it is used with."""

    name: str
    verifier: Callable
    help: str
    noise: Callable = np.random.default_rng  # seed -> `rng`

    @property
    def exactness(self):
        return exactness_of(self.verifier)

    @property
    def trees(self):
        """Whether it takes drafts that branch."""
        return takes_trees(self.verifier)

    @property
    def one_text(self):
        """Whether one seed gives one text, with and without a draft, at any temperature."""
        return self.noise is speculative.Gumbel


DRAFTERS = {
    kind.name: kind
    for kind in (
        DrafterKind("model", builders.model, "another model, --draft_model_size", variants=builders.models),
        DrafterKind("ngram", builders.ngram, "counts of a text, --corpus", variants=builders.ngrams),
        DrafterKind("prompt_lookup", builders.prompt_lookup, "copies of the text so far", draws=False),
        DrafterKind("suffix", builders.suffix, "copies of the text so far and of --corpus", draws=False, grows=True),
        DrafterKind(
            "recycling", builders.recycling, "a tree of what the target said after the same tokens before",
            draws=False, trees=True, variants=lambda context: {},
        ),
        DrafterKind(
            "early_exit", builders.early_exit, "the target's own first layers", variants=builders.early_exits,
            needs="layers after those of --exit_layer", suits=builders.has_layers,
        ),
        DrafterKind(
            "heads", builders.heads, "a tree from heads on the target's last hidden state (tiny-target has some)",
            draws=False, trees=True, variants=lambda context: {}, needs="heads",
            suits=builders.has_heads,
        ),
    )
}  # fmt: skip
RULES = {
    rule.name: rule
    for rule in (
        Rule("rejection", speculative.rejection, "rejection sampling: accepts with probability min(1, p / q)"),
        Rule(
            "block", speculative.block, "decides on the whole draft at once, on average accepts no less than rejection"
        ),
        Rule("exact_match", speculative.exact_match, "accepts a token that equals the target's own draw"),
        Rule(
            "gumbel", speculative.exact_match,
            "exact_match on common random numbers: one seed, one text, draft or not",
            noise=speculative.Gumbel,
        ),
        Rule("lenient", speculative.Lenient(), "LOSSY: rejection with the draft's probabilities made smaller"),
        Rule("typical", speculative.Typical(), "LOSSY: accepts every token that is probable enough for the target"),
    )
}  # fmt: skip


def fitting(kinds, context):
    """Of all kinds of drafters, those that suit the target; of some, all."""
    return [kind for kind in kinds if DRAFTERS[kind].suits(context)] if list(kinds) == list(DRAFTERS) else list(kinds)
