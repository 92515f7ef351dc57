"""The exact distribution of random code, by enumeration of its random draws."""

from .enumeration import ExactGenerator, exact_distribution, total_variation
from .uniform import CannotEnumerate

__all__ = ["CannotEnumerate", "ExactGenerator", "exact_distribution", "total_variation"]
