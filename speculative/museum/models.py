"""Language models that answer for other tokens than they were asked about."""


class NotRolledBack:
    """A model with a cache: it appends what is new to what it has seen, and takes nothing back."""

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
    """Takes one token back before each call, however many were rejected."""

    n_forgotten = 1


class RowsOneOff:
    """Returns the rows that end one token earlier, as far as there are any."""

    def __init__(self, model):
        self.model, self.n_vocab, self.n_ctx = model, model.n_vocab, model.n_ctx

    def __call__(self, tokens, n_last=1):
        if len(tokens) <= n_last:
            return self.model(tokens, n_last)
        return self.model(tokens, n_last + 1)[:-1]


EXHIBITS = {  # name: (class around a model, what is wrong, where it was seen, how the grader's message begins)
    "cache not rolled back": (
        NotRolledBack,
        "Keys and values of rejected guesses stay in the cache, and later rows attend to them.",
        "vLLM#5765 and #9730; the many shapes of romsto#1 and #4",
        "your model's answer depends on what it was asked before",
    ),
    "cache rolled back by a fixed number": (
        RolledBackByOne,
        "The cache forgets one token, however many were rejected.",
        "mlxcel#994 (there two too many)",
        "your model's answer depends on what it was asked before",
    ),
    "rows one off": (
        RowsOneOff,
        "Row j of a pass predicts token j + 1; these rows begin one too early.",
        "gpt-fast#107, HF PR#28166",
        "your rows are one off",
    ),
}
