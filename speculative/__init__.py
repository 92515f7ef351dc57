"""Speculative decoding from scratch in NumPy: one loop, any drafter, any verifier. Start reading at interfaces.py."""

from .autoregressive import AutoregressiveSampler
from .drafters.model import ModelDrafter
from .exact import CannotEnumerate, exact_law
from .gumbel import Gumbel
from .interfaces import Draft, Drafter, Generation, LanguageModel, Round, Sampler, Stats, Verdict, Verifier, collect
from .probs import Sampling, acceptance_probability, residual, sample_token
from .sampler import SpeculativeSampler
from .verifiers.block import block
from .verifiers.exact_match import exact_match
from .verifiers.lenient import Lenient
from .verifiers.rejection import rejection
from .verifiers.typical import Typical

__all__ = [
    "AutoregressiveSampler",
    "CannotEnumerate",
    "Draft",
    "Drafter",
    "Generation",
    "Gumbel",
    "LanguageModel",
    "Lenient",
    "ModelDrafter",
    "Round",
    "Sampler",
    "Sampling",
    "SpeculativeSampler",
    "Stats",
    "Typical",
    "Verdict",
    "Verifier",
    "acceptance_probability",
    "block",
    "collect",
    "exact_law",
    "exact_match",
    "rejection",
    "residual",
    "sample_token",
]
