"""The clock around a language model, which reports in the terms of llama.cpp.

"Prompt evaluation" is the first call, which processes the prompt; all later calls are "evaluation". The tokens counted
are those that a model with a cache has to compute: the ones after the prefix shared with the previous call.
"""

from time import perf_counter

from speculative.checks import ask_model
from speculative.models.by_paths import Wrapper
from speculative.tree import n_kept


class Timed(Wrapper):
    """Wraps a language model and counts its tokens and seconds.

    Parameters
    ----------
    model : LanguageModel
        Its cache is reset here, and by `reset`.
    load_seconds : float
        The time it took to load the model, for the report.
    """

    def __init__(self, model, load_seconds=0.0):
        super().__init__(model)
        self.load_seconds = load_seconds
        self.reset()

    def reset(self):
        """Set the counts to zero, and reset the model's cache if it has one."""
        super().reset()
        self.tokens, self.parents = [], ()  # of the previous call
        self.prompt_tokens, self.prompt_seconds, self.eval_tokens, self.eval_seconds = 0, 0.0, 0, 0.0

    def __call__(self, tokens, n_last=1, parents=()):
        tokens = list(tokens)
        n_new = len(tokens) - min(n_kept(self.tokens, self.parents, tokens, parents), len(tokens) - n_last)
        started = perf_counter()
        logits = ask_model(self.model, tokens, n_last, parents)
        seconds = perf_counter() - started
        if self.tokens:
            self.eval_tokens, self.eval_seconds = self.eval_tokens + n_new, self.eval_seconds + seconds
        else:
            self.prompt_tokens, self.prompt_seconds = n_new, seconds
        self.tokens, self.parents = tokens, list(parents)  # a drafter may go on to append to its own
        return logits

    @property
    def seconds(self):
        """The time of all calls."""
        return self.prompt_seconds + self.eval_seconds

    def report(self):
        """Counts and milliseconds, under llama.cpp's names."""
        return {
            "load time": 1000 * self.load_seconds,
            "prompt eval time": 1000 * self.prompt_seconds,
            "prompt eval tokens": self.prompt_tokens,
            "eval time": 1000 * self.eval_seconds,
            "eval tokens": self.eval_tokens,
        }

    def __str__(self):
        return (
            f"load time        = {1000 * self.load_seconds:9.1f} ms\n"
            f"prompt eval time = {per_token(self.prompt_seconds, self.prompt_tokens)}\n"
            f"eval time        = {per_token(self.eval_seconds, self.eval_tokens)}"
        )


def per_token(seconds, n_tokens):
    """A time and a number of tokens, as llama.cpp prints them.

    >>> per_token(0.5, 100)
    '    500.0 ms /   100 tokens (   5.00 ms per token,    200.0 tokens per second)'
    """
    each, speed = (1000 * seconds / n_tokens, n_tokens / seconds) if n_tokens and seconds else (0.0, 0.0)
    return f"{1000 * seconds:9.1f} ms / {n_tokens:5} tokens ({each:7.2f} ms per token, {speed:8.1f} tokens per second)"
