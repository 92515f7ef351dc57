"""Graders: functions that raise AssertionError, with a message whose first line names the mistake in a sentence.

    check_verifier(fn)              a function of (draft, target_probs, rng), or a callable object
    check_function(fn)              a function of target_probs, draft_probs and draft_tokens, in NumPy or PyTorch
    check_drafter(drafter)          an object with propose(tokens, K, rng)
    check_sampler(make)             a class, or a function, called as make(target, drafter, K=..., sampling=...)
    check_batch(serve)              a loop over several texts at once, through a model whose cache has slots
    check_language_model(model)     a function of (tokens, n_last), or a callable object

They need only NumPy and take seconds, so they work in a notebook cell, in a test, or in nbgrader or otter. They look at
the result, not at the code: exact distributions by enumeration (exact/) on small cases, which `seed` varies, and a
few properties that no distribution shows. Any solution with the right distribution passes, in whatever style it is
written. An error inside the graded code is reported with the case that caused it, and a call that hangs is ended.
`TableModel` is a language model small enough to enumerate completely. `audit_loop` compares a whole loop, from tokens
to tokens, with its own target; `audit_samples` bets on the texts of what cannot be enumerated. `TorchDraws` enumerates
code that is written in PyTorch; it is imported on request, as it needs PyTorch.
"""

from typing import TYPE_CHECKING

from ..exact.table import TableModel
from .batches import check_batch
from .betting import audit_samples
from .drafters import check_drafter
from .functions import check_function
from .loops import audit_loop
from .models import check_language_model
from .samplers import check_sampler
from .verifiers import check_verifier

__all__ = [
    "TableModel", "audit_loop", "audit_samples", "check_batch", "check_drafter", "check_function",
    "check_language_model", "check_sampler", "check_verifier",
]  # fmt: skip


if TYPE_CHECKING:
    from .torch_draws import TorchDraws  # noqa: F401
else:  # hidden from type checkers, which would accept every name

    def __getattr__(name):
        if name == "TorchDraws":
            from .torch_draws import TorchDraws

            return TorchDraws
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
