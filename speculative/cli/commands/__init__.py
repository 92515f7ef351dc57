"""The commands, each in a file of this folder: its options, its measurement, its table and its plot stand together.

To add a command, add a file with a COMMAND; nothing else names it.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib import import_module
from pkgutil import iter_modules

from speculative.trace import page

from ..files import deliver, replacing
from ..inputs import check_draft, check_models, load
from ..options import Options, check_used, drafters_of, whole
from ..plots import draw
from ..registry import DRAFTERS, RULES, Context
from ..report import Saved, settings_of
from ..streams import be_patient
from ..tables import show


@dataclass(frozen=True)
class Command:
    """A command. Called with options (values), it checks all of them and runs."""

    name: str
    help: str
    run: Callable  # (Options, Saved)
    options: set
    defaults: dict = field(default_factory=dict)  # where they differ from those of Options
    checks: tuple = ()  # each (Options, Command) -> None or ValueError
    example: str = ""  # the options of an example
    word: str = ""  # an option given without its name
    engines: tuple = ()  # packages that it measures; a report made with other versions is not resumed

    def __call__(self, **given):
        if unknown := given.keys() - self.options - {self.word}:
            raise ValueError(f"unknown option --{unknown.pop()} for {self.name}: see --help")
        options = Options(**{**self.defaults, **given})
        check_used(given, options, self.options)
        for check in self.checks:
            check(options, self)
        if options.json not in (False, True) or options.trace:
            be_patient()
        with Saved(options.json, self.name, settings_of(options, self.options), self.engines) as saved:
            self.run(options, saved)


def experiment(name, help, measure, table, *, options, plot=None, files=(), checks=(), **about):
    """A command that measures something, and shows the result.

    Parameters
    ----------
    measure : function (Options, Saved) -> dict
        The report, in plain numbers, lists and texts. Parts that take long are saved by `Saved.keep`.
    table, plot : function (report) -> str, and -> matplotlib Figure
    files : dict option -> function (report, name)
        Writes the file that the option names.
    checks, about
        As in `Command`. What generates texts needs models, and three prompts for its intervals.
    """

    def run(options, saved):
        report = measure(options, saved)
        whole_report = saved.whole(report)
        steps = [lambda: saved.finish(report), lambda: show(whole_report, table, options.json is True)]
        for option, write in dict(files).items():
            if name := getattr(options, option):
                steps.append(partial(write, whole_report, name))
        if options.plot:
            steps.append(lambda: draw(plot, whole_report, options.plot))
        deliver(*steps)

    checks = (three_prompts, models_are_there, *checks) if options >= COMMON else checks
    return Command(name, help, run, options, checks=checks, **about)


def find_commands():
    """dict name -> Command: those of the files of this folder."""
    found = (import_module(f"{__name__}.{module.name}").COMMAND for module in iter_modules(__path__))
    return {command.name: command for command in found}


# ------------------------------------------------------------------------------------------------ shared options


def names(text):
    """The names in a text, as a set."""
    return set(text.split())


DRAFTS = names(
    "draft_model_size draft_tokenizer draft_temperature corpus ngram_table n_max exit_layer frequent models_dir source"
)
ONE_DRAFTER = names("target_model_size drafter K tree siblings verifier temperature")
SAMPLING = names("top_k top_p min_p repetition_penalty seed")
COMMON = DRAFTS | SAMPLING | names("n_tokens_to_generate n_prompts json plot")
LISTS = names("prompts prompt_file prompt_template")
ONE_SIZE = COMMON | {"target_model_size", "temperature"}
SIZES = COMMON | {"target_sizes"}


# ------------------------------------------------------------------------------------------------ checks


def models_are_there(options, command):
    """Check the names of all models that the command will load."""
    option = "target_sizes" if "target_sizes" in command.options else "target_model_size"
    targets = options.listed(option) if option == "target_sizes" else [options.target_model_size]
    check_models(option, targets, options)
    some = "drafters" in command.options and options.drafters != Options().drafters
    needed = "drafter" in command.options or (some and option == "target_model_size")  # else a table leaves it out
    for target in targets if "model" in drafters_of(options, command.options) else ():
        check_draft(replace(options, target_model_size=target), needed)


def three_prompts(options, command):
    whole(3).check("n_prompts", options.n_prompts)


def two_tokens(options, command):
    """With one token, nothing is drafted."""
    whole(2).check("n_tokens_to_generate", options.n_tokens_to_generate)


def with_probabilities(options, command):
    fitting = [name for name, kind in DRAFTERS.items() if kind.draws and kind.of_texts]
    if options.drafter not in fitting:
        names = ", ".join(fitting)
        raise ValueError(
            f"{command.name} needs a drafter with probabilities along a given text ({names}), got {options.drafter}"
        )


def trees_fit(options, command):
    """Drafters of trees need a verifier that takes trees; of all drafters, those that lack one are left out."""
    rules = options.listed("verifiers") if "verifiers" in command.options else [options.verifier]
    if options.drafters == Options().drafters or any(RULES[rule].trees for rule in rules):
        return
    for name in options.listed("drafters"):
        if DRAFTERS[name].branches:
            takes = ", ".join(rule for rule in RULES if RULES[rule].trees)
            raise ValueError(f"drafter {name} needs a verifier that takes trees ({takes}), got {', '.join(rules)}")


def one_length(options, command):
    if isinstance(options.K, str):
        raise ValueError(f"{command.name} needs one draft length for all, got --K {options.K}: give a number")


# ------------------------------------------------------------------------------------------------ shared steps


def write_trace(trace, name):
    """Write the trace as a page or as JSON lines, depending on the suffix."""
    with replacing("trace", name) as path:
        if name.endswith(".html"):
            path.write_text(page(trace), encoding="utf-8")
        else:
            trace.save(path)


def open_target(options, saved):
    """(`Context` with the target, its description for a report)"""
    target, tokenizer, _ = load(options.target_model_size, options, saved)
    about = {"name": options.target_model_size, "parameters": target.n_params}
    return Context(options, saved, target, tokenizer), {"target": about, "n_tokens": options.n_tokens_to_generate}


def samplings(options):
    """dict "temperature T" -> Sampling, for each of --temperatures."""
    temperatures = options.listed("temperatures")
    return {f"temperature {text}": replace(options.sampling, temperature=float(text)) for text in temperatures}


def rule_arguments(options):
    """The options that `native_and_assisted` takes."""
    rule = RULES[options.verifier]
    about = {"sampling": options.sampling, "seed": options.seed}
    return {**about, "verifier": rule.verifier, "shared_noise": rule.one_text}


def rule_in_report(options):
    """Its description for a report."""
    rule = RULES[options.verifier]
    return {"K": options.K, "verifier": rule.name, "exactness": rule.exactness, **asdict(options.sampling)}
