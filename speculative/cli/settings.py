"""From Options with lists to settings: what goes together, and what has no effect, asked once for each combination.

The answers are data: of a drafter (its `Entry` in drafters.py), of a rule and a length (`trees`), and of an option
(`needs` and `unless` in options.py). Only what the temperature decides is here.
"""

from speculative import Shape
from speculative.interfaces import takes_trees
from speculative.logits.automaton import parsed

from .brought import graded_drafter
from .drafters import DRAFTERS, LENGTHS, RULES, kind_of, length_of, rule_of
from .files import say
from .models import with_names
from .options import all_entries, combinations
from .samplers import pattern_of

AT_ZERO = ("top_k", "top_p", "min_p", "seed", "verifier")  # people set them by habit: a note, and the command runs
DRAWN = {name for kind in DRAFTERS.values() for name in (*kind.always, *kind.options)}  # not used by all drafters


def settings_of(options):
    """The settings that options describe, of which lists make several: those that work, and what is wrong with others.

    Returns
    -------
    list of (Options, dict axis -> text)
        An option that has no effect in a setting has its default value there, and no text. So it multiplies no rows.
    dict sentence -> dict axis -> text
        Each problem, with the first setting that has it.

    Raises
    ------
    ValueError
        If a typed option has no effect in any setting, or with the first problem if no setting works.
    """
    settings, problems, usual, reasons = {}, {}, type(options)(), []
    for one, texts in combinations(options):
        one = with_names(one)
        reasons.append(without_effect(one))
        one = one.but(**{name: getattr(usual, name) for name in reasons[-1] if name in options.given})
        one = one.but(K=one.tree.depth) if has_own_depth(one) else one
        label = {name: "" if name in reasons[-1] else text for name, text in texts.items()}
        try:
            check(one)
            settings.setdefault(str(label), (one, label))
        except ValueError as error:
            problems.setdefault(str(error), label)
    for name in options.given:
        if all(name in some for some in reasons):
            sentence = f"--{name} has no effect, as {reasons[-1][name]}"
            if name not in AT_ZERO:
                raise ValueError(f"{sentence}: leave it out")
            say(sentence)
    if not settings:
        raise ValueError(next(iter(problems)))
    return [*settings.values()], problems


def has_own_depth(options):
    return isinstance(options.tree, Shape) and options.K not in LENGTHS and kind_of(options).trees


def without_effect(options):
    """dict option -> why it changes nothing in this setting."""
    kind, found = kind_of(options), {}
    for name in DRAWN - {*kind.always, *kind.options}:
        users = " or ".join(user for user, other in DRAFTERS.items() if name in other.options)
        found[name] = f"it is for --drafter {users}, not {options.drafter}" if kind.always else "nothing is drafted"
    for name, entry in all_entries(options).items():
        if entry.needs and not getattr(options, entry.needs):
            found.setdefault(name, f"it is for --{entry.needs}")
        if entry.unless and getattr(options, entry.unless, None):
            found[name] = f"--{entry.unless} is given"
    if rule_of(options).one_text:
        found.pop("verifier", None)  # the target alone draws differently as well
    if has_own_depth(options):
        found.setdefault("K", f"a --tree of {options.tree.depth} levels has its own depth")
    is_own = options.draft_temperature is not None and "draft_temperature" in kind.options
    drawn_at = options.draft_temperature if is_own else options.temperature
    if drawn_at == 0:
        found.setdefault("siblings", "at temperature 0 the draft's children are the most probable tokens")
    if drawn_at == options.temperature == 0:
        is_known = options.drafter in DRAFTERS and options.verifier in RULES  # one's own may draw at any temperature
        for name in AT_ZERO if is_known else AT_ZERO[:3]:
            found.setdefault(name, "at temperature 0 the most probable token is always taken")
    return found


def check(options):
    """Raise ValueError unless these Options go together. No model is loaded."""
    _ = options.sampling  # runs its checks
    kind, rule, length, drafter = kind_of(options), rule_of(options), length_of(options), f"--drafter {options.drafter}"
    if options.drafter not in DRAFTERS:
        graded_drafter(options.drafter)
    kind.check(options)
    if options.command == "compare" and options.n_tokens_to_generate == 1:
        raise ValueError("--n_tokens_to_generate: expected 2 or more, as nothing is drafted for one token, got 1")
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
    if kind.trees == "grown" and type(options.tree) is not int:
        raise ValueError(f"--tree: expected a number of nodes for {drafter}")
    if options.tree or kind.branches:
        what = "--tree" if options.tree else drafter
        if not takes_trees(rule.verifier):
            rules = ", ".join(name for name, rule in RULES.items() if takes_trees(rule.verifier))
            raise ValueError(f"{what} needs a verifier for trees ({rules}), got {options.verifier}")
        if not length.trees:
            raise ValueError(f"--K {options.K} chooses the length of a chain: for a tree give a number")
