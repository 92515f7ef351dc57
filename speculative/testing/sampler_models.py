"""What the grader of samplers passes: a target that counts its calls and enforces its n_ctx, and drafters."""

import operator

import numpy as np

from ..drafters.model import ModelDrafter
from ..interfaces import Draft
from .table import TableModel
from .watch import fail

PROMPT = [2, 1]
MOST_CALLS = 400  # of target and drafter together, for at most 10 tokens


class Target:
    """A language model on a TableModel that enforces its n_ctx and detects endless loops."""

    n_ctx = 12

    def __init__(self, table, calls):
        self.table, self.n_vocab = table, table.n_vocab
        self.calls = calls  # [number], of it and its drafters, since the last call of generate

    def count(self):
        self.calls[0] += 1
        if self.calls[0] > MOST_CALLS:
            fail(
                f"your sampler does not return: an endless loop? After {MOST_CALLS} calls of target and drafter there "
                "is no result; each round adds at least one token, also if nothing is drafted (k = 0)"
            )

    def __call__(self, tokens, n_last=1):
        self.count()
        tokens = [operator.index(token) for token in tokens]
        if len(tokens) > self.n_ctx:
            fail(
                f"your sampler asks the target about {len(tokens)} tokens, and its n_ctx is {self.n_ctx}: draft at "
                "most min(K, remaining - 1, n_ctx - len(tokens) - 1)"
            )
        if not 1 <= n_last <= len(tokens):
            fail(f"your sampler asks the target for the last n_last = {n_last} rows of {len(tokens)} tokens")
        if not all(0 <= token < self.n_vocab for token in tokens):
            fail(f"your sampler asks the target about tokens that it does not have: {tokens}, n_vocab = {self.n_vocab}")
        return self.table(tokens, n_last)


class ShortDrafter:
    """Drafts with a model, but proposes only one token of every K, and none after token 0."""

    def __init__(self, model):
        self.drafter = ModelDrafter(model)

    def propose(self, tokens, K, rng):
        draft = self.drafter.propose(tokens, min(K, 1 if tokens[-1] else 0), rng)
        for array in (draft.tokens, draft.probs):
            array.setflags(write=False)
        return Draft(draft.tokens, draft.probs)


def models(rng):
    """Target and draft model. After the prompt two of three tokens are more probable for the target than for the draft:
    then the residual has two tokens, and mistakes can be told apart."""
    calls = [0]
    tables = rng.dirichlet(np.ones(3), size=(2, 3, 3))
    tables[:, 2, 1] = rng.dirichlet([30, 20, 10]), rng.dirichlet([10, 10, 40])
    return (Target(TableModel(table, n_ctx=Target.n_ctx), calls) for table in tables)
