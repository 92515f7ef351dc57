"""The options of the experiments, beside those of a comparison.

Next: prompts.py
"""

from dataclasses import dataclass
from importlib.util import find_spec

from .request import DRAFTERS, VERIFIERS, Request, check_choice, check_file, check_number

PROMPTS = ("tales", "known")
PICTURES = (".png", ".pdf", ".svg")


@dataclass(frozen=True)
class Plan(Request):
    """All options with their defaults; `python main.py --help` says what they mean. Lists are texts with commas."""

    prompts: str = "tales"
    prompt_file: str = ""
    temperatures: str = "0,1"
    max_K: int = 10
    drafters: str = ",".join(DRAFTERS)
    verifiers: str = ",".join(VERIFIERS)
    target_sizes: str = "tiny-draft,tiny-target"
    log: str = ""
    plot: str = ""

    def __post_init__(self):
        Request.__post_init__(self)
        check_choice("prompts", self.prompts, PROMPTS)
        check_number("max_K", self.max_K, int, 2)
        for name, choices in (("drafters", DRAFTERS), ("verifiers", VERIFIERS)):
            for choice in self.listed(name):
                check_choice(name, choice, choices)
        for temperature in self.listed("temperatures"):
            check_number("temperatures", as_number(temperature), float, 0)
        if self.log:
            check_file("log", self.log, (".txt", ".log"))
        if self.plot:
            check_file("plot", self.plot, PICTURES)
            if not find_spec("matplotlib"):
                raise ValueError("--plot needs matplotlib, which is not installed: pip install -e '.[plots]'")

    def listed(self, name):
        """The values of an option that is a list, each once."""
        return list(dict.fromkeys(getattr(self, name).split(",")))


def as_number(text):
    try:
        return float(text)
    except ValueError:
        return text
