"""From Options with lists to settings: what goes together, and what has no effect, asked once for each combination.

The answers are data: of a drafter (its `Entry` in drafters.py), of a rule and a length (`trees`), and of an option
(`needs` and `unless` in options.py). Only what depends on values is here.
"""

from speculative import Shape
from speculative.interfaces import takes_trees
from speculative.logits.automaton import parsed

from .brought import graded_drafter
from .drafters import DRAFTERS, LENGTHS, RULES, kind_of, length_of, rule_of
from .files import say
from .models import looks_up, with_names
from .options import all_entries, combinations
from .prompts import KNOWN
from .samplers import pattern_of

# people set these by habit: at temperature 0 a note says why they change nothing, and the command runs
AT_ZERO = dict.fromkeys(("top_k", "top_p", "min_p", "seed"), "at temperature 0 the most probable token is always taken")
AT_ZERO |= {"verifier": "at temperature 0 all rules accept the same tokens"}
DRAWN = {name for kind in DRAFTERS.values() for name in (*kind.always, *kind.options)}  # not used by all drafters


def settings_of(options):
    """The settings that options describe, of which lists make several: those that work, and what is wrong with others.

    Returns
    -------
    list of (Options, dict axis -> text)
        An option that has no effect in a setting has its default value there, and no text. So it multiplies no rows.
        Only the rule keeps its name: a LOSSY one is called so at temperature 0 as well.
    dict sentence -> dict axis -> text
        Each problem, with the first setting that has it.

    Raises
    ------
    ValueError
        If a typed option has no effect in any setting, or with the first problem if no setting works.
    """
    settings, problems, usual, reasons = {}, {}, type(options)(), []
    for setting, texts in combinations(options):
        setting = with_names(setting)
        reasons.append(without_effect(setting))
        reset = {name for name in reasons[-1] if name in options.given} - {"verifier"}
        setting = setting.but(**{name: getattr(usual, name) for name in reset})
        setting = setting.but(K=setting.tree.depth) if has_own_depth(setting) else setting
        label = {name: "" if name in reasons[-1] else text for name, text in texts.items()}
        try:
            check(setting)
            settings.setdefault(str(label), (setting, label))
        except ValueError as error:
            problems.setdefault(str(error), label)
    useless = [name for name in options.given if all(name in reason for reason in reasons)]
    sentences = {name: f"--{name} has no effect, as {reasons[-1][name]}" for name in useless}
    for name in useless:
        if name not in AT_ZERO:
            raise ValueError(f"{sentences[name]}: leave it out")
    if not settings:
        raise ValueError(next(iter(problems)))
    for sentence in sentences.values():
        say(sentence)
    return [*settings.values()], problems


def has_own_depth(options):
    return isinstance(options.tree, Shape) and options.K not in LENGTHS and kind_of(options).trees


def without_effect(options):
    """dict option -> why it changes nothing in this setting."""
    kind, reasons = kind_of(options), {}
    for name in DRAWN - {*kind.always, *kind.options}:
        users = " or ".join(user for user, other in DRAFTERS.items() if name in other.options)
        reasons[name] = f"it is for --drafter {users}, not {options.drafter}" if kind.always else "nothing is drafted"
    for name, entry in all_entries(options).items():
        if entry.needs and not getattr(options, entry.needs):
            reasons.setdefault(name, f"it is for --{entry.needs}")
        if entry.unless and getattr(options, entry.unless, None):
            reasons[name] = f"--{entry.unless} is given"
    if rule_of(options).one_text:
        reasons.pop("verifier", None)  # the target alone draws differently as well
    if has_own_depth(options):
        reasons.setdefault("K", f"a --tree of {options.tree.depth} levels has its own depth")
    if options.prompts in ("tales", "repeating") and not options.prompt_file:
        reasons["template"] = f"--prompts {options.prompts} are not put into a template"
    if getattr(options, "best", "") and options.best not in options.lists:
        reasons["best"] = f"--{options.best} has one value"
    if not looks_up(options):
        reasons |= dict.fromkeys(("models_dir", "source"), f"{options.target_model_size} is not downloaded")
    has_own_temperature = options.draft_temperature is not None and "draft_temperature" in kind.options
    drawn_at = options.draft_temperature if has_own_temperature else options.temperature
    if drawn_at == 0:
        reasons.setdefault("siblings", "at temperature 0 the draft's children are the most probable tokens")
    if drawn_at == options.temperature == 0:
        is_known = options.drafter in DRAFTERS and options.verifier in RULES  # one's own may draw at any temperature
        for name, reason in AT_ZERO.items():
            if is_known or name not in ("seed", "verifier"):
                reasons.setdefault(name, reason)
    return reasons


def check(options):
    """Raise ValueError unless these Options go together. No model is loaded."""
    _ = options.sampling  # runs its checks
    kind, rule, length, drafter = kind_of(options), rule_of(options), length_of(options), f"--drafter {options.drafter}"
    if options.drafter not in DRAFTERS:
        graded_drafter(options.drafter)
    kind.check(options)
    if options.command == "compare" and options.n_tokens_to_generate == 1:
        raise ValueError("--n_tokens_to_generate: expected 2 or more, as nothing is drafted for one token, got 1")
    if options.command == "compare" and options.n_lanes and options.engine != "numpy":
        raise ValueError(f"--n_lanes: --engine {options.engine} runs one text at a time")
    if options.prompts == "known" and "n_prompts" in options.given and options.n_prompts > len(KNOWN):
        raise ValueError(f"--n_prompts: --prompts known has {len(KNOWN)} prompts, got {options.n_prompts}")
    if options.grammar:
        parsed(pattern_of(options.grammar))
    if options.K in LENGTHS and options.K not in kind.lengths:
        raise ValueError(f"--K {options.K} is not for {drafter}: choose one of {', '.join(kind.lengths)}, or a number")
    if kind.hidden and options.engine != "numpy":
        others = ", ".join(name for name, other in DRAFTERS.items() if not other.hidden and other.always)
        raise ValueError(
            f"{drafter} works on hidden states, which --engine {options.engine} does not return: choose one of {others}"
        )
    if options.template == "chat" and options.engine == "numpy":
        raise ValueError("--template chat is for a model with a chat template, of another --engine: GPT-2 has none")
    if options.tree or kind.branches:
        branching = "--tree" if options.tree else drafter
        if not takes_trees(rule.verifier):
            rules = ", ".join(name for name, rule in RULES.items() if takes_trees(rule.verifier))
            raise ValueError(f"{branching} needs a verifier for trees ({rules}), got {options.verifier}")
        if not length.trees:
            raise ValueError(f"--K {options.K} chooses the length of a chain: for a tree give a number")
