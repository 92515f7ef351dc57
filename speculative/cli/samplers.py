"""From a setting to a sampler: the drafter and the rule, the logits processors, the ends of a text."""

import os
from dataclasses import asdict
from functools import lru_cache, partial

import speculative
from gpt2np import StreamDecoder
from speculative.logits.automaton import parsed
from speculative.together import as_they_end

from .drafters import LENGTHS, kind_of, length_of, rule_of
from .files import read_text
from .models import OfLanes, named

MOST_AUTO = 8  # the most draft tokens with --K auto
LOOK_BACK_OPTIONS = ("grammar", "presence_penalty", "frequency_penalty", "no_repeat_ngram_size", "min_tokens")


class Entrant:
    """A setting as a sampler of an `Experiment`, with the random source of its rule and the stops of its texts.

    `label` has the texts of its options that are lists. With drafts=False it is the target alone.
    """

    def __init__(self, options, models, label=None, *, drafts=True, n_prompt=0):
        self.options, self.models, self.label, self.drafts = options, models, label or {}, drafts
        self.K, self.costs, self.rule = length_of(options).K, None, rule_of(options)
        self.tokenizer = models.target()[1]
        self.ends = ends_of(options, self.tokenizer)
        self.needs_prompt = any(getattr(options, name) for name in LOOK_BACK_OPTIONS)
        self.built = lru_cache(1)(self.build)
        self.draft = self.built(n_prompt if self.needs_prompt else 0)[1]  # ValueError if it cannot be built

    def build(self, n_prompt):
        """(the sampler, what is said of its draft); the logits processors know how long the prompt is."""
        options = with_processors(self.options, self.tokenizer, n_prompt)
        if not self.drafts:
            return speculative.AutoregressiveSampler(self.models.target()[0], sampling=options.sampling), {}
        target, drafter, about = kind_of(options).build(options, self.models)
        if options.engine != "numpy" and (options.tree or kind_of(options).branches):
            about["name"] += "; each node of the tree is a call of its own: expect no speedup"
        how = {"K": self.K, "verifier": self.rule.verifier, "sampling": options.sampling}
        return speculative.SpeculativeSampler(target, drafter, **how), about

    def sampler(self, n_prompt):
        return self.built(n_prompt if self.needs_prompt else 0)[0]

    def rounds(self, prompt, n_tokens, seed):
        return self.sampler(len(prompt)).rounds(prompt, n_tokens, self.rule.noise(seed), **self.ends)

    def settled(self, prompt):
        """For --K auto: the `Costs` after a prompt, in plain JSON; else None."""
        if not (self.drafts and length_of(self.options).from_costs):
            return None
        sampler = self.sampler(len(prompt))
        tokens = [*prompt, *prompt][: sampler.target.n_ctx - MOST_AUTO - 1]
        how = {"sampling": sampler.sampling, "verifier": sampler.verifier, "most": MOST_AUTO}
        return asdict(speculative.measure_costs(sampler.target, sampler.drafter, tokens, **how))

    def settle(self, costs):
        if costs:
            self.costs, self.K = costs, length_of(self.options).from_costs(costs["c"], costs["v"])
            self.built.cache_clear()

    @property
    def about(self):
        """What a row says of its setting."""
        target = named(self.options.target_model_size, self.models.target()[0])
        return {"setting": self.label, "target": target, "draft": self.draft, "costs": self.costs}

    @property
    def is_one_text(self):
        """Whether the text should be that of the target alone."""
        return self.options.temperature == 0 or self.rule.one_text

    @property
    def chain_length(self):
        """The length of each draft, if all drafts are chains of one length."""
        options = self.options
        return None if options.K in LENGTHS or options.tree or kind_of(options).branches else options.K

    def decode(self, tokens):
        """The text of tokens, without the token or text that ended it."""
        tokens = [token for token in tokens if token not in self.ends.get("stop_tokens", ())]
        text = self.tokenizer.decode(tokens)
        if "stop" in self.ends:
            return text[: len(self.ends["stop"].cut(text_without_names(tokens, self.tokenizer)))]
        return text

    def as_they_end(self, prompts, n_tokens, seeds, n_lanes, watch=lambda i, r: None):
        """(i, Generation) of each prompt, as soon as its text ends; n_lanes at once, each the same as if run alone."""
        names = self.models.names_for(self.options)

        def make(*lanes):
            entrant = Entrant(self.options, OfLanes(self.models, dict(zip(names, lanes))), drafts=self.drafts)
            entrant.settle(self.costs)
            return entrant

        models = [self.models(name)[0] for name in names]
        for i, result in as_they_end(make, models, prompts, n_tokens, seeds, n_lanes=n_lanes, watch=watch):
            if isinstance(result, BaseException):
                raise result
            yield i, result


def described(options):
    """What a trace says of its setting, in plain numbers and texts."""
    names = ("drafter", "K", "verifier", "temperature", "top_k", "top_p", "min_p", "draft_temperature", "seed")
    return {"exactness": rule_of(options).exactness, **{name: getattr(options, name) for name in names}}


# ------------------------------------------------------------------------------------------------ the ends of a text


class AnyStop(tuple):
    """Ends a text at the first of several `StopText`s."""

    def __call__(self, generated):
        return any(stop(generated) for stop in self)

    def cut(self, text):
        return min((stop.cut(text) for stop in self), key=len)


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


# ------------------------------------------------------------------------------------------------ logits processors


def with_processors(options, tokenizer, n_prompt):
    """The options with their logits processors, for a prompt of this many tokens; the grammar comes first."""
    ends = sorted({tokenizer.end_of_text, *getattr(tokenizer, "ends", ())} - {None})
    processors = (
        options.grammar and grammar_of(options.grammar, tokenizer, n_prompt),
        options.presence_penalty and speculative.PresencePenalty(options.presence_penalty, n_prompt),
        options.frequency_penalty and speculative.FrequencyPenalty(options.frequency_penalty, n_prompt),
        options.no_repeat_ngram_size and speculative.NoRepeatNGram(options.no_repeat_ngram_size),
        options.min_tokens and speculative.MinTokens(options.min_tokens, ends, n_prompt),
    )
    return options.but(processors=tuple(filter(None, processors)))


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
