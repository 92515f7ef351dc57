"""Why an option that was typed changes nothing: functions of the Options that return the reason, or an empty text.

Such an option is refused. A `Habit` is a reason for a note instead: people set these options by habit, and a command
that they paste should still run. Where there is a reason of each kind, the refusal comes first.
"""

from gpt2np.files.loading import BUNDLED, model_to_find
from gpt2np.files.model_files import SIZES
from speculative import Shape

from .drafters import DRAFTERS, LENGTHS, RULES, drafters_with, kind_of
from .prompts import KNOWN


class Habit(str):
    """A reason that is only noted."""


def acts(options):
    """For an option that always has an effect."""
    return ""


def first_of(*reasons):
    return lambda options: next(filter(None, (reason(options) for reason in reasons)), "")


# ------------------------------------------------------------------------------------------------ drafting


def only_with(name):
    """For an option that only some drafters use."""

    def reason(options):
        used = name in kind_of(options).options
        return "" if used else f"it is for --drafter {drafters_with(name)}, not {options.drafter}"

    return reason


def drafts_nothing(options):
    return "--drafter none drafts nothing" if options.drafter == "none" else ""


def has_own_depth(options):
    is_shaped = isinstance(options.tree, Shape) and options.K not in LENGTHS
    return f"a --tree of {options.tree.depth} levels has its own depth" if is_shaped else ""


def drafts_chains(options):
    return "" if kind_of(options).trees else f"--drafter {options.drafter} has no choice of trees"


def has_no_siblings(options):
    if not options.tree:
        return "it is for --tree"
    is_greedy = draft_temperature(options) == 0
    return "at temperature 0 the draft's children are the most probable tokens" if is_greedy else ""


def has_one_tokenizer(options):
    names = {options.target_model_size, options.draft_model_size or options.target_model_size}
    is_pair = names <= {*BUNDLED} or names <= {*SIZES}
    return "both models have the same tokenizer" if options.draft_tokenizer == "shared" and is_pair else ""


def verifies_nothing(options):
    is_one_text = options.verifier in RULES and RULES[options.verifier].one_text
    return "" if is_one_text else drafts_nothing(options)


# ------------------------------------------------------------------------------------------------ sampling


def draft_temperature(options):
    """The temperature at which the draft is sampled."""
    is_own = options.draft_temperature is not None and not only_with("draft_temperature")(options)
    return options.draft_temperature if is_own else options.temperature


def is_greedy(options):
    draws = options.temperature or draft_temperature(options)
    return "" if draws else Habit("at temperature 0 the most probable token is always taken")


def draws_nothing(options):
    """For the seed; a drafter or a rule of one's own may draw at any temperature."""
    return is_greedy(options) if options.drafter in DRAFTERS and options.verifier in RULES else ""


def accepts_the_same(options):
    """For the rule; a draft that is drawn depends on how many random numbers the rule uses."""
    return Habit("at temperature 0 all rules accept the same tokens") if draws_nothing(options) else ""


# ------------------------------------------------------------------------------------------------ prompts and models


def has_prompt_file(options):
    return "the prompts are those of --prompt_file" if options.prompt_file else ""


def is_beyond_known(options):
    is_short = options.prompts == "known" and options.n_prompts > len(KNOWN)
    return f"--prompts known has {len(KNOWN)} prompts" if is_short else ""


def has_no_template(options):
    has_texts = options.prompt_file or options.command == "generate" or options.prompts == "known"
    return "" if has_texts else f"--prompts {options.prompts} are not put into a template"


def looks_nothing_up(options):
    """Only the names decide: with a size that is on this disk, the option would act on another machine."""
    if options.engine != "numpy":
        return f"--engine {options.engine} has places of its own"
    target, draft = options.target_model_size, options.draft_model_size
    draft = draft or ("" if target in BUNDLED else "124M")  # a folder's usual draft is not known before it is read
    names = [target, draft] if options.drafter == "model" else [target]
    is_any = any(model_to_find(name, options.models_dir) for name in names)
    return "" if is_any else f"{options.target_model_size} is not looked up in a folder of models, or downloaded"


def needs(name):
    """For an option that belongs to another one."""
    return lambda options: "" if getattr(options, name) else f"it is for --{name}"


def one_by_one(options):
    """For the number of texts at once."""
    return "" if options.engine == "numpy" else f"--engine {options.engine} runs one text at a time"


def writes_texts(options):
    """For what generate does with one text."""
    is_for_many = options.command == "generate" and options.output
    return "--output writes the texts and compares nothing" if is_for_many else ""
