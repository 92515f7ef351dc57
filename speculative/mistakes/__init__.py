"""The catalogue of mistakes: each is a sentence, and the right program with a part of it exchanged.

    verifiers.py   another acceptance, another residual, another bonus, another row: `rule`, and blocks and trees
    samplers.py    another loop around a right verifier: `Loop`
    drafters.py    rows that are not what the tokens were drawn from
    models.py      logits for other tokens than those that were asked for

The graders (testing/) name a mistake by comparison: on a few cases the entry has exactly the distribution that the
graded code has. So an entry needs no code besides its own. The museum (museum.py) shows those with a name.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

CONSTRUCTED = "constructed (no public source is known)"


@dataclass(frozen=True)
class Mistake:
    """A mistake: the sentence that names it, and the right program with this mistake in it."""

    hint: str  # what is wrong, and what is right: the first line of a grader's message
    wrong: Any = None  # a verifier, a class of samplers, ..., or a list of such, which the grader cannot tell apart
    name: str = ""  # in the museum; "" if it is not shown there
    seen: str = CONSTRUCTED  # links to public code
    why: str = ""  # what the museum says; by default the hint
    tell: Callable = None  # whether it is this one, where there is no right program to compare with
    options: dict = field(default_factory=dict)  # of the toy case in the museum

    @property
    def variants(self):
        return self.wrong if isinstance(self.wrong, list) else [self.wrong]
