"""Speculative decoding from scratch in NumPy: one loop, any drafter, any verifier. Start reading at reference.py."""

from typing import TYPE_CHECKING

from .autoregressive import AutoregressiveSampler
from .drafters.eagle import EagleDrafter
from .drafters.early_exit import EarlyExitDrafter
from .drafters.forced import ForcedDrafter
from .drafters.heads import HeadsDrafter
from .drafters.model import ModelDrafter
from .drafters.model_tree import TreeDrafter
from .drafters.ngram import NGramDrafter, NGramModel
from .drafters.parallel import ParallelDrafter
from .drafters.prompt_lookup import PromptLookupDrafter
from .drafters.recycling import RecyclingDrafter
from .drafters.shapes import Grown, Shape
from .drafters.text import TextDrafter
from .exact.enumeration import CannotEnumerate, exact_distribution, total_variation
from .generation import Generation, Round, Sampler, Stats, collect
from .interfaces import Draft, Drafter, LanguageModel, RandomSource, Verdict, Verifier
from .logits.grammar import Grammar
from .logits.look_back import FrequencyPenalty, MinTokens, NoRepeatNGram, PresencePenalty
from .logits.probs import Sampling, acceptance_probability, residual, sample_token
from .measuring.costs import Costs, measure_costs
from .models.by_paths import ByPaths
from .models.shared_tokens import SharedTokensModel
from .rng import Gumbel
from .sampler import SpeculativeSampler
from .stop import StopText
from .theory.draft_length import CostModel, heuristic
from .together import generate_together
from .verifiers.block import block
from .verifiers.exact_match import exact_match
from .verifiers.lenient import Lenient
from .verifiers.rejection import rejection
from .verifiers.traversal import traversal
from .verifiers.typical import Typical

__all__ = [
    "AutoregressiveSampler", "ByPaths", "CannotEnumerate", "CostModel", "Costs", "Draft", "Drafter",
    "EagleDrafter",
    "EarlyExitDrafter", "ForcedDrafter", "FrequencyPenalty", "Generation", "Grammar", "Grown", "Gumbel", "HeadsDrafter",
    "LanguageModel", "Lenient", "MinTokens",
    "ModelDrafter", "NGramDrafter", "NGramModel", "NoRepeatNGram", "ParallelDrafter", "PresencePenalty",
    "PromptLookupDrafter", "RandomSource", "RecyclingDrafter", "Round", "Sampler", "Sampling",
    "Shape", "SharedTokensModel", "SpeculativeSampler", "Stats", "StopText", "TextDrafter",
    "TreeDrafter", "Typical", "Verdict", "Verifier", "acceptance_probability", "block", "collect",
    "exact_distribution", "exact_match", "generate_together", "heuristic", "measure_costs", "rejection", "residual",
    "sample_token", "total_variation", "traversal",
]  # fmt: skip


if TYPE_CHECKING:
    __version__: str
else:  # hidden from type checkers, which would accept every name

    def __getattr__(name):
        if name == "__version__":  # the installed version, from setup.py; read on request, because it takes a moment
            from importlib.metadata import PackageNotFoundError, version

            try:
                return version("speculative-decoding-numpy")
            except PackageNotFoundError:
                return "(not installed)"
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
