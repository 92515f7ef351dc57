"""Language models whose answer is for other tokens than they were given."""

from .verifiers import CONSTRUCTED


class NotRolledBack:
    """A model with a cache: it appends the new tokens and never removes any."""

    n_forgotten = 0

    def __init__(self, model):
        self.model, self.n_vocab, self.n_ctx = model, model.n_vocab, model.n_ctx
        self.seen = []

    def __call__(self, tokens, n_last=1):
        tokens = [int(token) for token in tokens]
        kept = self.seen[: len(self.seen) - self.n_forgotten]
        self.seen = [*kept, *tokens[-n_last:]] if kept else tokens
        return self.model(self.seen, n_last)


class RolledBackByOne(NotRolledBack):
    """Removes one token before each call, however many were rejected."""

    n_forgotten = 1


class RowsOneOff:
    """Returns the rows that end one token earlier, if there are any."""

    def __init__(self, model):
        self.model, self.n_vocab, self.n_ctx = model, model.n_vocab, model.n_ctx

    def __call__(self, tokens, n_last=1):
        if len(tokens) <= n_last:
            return self.model(tokens, n_last)
        return self.model(tokens, n_last + 1)[:-1]


EXHIBITS = {  # name: (class around a model, what is wrong, where it was seen, how the grader's message begins)
    "cache not rolled back": (
        NotRolledBack,
        "Keys and values of rejected draft tokens stay in the cache, and later rows attend to them.",
        "https://github.com/ml-explore/mlx-lm/pull/1109 (for caches that cannot be trimmed, before it)",
        "your model's answer depends on what it was asked before",
    ),
    "cache rolled back by a fixed number": (
        RolledBackByOne,
        "The cache forgets one token, however many were rejected.",
        CONSTRUCTED,
        "your model's answer depends on what it was asked before",
    ),
    "rows one off": (
        RowsOneOff,
        "Row j of a pass predicts token j + 1; these rows begin one too early.",
        CONSTRUCTED,
        "your rows are one off",
    ),
}
