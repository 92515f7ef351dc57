"""Turns options into the samplers of a race: which options go together, the logits processors, the two samplers."""

import os
from dataclasses import asdict
from functools import lru_cache

import speculative
from speculative import AutoregressiveSampler, Shape
from speculative.interfaces import takes_trees
from speculative.logits.automaton import Expression
from speculative.together import as_they_end

from .brought import files_of, graded_drafter
from .drafters import DRAFTERS, OF_SOME, RULES, kind_of, length_of, rule_of
from .files import read_text
from .models import SMALLEST, OfLanes, no_smaller

MOST_AUTO = 8  # the most draft tokens with --K auto
LOOK_BACK_OPTIONS = ("grammar", "presence_penalty", "frequency_penalty", "no_repeat_ngram_size", "min_tokens")


def check_together(options):
    """Raise ValueError unless --drafter, --verifier, --tree and --K go together; no model is loaded."""
    kind, rule, length = kind_of(options), rule_of(options), length_of(options)
    tree, what = options.tree, f"--drafter {options.drafter}"
    if options.drafter not in DRAFTERS:
        graded_drafter(options.drafter)
    if length.threshold and "siblings" not in kind.options:
        raise ValueError(f"--K {options.K} needs a drafter with probabilities, got {options.drafter}: try auto")
    if options.drafter == "model" and not options.draft_model_size and options.target_model_size in SMALLEST.values():
        raise ValueError(no_smaller(options.target_model_size))
    if options.drafter == "forced" and not options.grammar:
        raise ValueError("--drafter forced drafts nothing without --grammar")
    if options.grammar:
        Expression(pattern_of(options.grammar))
    if not tree and not kind.branches:
        return
    if tree and not kind.trees:
        raise ValueError(f"--tree is not for {what}")
    if kind.trees == "grown" and type(tree) is not int:
        raise ValueError(f"--tree: expected a number of nodes for {what}")
    if tree and options.drafter == "model" and options.draft_tokenizer == "text":
        raise ValueError("--tree is for --draft_tokenizer auto or shared, not text")
    if not takes_trees(rule.verifier):
        rules = ", ".join(name for name, rule in RULES.items() if takes_trees(rule.verifier))
        raise ValueError(f"{'--tree' if tree else what} needs a verifier for trees ({rules}), got {options.verifier}")
    if not length.trees:
        raise ValueError(f"--K {options.K} chooses the length of a chain: for a tree give a number")
    if isinstance(tree, Shape) and tree.depth > length.depth:
        raise ValueError(f"this --tree has depth {tree.depth}: give --K {tree.depth}, the depth limit")


def check_used(options, drafters, tree=True):
    """Raise ValueError for a typed option that has no effect with these drafters, or with the prompts."""
    unused = {}
    for name in sorted(OF_SOME):
        users = [user for user, kind in DRAFTERS.items() if name in kind.options]
        if not {*users} & {*drafters}:
            unused[name] = f"--drafter {' or '.join(users)}, not {', '.join(drafters)}"
    if not tree:
        unused.setdefault("siblings", "--tree")
    if options.prompt_file:
        unused |= dict.fromkeys(("prompt", "prompts", "n_prompts"), "prompts without --prompt_file")
    for name in options.given:
        if name in unused:
            raise ValueError(f"--{name} is for {unused[name]}: leave --{name} out")


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
    """The keyword arguments of `rounds` that say where a text ends."""
    if not (options.grammar or options.min_tokens):
        ends = {}
    elif tokenizer.end_of_text is None:
        raise ValueError("--grammar and --min_tokens need a vocabulary with <|endoftext|>, which ends the text")
    else:
        ends = {"stop_tokens": {tokenizer.end_of_text}}
    return ends | ({"stop": speculative.StopText(options.stop, tokenizer.decode)} if options.stop else {})


def decoded(tokens, tokenizer, ends):
    """The text of tokens, without the token or text that ended it."""
    text = tokenizer.decode(token for token in tokens if token not in ends.get("stop_tokens", ()))
    return ends["stop"].cut(text) if "stop" in ends else text


def with_processors(options, tokenizer, n_prompt):
    """The options with their logits processors, for a prompt of this many tokens; the grammar comes first."""
    found = (
        options.grammar and grammar_of(options.grammar, tokenizer, n_prompt),
        options.presence_penalty and speculative.PresencePenalty(options.presence_penalty, n_prompt),
        options.frequency_penalty and speculative.FrequencyPenalty(options.frequency_penalty, n_prompt),
        options.no_repeat_ngram_size and speculative.NoRepeatNGram(options.no_repeat_ngram_size),
        options.min_tokens and speculative.MinTokens(options.min_tokens, tokenizer.end_of_text, n_prompt),
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
            Expression(line)
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
    check_together(options)
    for given in sorted({options.drafter, options.verifier} - {*DRAFTERS, *RULES}):
        models.report.same_contents(given, *files_of(given))
    models.report.same_contents("--grammar", pattern_of(options.grammar) if options.grammar else "")
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
    name = {"name": options.target_model_size, "parameters": models.target()[0].n_params}
    return entrant, {"target": name, "draft": about, "costs": costs}


def costs_of(options, target, drafter, tokens):
    somewhere = [*tokens, *tokens][: target.n_ctx - MOST_AUTO - 1]
    how = {"sampling": options.sampling, "verifier": rule_of(options).verifier, "most": MOST_AUTO}
    return speculative.measure_costs(target, drafter, somewhere, **how)
