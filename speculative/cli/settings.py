"""From Options to the participants of a race: the settings that work, and samplers with and without a draft."""

import os
from dataclasses import asdict
from functools import lru_cache, partial

import speculative
from gpt2np import StreamDecoder
from speculative import AutoregressiveSampler, Shape
from speculative.interfaces import takes_trees
from speculative.logits.automaton import parsed
from speculative.together import as_they_end

from .brought import graded_drafter
from .drafters import DRAFTERS, LENGTHS, RULES, kind_of, length_of, rule_of
from .effects import Habit
from .files import read_text
from .models import AS_SMALL, OfLanes, named, no_smaller
from .options import all_entries, combinations

MOST_AUTO = 8  # the most draft tokens with --K auto
LOOK_BACK_OPTIONS = ("grammar", "presence_penalty", "frequency_penalty", "no_repeat_ngram_size", "min_tokens")


def settings_of(options):
    """The settings that options with lists describe: those that work, and what is wrong with the others.

    Returns
    -------
    list of (Options, dict axis -> text)
        An option that has no effect in a setting has its default value there, and no text. So it multiplies no rows.
    dict sentence -> dict axis -> text
        Each problem, with the first setting that has it.

    Raises
    ------
    ValueError
        With the first problem, if no setting works.
    """
    settings, problems, usual = {}, {}, type(options)()
    entries = {name: entry for name, entry in all_entries(options).items() if name in options.given}
    for one, texts in combinations(options):
        reasons = {name: reason for name, entry in entries.items() if (reason := entry.no_effect(one))}
        habits = {name: getattr(usual, name) for name, reason in reasons.items() if isinstance(reason, Habit)}
        one = one.but(**{name: getattr(usual, name) for name in reasons.keys() - habits.keys()})
        label = {name: "" if name in reasons else text for name, text in texts.items()}
        _ = one.sampling  # runs its checks
        try:
            settings.setdefault(str(label), (checked(one).but(**habits), label))
        except ValueError as error:
            problems.setdefault(str(error), label)
    if not settings:
        raise ValueError(next(iter(problems)))
    return [*settings.values()], problems


def checked(options):
    """The Options, if --drafter, --verifier, --tree and --K go together; otherwise ValueError. No model is loaded."""
    kind, rule, tree = kind_of(options), rule_of(options), options.tree
    if kind.trees and isinstance(tree, Shape) and options.K not in LENGTHS:
        options = options.but(K=tree.depth)
    length = length_of(options)
    if options.drafter not in DRAFTERS:
        graded_drafter(options.drafter)
    if options.command == "compare" and options.n_tokens_to_generate == 1:
        raise ValueError("--n_tokens_to_generate: expected 2 or more, as nothing is drafted for one token, got 1")
    if options.engine != "numpy":
        check_engine(options, kind)
    elif options.template == "chat":
        raise ValueError("--template chat is for a model with a chat template, of another --engine: GPT-2 has none")
    if length.threshold and "siblings" not in kind.options:
        raise ValueError(f"--K {options.K} needs a drafter with probabilities, got {options.drafter}: try auto")
    if options.drafter == "model" and not options.draft_model_size and options.target_model_size in AS_SMALL:
        raise ValueError(no_smaller(options.target_model_size))
    if options.drafter == "forced" and not options.grammar:
        raise ValueError("--drafter forced drafts nothing without --grammar")
    if options.grammar:
        parsed(pattern_of(options.grammar))
    if not tree and not kind.branches:
        return options
    if kind.trees == "grown" and type(tree) is not int:
        raise ValueError(f"--tree: expected a number of nodes for --drafter {options.drafter}")
    if tree and options.drafter == "model" and options.draft_tokenizer == "text":
        raise ValueError("--tree is for --draft_tokenizer auto or shared, not text")
    if not takes_trees(rule.verifier):
        rules = ", ".join(name for name, rule in RULES.items() if takes_trees(rule.verifier))
        what = "--tree" if tree else f"--drafter {options.drafter}"
        raise ValueError(f"{what} needs a verifier for trees ({rules}), got {options.verifier}")
    if not length.trees:
        raise ValueError(f"--K {options.K} chooses the length of a chain: for a tree give a number")
    return options


def check_engine(options, kind):
    """Raise ValueError unless the drafter needs no more than the models of other engines give."""
    if kind.hidden:
        others = ", ".join(name for name, other in DRAFTERS.items() if not other.hidden and name != "none")
        raise ValueError(
            f"--drafter {options.drafter} works on hidden states, which --engine {options.engine} does not return: "
            f"choose one of {others}"
        )
    if options.drafter == "model" and not options.draft_model_size:
        raise ValueError(
            f"--engine {options.engine} knows no smaller model of the family: name one with --draft_model_size, or "
            "draft without a model, for example with --drafter prompt_lookup"
        )


class AnyStop(tuple):
    """Ends a text at the first of several `StopText`s."""

    def __call__(self, generated):
        return any(stop(generated) for stop in self)

    def cut(self, text):
        return min((stop.cut(text) for stop in self), key=len)


class Entrant:
    """A participant in a race: a sampler with the random source of its rule and the stops of its texts.

    Parameters
    ----------
    options : Options
    models : Models
    build : function (Options, Models) -> Sampler
        It receives the options with the logits processors for a prompt; the processors know the prompt's length.
    """

    def __init__(self, options, models, build):
        self.options, self.models, self.build, self.tokenizer = options, models, build, models.target()[1]
        self.needs_prompt = any(getattr(options, name) for name in LOOK_BACK_OPTIONS)
        self.ends = ends_of(options, self.tokenizer)
        self.sampler_for = lru_cache(1)(lambda n: build(with_processors(options, self.tokenizer, n), models))

    def sampler(self, n_prompt):
        return self.sampler_for(n_prompt if self.needs_prompt else 0)

    def rounds(self, prompt, n_tokens, seed):
        noise = rule_of(self.options).noise
        return self.sampler(len(prompt)).rounds(prompt, n_tokens, noise(seed), **self.ends)

    def as_they_end(self, prompts, n_tokens, seeds, n_lanes, watch=lambda i, r: None):
        """(i, Generation) of each prompt, as soon as its text ends; n_lanes at once, each the same as if run alone."""
        names = self.models.names_for(self.options)

        def make(*lanes):
            return Entrant(self.options, OfLanes(self.models, dict(zip(names, lanes))), self.build)

        models = [self.models(name)[0] for name in names]
        for i, result in as_they_end(make, models, prompts, n_tokens, seeds, n_lanes=n_lanes, watch=watch):
            if isinstance(result, BaseException):
                raise result
            yield i, result


def ends_of(options, tokenizer):
    """The keyword arguments of `rounds` that say where a text ends; those of other engines also end by themselves."""
    special = {text: token for text, token in tokenizer.vocabulary.items() if token in tokenizer.special}
    stop_tokens = {special[text] for text in options.stop if text in special} | {*getattr(tokenizer, "ends", ())}
    if options.grammar or options.min_tokens:
        if tokenizer.end_of_text is None:
            raise ValueError("--grammar and --min_tokens need a vocabulary with <|endoftext|>, which ends the text")
        stop_tokens.add(tokenizer.end_of_text)
    find_in = partial(text_without_names, tokenizer=tokenizer)
    stops = AnyStop(speculative.StopText(text, find_in) for text in options.stop if text not in special)
    return ({"stop_tokens": stop_tokens} if stop_tokens else {}) | ({"stop": stops} if stops else {})


def text_without_names(tokens, tokenizer):
    """The text in which stop texts are looked for: as long as the decoded text, with U+FFFD for special tokens."""
    decoder, text = StreamDecoder(tokenizer), ""
    for token in tokens:
        text += without_name(decoder.push(token), token, tokenizer)
    return text + decoder.flush()


def without_name(piece, token, tokenizer):
    return "\ufffd" * len(piece) if token in tokenizer.special else piece


def decoded(tokens, tokenizer, ends):
    """The text of tokens, without the token or text that ended it."""
    tokens = [token for token in tokens if token not in ends.get("stop_tokens", ())]
    text = tokenizer.decode(tokens)
    return text[: len(ends["stop"].cut(text_without_names(tokens, tokenizer)))] if "stop" in ends else text


def with_processors(options, tokenizer, n_prompt):
    """The options with their logits processors, for a prompt of this many tokens; the grammar comes first."""
    ends = sorted({tokenizer.end_of_text, *getattr(tokenizer, "ends", ())} - {None})
    found = (
        options.grammar and grammar_of(options.grammar, tokenizer, n_prompt),
        options.presence_penalty and speculative.PresencePenalty(options.presence_penalty, n_prompt),
        options.frequency_penalty and speculative.FrequencyPenalty(options.frequency_penalty, n_prompt),
        options.no_repeat_ngram_size and speculative.NoRepeatNGram(options.no_repeat_ngram_size),
        options.min_tokens and speculative.MinTokens(options.min_tokens, ends, n_prompt),
    )
    return options.but(processors=tuple(filter(None, found)))


def pattern_of(grammar):
    """The pattern of --grammar: the text itself, or if there is such a file, any of the patterns in its lines."""
    if not os.path.exists(grammar):
        return grammar
    lines = [line for line in read_text(grammar, "grammar").replace("\r", "\n").split("\n") if line]
    if not lines:
        raise ValueError(f"--grammar: {grammar} is empty: write a pattern per line")
    try:
        for line in lines:
            parsed(line)
    except ValueError as error:
        raise ValueError(f"--grammar: {grammar}: {error}") from None
    return "|".join(f"(?:{line})" for line in lines)


def grammar_of(grammar, tokenizer, n_prompt):
    texts = [tokenizer.bytes_of(token) for token in range(tokenizer.n_vocab)]
    try:
        return speculative.Grammar(pattern_of(grammar), texts, tokenizer.end_of_text, n_prompt)
    except ValueError as error:
        raise ValueError(f"--grammar: {error}") from None


def alone(options, models):
    """The `Entrant` of the target alone."""
    return Entrant(options, models, lambda own, some: AutoregressiveSampler(some.target()[0], sampling=own.sampling))


def with_draft(options, models, prompt, keep=lambda name, find: find()):
    """(the `Entrant` with the draft, its description) for prompts like these tokens.

    `keep` receives each measurement with its name, and may return an earlier result.
    """
    kind, rule, length = kind_of(options), rule_of(options), length_of(options)
    own = with_processors(options, models.target()[1], len(prompt))
    target, drafter, about = kind.build(own, models)
    K = length.K
    costs = None
    if length.from_costs:
        costs = keep("costs", lambda: asdict(costs_of(own, target, drafter, prompt)))
        K = length.from_costs(costs["c"], costs["v"])

    def build(own, some):
        parts = (target, drafter) if some is models and not own.processors else kind.build(own, some)[:2]
        return speculative.SpeculativeSampler(*parts, K=K, verifier=rule.verifier, sampling=own.sampling)

    entrant = Entrant(options, models, build)
    if options.engine != "numpy" and (options.tree or kind.branches):
        about["name"] += "; each node of the tree is a call of its own: expect no speedup"
    return entrant, {"target": named(options.target_model_size, models.target()[0]), "draft": about, "costs": costs}


def costs_of(options, target, drafter, tokens):
    somewhere = [*tokens, *tokens][: target.n_ctx - MOST_AUTO - 1]
    how = {"sampling": options.sampling, "verifier": rule_of(options).verifier, "most": MOST_AUTO}
    return speculative.measure_costs(target, drafter, somewhere, **how)
