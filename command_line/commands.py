"""The commands: the options of each, and how it runs, from options to a page.

Next: compare.py
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from . import audit, bench, compare, measure, museum, replay, tables
from .files import deliver
from .models import check_models
from .options import Options, check, typed
from .registry import DRAFTERS, RULES
from .saved import Saved, settings_of
from .streams import be_patient
from .views import show


@dataclass(frozen=True)
class Command:
    """A command. Called with options (texts or values), it checks all of them and runs."""

    name: str
    run: Callable  # (Options, Saved)
    options: set
    defaults: dict = field(default_factory=dict)  # where they differ from those of Options
    checks: tuple = ()  # each (Options, Command) -> None or ValueError
    word: str = ""  # an option given without its name

    def __call__(self, **options):
        given = {name: typed(name, value) if isinstance(value, str) else value for name, value in options.items()}
        if unknown := given.keys() - self.options - {self.word}:
            raise ValueError(f"unknown option --{unknown.pop()}: see --help")
        if "prompt" in given and given.get("prompt_file"):
            raise ValueError("expected one of --prompt and --prompt_file, got both: leave one out")
        if "n_prompts" in given and given.get("prompt_file"):
            raise ValueError("--n_prompts: every line of --prompt_file is a prompt: leave --n_prompts out")
        request = Options(**{**self.defaults, **given})
        for check_request in self.checks:
            check_request(request, self)
        if request.json not in (False, True) or request.trace:
            be_patient()
        with Saved(request.json, self.name or "compare", settings_of(request, self.options)) as parts:
            self.run(request, parts)


def experiment(name, options, defaults, *checks):
    """The command of an experiment. measure.py, tables.py and plots.py each have a function of its name."""
    run = partial(run_experiment, getattr(measure, name), getattr(tables, name))
    return Command(name, run, options, defaults, (three_prompts, models_are_there, *checks))


def run_experiment(measured, page, request, parts):
    report = measured(request, parts)
    whole = parts.whole(report)
    steps = [lambda: parts.finish(report), lambda: show(whole, page, request.json is True)]
    if request.log:
        steps.append(lambda: tables.write_log(whole, request.log))
    if request.plot:
        steps.append(lambda: draw(whole, request.plot))
    deliver(*steps)


def draw(report, path):
    from . import plots  # only plots.py imports matplotlib

    plots.draw(report, path)


# ------------------------------------------------------------------------------------------------ checks


def three_prompts(request, command):
    check("n_prompts", request.n_prompts, kind=int, least=3)


def two_tokens(request, command):
    """With one token, nothing is drafted."""
    check("n_tokens_to_generate", request.n_tokens_to_generate, kind=int, least=2)


def models_are_there(request, command):
    """Check the names of all models that the command will load."""
    if "target_sizes" in command.options:
        check_models("target_sizes", request.listed("target_sizes"), request)
    else:
        check_models("target_model_size", [request.target_model_size], request)
    one = {"drafter": [request.drafter], "drafters": request.listed("drafters")}
    one["tree_drafters"] = request.listed("tree_drafters")
    kinds = next((names for option, names in one.items() if option in command.options), DRAFTERS)
    if "model" in kinds:
        check_models("draft_model_size", [request.draft_model_size], request)


def sizes_are_there(request, command):
    """Like `models_are_there`, for bench, which loads the pair only for the comparison with transformers."""
    one_length(request, command)
    check_models("sizes", request.listed("sizes"), request)
    if "transformers" in request.listed("strategies"):
        check_models("target_model_size", [request.target_model_size], request)
        check_models("draft_model_size", [request.draft_model_size], request)
    bench.check_room(request)


def with_probabilities(request, command):
    if not DRAFTERS[request.drafter].draws:
        names = ", ".join(name for name, kind in DRAFTERS.items() if kind.draws)
        raise ValueError(f"{command.name} needs a drafter with probabilities ({names}), got {request.drafter}")


def trees_fit(request, command):
    """Drafters of trees need a verifier that takes trees; of all drafters, those that lack one are left out."""
    rules = request.listed("verifiers") if "verifiers" in command.options else [request.verifier]
    if request.drafters == Options().drafters or any(RULES[rule].trees for rule in rules):
        return
    for name in request.listed("drafters"):
        if DRAFTERS[name].trees:
            takes = ", ".join(rule for rule in RULES if RULES[rule].trees)
            raise ValueError(f"drafter {name} needs a verifier that takes trees ({takes}), got {', '.join(rules)}")


def one_length(request, command):
    if isinstance(request.K, str):
        raise ValueError(f"{command.name} needs one draft length for all, got --K {request.K}: give a number")


# ------------------------------------------------------------------------------------------------ the commands

DRAFTS = {
    "draft_model_size", "draft_temperature", "siblings", "corpus", "ngram_table", "n_max", "exit_layer", "models_dir",
    "source",
}  # fmt: skip
SAMPLING = {"top_k", "top_p", "min_p", "repetition_penalty", "seed"}
COMMON = DRAFTS | SAMPLING | {"n_tokens_to_generate", "n_prompts", "json", "plot"}
LISTS = {"prompts", "prompt_file"}
ONE_SIZE = COMMON | {"target_model_size", "temperature"}
SIZES = COMMON | {"target_sizes"}
COMPARISON = DRAFTS | SAMPLING | {
    "prompt", "prompt_file", "n_tokens_to_generate", "target_model_size", "drafter", "K", "tree", "verifier",
    "temperature", "stop", "show", "trace", "json", "timings",
}  # fmt: skip
BENCH = {
    "sizes", "strategies", "rows", "context", "prompt_tokens", "repeats", "draft_model_size", "target_model_size", "K",
    "n_tokens_to_generate", "n_prompts", "models_dir", "source", "json",
}  # fmt: skip

EXPERIMENTS = (
    experiment(
        "calibrate", ONE_SIZE | {"drafter"}, {"n_tokens_to_generate": 64}, with_probabilities, two_tokens,
    ),
    experiment(
        "drafters", ONE_SIZE, {"n_tokens_to_generate": 64, "n_prompts": 4}, two_tokens,
    ),
    experiment(
        "prompts", ONE_SIZE | LISTS | {"drafter", "K", "tree", "verifier", "log"}, {"prompts": "known", "n_prompts": 8},
        two_tokens,
    ),
    experiment(
        "gamma_table", COMMON | LISTS | {"target_model_size", "drafter", "temperatures", "max_K"},
        {"n_tokens_to_generate": 100, "n_prompts": 12}, with_probabilities,
    ),
    experiment(
        "alpha_table", SIZES | LISTS | {"temperatures"}, {"n_tokens_to_generate": 64, "n_prompts": 12},
    ),
    experiment(
        "method_table", ONE_SIZE | {"drafters", "verifiers", "K"},
        {"n_tokens_to_generate": 48, "n_prompts": 3, "temperature": 0.5}, one_length, trees_fit, two_tokens,
    ),
    experiment(
        "tree_table", ONE_SIZE | LISTS | {"tree_drafters", "tree_sizes", "max_depth"},
        {"n_tokens_to_generate": 64, "n_prompts": 6}, two_tokens,
    ),
    experiment(
        "compare_sizes", SIZES | LISTS | {"temperature", "drafters", "K", "verifier"},
        {"n_prompts": 8, "drafters": "model,ngram"}, one_length, trees_fit, two_tokens,
    ),
)  # fmt: skip
COMMANDS = {
    command.name: command
    for command in (
        Command("", compare.compare, COMPARISON, checks=(models_are_there,)),
        *EXPERIMENTS,
        Command("bench", bench.bench, BENCH, {"n_tokens_to_generate": 60, "n_prompts": 3}, (sizes_are_there,)),
        Command("museum", museum.museum, {"json"}),
        Command("audit", audit.audit, {"json"}, checks=(audit.needs_transformers,)),
        Command("replay", replay.replay, {"trace"}, word="file"),
    )
}
