"""The catalogue of mistakes: each is a sentence, and an edit of the right program.

    edits.py       an edit, and the format of the text files
    verifiers.txt  a wrong acceptance, residual, bonus or row: edits of a right rule (verifiers.py)
    samplers.txt   a wrong loop around a right verifier: edits of `Loop` (samplers.py)
    batches.txt    a wrong loop over several texts: edits of `Batch` (batches.py)
    drafters.py    rows that are not the distributions the tokens were drawn from
    models.py      logits for the wrong tokens

The graders (testing/) name a mistake by comparison: on a few cases the entry has exactly the distribution of the graded
code. So an entry needs no separate detector, and to add one is to write down its sentence and its edit. The museum
(museum.py) shows the entries with a name.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

CONSTRUCTED = "constructed (no public source is known)"


@dataclass(frozen=True)
class Mistake:
    """A mistake: the sentence that names it, and the right program with this mistake in it."""

    hint: str  # the mistake and the remedy: the first line of a grader's message
    wrong: Any = None  # a verifier, a class of samplers, ..., or a list of these that the grader cannot tell apart
    name: str = ""  # the name in the museum; "" if it is not shown there
    seen: str = CONSTRUCTED  # links to public code
    why: str = ""  # the museum's text; by default the hint
    tell: Callable = None  # recognises the mistake where there is no right program to compare with
    options: dict = field(default_factory=dict)  # options of the toy case in the museum

    @property
    def variants(self):
        return self.wrong if isinstance(self.wrong, list) else [self.wrong]
