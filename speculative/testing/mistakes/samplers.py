"""Mistakes in samplers: the right loop with one step replaced, around a verifier that may contain mistakes as well.

A penalty or a grammar needs the tokens before each row of a draft. Engines keep them as a state, such as counts of
tokens or a state of an automaton. They update it once per round, and must still apply it row by row. `seen(rounds, i)`
models such bookkeeping: it returns the tokens that row i of the last round sees, or None if penalties and masks are not
applied to that row. `rounds` lists (the text before the draft, the draft tokens) for each round so far, both lists of
int; row i predicts the token after the first i draft tokens.
"""

from dataclasses import fields, replace
from itertools import pairwise

import numpy as np

from ...generation import Laps, Round, collect
from ...interfaces import Draft, Verdict
from ...logits.grammar import Grammar
from ...logits.look_back import FrequencyPenalty
from ...logits.probs import Sampling, residual, sample_token
from ...rng import Recorder
from ...verifiers.rejection import rejection
from . import Mistake

MASKED = Sampling(processors=[Grammar("a(ba)*", [b"a", b"b", b""], end=2, n_prompt=2)])


class Loop:
    """The loop of speculative sampling, each step a method; `loop(step=...)` returns a class with different steps."""

    verifier = staticmethod(rejection)

    def __init__(self, target, drafter, *, K, sampling):
        self.target, self.drafter, self.K, self.sampling = target, drafter, K, sampling

    def room(self, n_left, n_text):
        """The number of tokens to draft."""
        return min(self.K, n_left - 1, self.target.n_ctx - n_text - 1)

    def seen(self, rounds, i):
        text, drafted = rounds[-1]
        return [*text, *drafted[:i]]

    def rows(self, text, drafted):
        """The target's distributions [k + 1, n_vocab]."""
        tokens = [*text, *drafted]
        logits = self.target(tokens, n_last=len(drafted) + 1)
        if type(self).seen is Loop.seen:
            return self.sampled(logits, tokens)
        self.rounds.append((text, drafted))
        return np.concatenate([self.row(logits[i : i + 1], self.seen(self.rounds, i)) for i in range(len(logits))])

    def row(self, logits, text):
        return replace(self.sampling, processors=())(logits) if text is None else self.sampling(logits, text)

    def sampled(self, logits, tokens):
        return self.sampling(logits, tokens)

    def propose(self, text, k, rng):
        return self.drafter.propose(text, k, rng)

    def added(self, draft, verdict, k):
        return [*draft.tokens[list(verdict.nodes)].tolist(), int(verdict.next_token)]

    def kept(self, new, stop_tokens):
        """The number of new tokens that stay, and whether the text stops."""
        stop = next((i for i, token in enumerate(new) if token in stop_tokens), None)
        return (len(new), False) if stop is None else (stop + 1, True)

    def count(self, n_accepted, n_kept):
        return min(n_accepted, n_kept)

    def begin(self, prompt):
        return list(prompt)

    def generate(self, prompt, n_tokens, rng, stop_tokens=()):
        text, n_prompt, self.rounds, found, stops = self.begin(prompt), len(prompt), [], [], False
        end, seconds = n_prompt + n_tokens, Laps().seconds
        while len(text) < end and not stops:
            k = self.room(end - len(text), len(text))
            draft = self.propose(list(text), k, rng)
            rows = self.rows(list(text), draft.tokens.tolist())
            verdict = self.verifier(draft, rows, rng)
            new = self.added(draft, verdict, k)
            n_kept, stops = self.kept(new, stop_tokens)
            text += new[:n_kept]
            said = Verdict(self.count(verdict.n_accepted, n_kept), new[n_kept - 1])
            found.append(Round(np.array(new[:n_kept], np.int64), draft, said, None, seconds))
        return collect(text[:n_prompt], found)


def loop(**steps):
    return type("Loop", (Loop,), steps)


def looks_back(seen):
    return loop(seen=staticmethod(seen), toy=Sampling(processors=[FrequencyPenalty(1, n_prompt=2)]))


def masks(seen):
    return loop(seen=staticmethod(seen), toy=MASKED)


def sampled_by(change):
    """The loop, with rows computed by change(sampling) instead of the sampling."""
    return loop(sampled=lambda self, logits, tokens: change(self.sampling)(logits, tokens))


RIGHT_ROWS = "the rows of the target are sampling(logits, tokens)"
FIELDS = [f.name for f in fields(Sampling)][1:-1]  # mistakes with processors are in LOOKING_BACK
SAMPLING = [
    *(Mistake(f"your sampler ignores sampling.{name}: do not read single fields of `sampling`, the rows of the target "
              "are sampling(logits, tokens), which applies all of them",
              sampled_by(lambda s, name=name: replace(s, **{name: getattr(Sampling, name)}))) for name in FIELDS),
    Mistake(f"your sampler ignores `sampling`: {RIGHT_ROWS}, at its temperature", sampled_by(lambda s: Sampling())),
    Mistake(f"your sampler applies the temperature twice: {RIGHT_ROWS}, once",
            loop(sampled=lambda self, logits, tokens: power(self.sampling(logits, tokens), self.sampling.temperature))),
    Mistake("your sampler is greedy: it takes the target's most probable token and draws nothing; draw from the row "
            "with rng",
            sampled_by(lambda s: Sampling(0))),
]  # fmt: skip


def power(rows, temperature):
    rows = rows ** (1 / temperature) if temperature else rows
    return rows / rows.sum(axis=1, keepdims=True)


def planned(self, text, drafted):
    """The rows, as if all requested tokens had been drafted."""
    tokens = [*text, *drafted]
    return self.sampling(self.target(tokens, n_last=min(self.k + 1, len(tokens))), tokens)


def plans(self, text, k, rng):
    self.k = k
    return self.drafter.propose(text, k, rng)


def replaces_and_goes_on(draft, rows, rng):
    """Replaces each draft token that is rejected, and keeps those after it."""
    for i, x in enumerate(draft.tokens):
        if not rng.random() * draft.probs[i, x] < rows[i, x]:
            draft.tokens[i] = sample_token(residual(rows[i], draft.probs[i]), rng)
    return Verdict(len(draft.tokens), sample_token(rows[-1], rng))


class OneNoise(Loop):
    def propose(self, text, k, rng):
        self.noise = Recorder(rng)
        return self.drafter.propose(text, k, self.noise)

    def verifier(self, draft, rows, rng):
        for i, x in enumerate(draft.tokens):
            if not rng.random() * draft.probs[i, x] < rows[i, x]:
                return Verdict(i, sample_token(residual(rows[i], draft.probs[i]), Repeated(self.noise.uniforms[i])))
        return Verdict(len(draft.tokens), sample_token(rows[-1], rng))


class Repeated:
    """A random source that always returns the same number."""

    def __init__(self, number):
        self.random = lambda: number


class FromThePrompt(Loop):
    def begin(self, prompt):
        self.prompt = list(prompt)
        return list(prompt)

    def propose(self, text, k, rng):
        return self.drafter.propose(list(self.prompt), k, rng)

    def rows(self, text, drafted):
        return Loop.rows(self, self.prompt, drafted)


class GreedyWithSoftRows(Loop):
    def propose(self, text, k, rng):
        greedy = replace(self.drafter.sampling, temperature=0)
        draft = type(self.drafter)(self.drafter.model, sampling=greedy).propose(text, k, rng)
        tokens = [*text, *draft.tokens.tolist()]
        rows = self.drafter.sampling(self.drafter.model(tokens, n_last=len(draft.tokens) + 1), tokens)[:-1]
        return Draft(draft.tokens, rows)


class SeedsInTheLoop(Loop):
    def verifier(self, draft, rows, rng):
        return rejection(draft, rows, np.random.default_rng(0))


LOOPS = [
    Mistake("the rejected draft token stays in the text, and its replacement follows it: the replacement takes its "
            "place",
            loop(added=lambda self, draft, v, k: [*draft.tokens[: v.n_accepted + 1].tolist(), int(v.next_token)])),
    Mistake("your sampler goes wrong where every draft token is accepted: keep all K of them and the bonus (a[:-0] is "
            "empty)",
            loop(added=lambda self, draft, v, k: [
                *draft.tokens.tolist()[: -(len(draft.tokens) - v.n_accepted)], int(v.next_token)]),
            name="a[:-0] after full acceptance", seen="prune_cache in "
            "https://github.com/romsto/Speculative-Decoding/blob/HEAD/utils/caching.py (where it empties the cache)",
            why="The rejected tokens are cut off with a[:-n]. If n = 0, a[:-0] is empty: all accepted tokens are "
                "lost."),
    Mistake("after a rejection, drop the draft tokens that follow it: they were drafted for a different text",
            loop(verifier=staticmethod(replaces_and_goes_on))),
    Mistake("each round drafts for the prompt, and asks the target about it: continue from the text so far",
            FromThePrompt),
    Mistake("your sampler goes wrong where the drafter proposes fewer than K tokens: count the tokens of the draft",
            loop(rows=planned, propose=plans)),
    Mistake("the draft's most probable token is taken, and its row is given as if it had been drawn: draw it, or give "
            "a one-hot row", GreedyWithSoftRows),
    Mistake("a rejected token is replaced by a draw with the random number that drew the draft token: draw it with a "
            "number of its own", OneNoise, name="one noise for draft and correction", options={"kind": "engines"},
            why="What replaces a rejected token is drawn with the random number that drew the token. It was rejected "
            "there, so the number is not independent of the residual: with p = (.1, .6, .3) and q = (.5, .3, .2) token "
            "2 has probability .2, not .3. With Gumbel noise instead of a uniform number it is 18/65. Draw with a "
            "number of its own.",
            seen="https://github.com/vllm-project/vllm/pull/47386, https://github.com/vllm-project/vllm/pull/54282 "
            "(the fix)"),
]  # fmt: skip

ROW_I = "; row i of sampling(logits, tokens) looks at the text and the first i draft tokens"


def rejected_too(rounds, i):
    tokens = list(rounds[0][0])
    for (_, drafted), (text, _) in pairwise(rounds):
        tokens += [*drafted, text[-1]]
    return [*tokens, *rounds[-1][1][:i]]


def back(hint, seen_by, name="", seen=None, why="", make=looks_back):
    more = {"seen": seen} if seen else {}
    options = {"kind": "engines"}
    return Mistake(hint + ROW_I, make(seen_by), name and f"looking back: {name}", why=why, options=options, **more)


VLLM, SGLANG = "https://github.com/vllm-project/vllm", "https://github.com/sgl-project/sglang"
LOOKING_BACK = [
    back("your sampler ignores penalties and masks, which depend on the tokens before each row", lambda r, i: None,
         "ignored", f"{VLLM}/issues/18902, https://github.com/NVIDIA/TensorRT-LLM/pull/17701 (before it)",
         "Penalties are silently ignored where a draft is verified."),
    back("all rows of a round are given the same tokens, those before the draft", lambda r, i: r[-1][0],
         "one state for all rows", f"{SGLANG}/pull/22049, {SGLANG}/pull/28242, {SGLANG}/issues/40244"),
    back("only the last token of each round is remembered, not the accepted ones before it",
         lambda r, i: [*r[0][0], *(text[-1] for text, _ in r[1:]), *r[-1][1][:i]], "last token of each round",
         f"{SGLANG}/pull/33643",
         "The state is updated once a round, with the last token: the better the draft, the weaker the penalties."),
    back("the bonus is drawn without regard to the draft tokens before it",
         lambda r, i: r[-1][0] if i == len(r[-1][1]) else [*r[-1][0], *r[-1][1][:i]], "bonus without the draft",
         f"{VLLM}/pull/19482 (before it)"),
    back("penalties and masks are applied only to the row of the bonus, not to those of the draft tokens",
         lambda r, i: [*r[-1][0], *r[-1][1]] if i == len(r[-1][1]) else None, "the bonus alone",
         f"{SGLANG}/pull/28200, {VLLM}/pull/42802 (min-p)"),
    back("penalties and masks are applied to the rows of the draft tokens, but not to that of the bonus",
         lambda r, i: None if i == len(r[-1][1]) else [*r[-1][0], *r[-1][1][:i]], "all rows but the bonus",
         f"{VLLM}/pull/44292 (where a draft token was not allowed)", make=masks),
    back("penalties and masks are applied only to the first row of a round, not to those after draft tokens",
         lambda r, i: None if i else r[-1][0], "the first row alone", f"{VLLM}/issues/54437 (where the draft was "
         f"stale), {VLLM}/pull/36138 (where the grammar began within a draft)", make=masks),
    back("the last token of the text counts twice from the second row on",
         lambda r, i: [*r[-1][0], *r[-1][0][-1:], *r[-1][1][:i]] if i else r[-1][0], "last token twice",
         f"{VLLM}/pull/33251 (found in its review)", "The last token of the text is among the counts, and is added "
         "again as the first input of the round. A repetition penalty, which does not count, hides it."),
    back("rejected draft tokens stay among the tokens that later rounds look back at", rejected_too, "rejected tokens "
    "stay"),
    back("row i is given draft token i, which is the token that it predicts",
         lambda r, i: [*r[-1][0], *r[-1][1][: i + 1]], "one token too many"),
    back("row i is not given draft token i - 1, the last one before it",
         lambda r, i: [*r[-1][0], *r[-1][1][: max(0, i - 1)]], "one token too few"),
    back("every row is given all draft tokens, even those after it", lambda r, i: [*r[-1][0], *r[-1][1]]),
    back("the sampling is given the text without the draft, so its rows belong to earlier tokens",
         lambda r, i: r[-1][0][: len(r[-1][0]) - len(r[-1][1]) + i]),
]  # fmt: skip


def writes_to_the_prompt(self, prompt):
    return prompt


OTHERWISE = [
    Mistake("your sampler returns", loop(room=lambda self, n_left, n_text: min(self.K, self.target.n_ctx - n_text - 1)),
            name="overshoot", why="The last round adds up to K tokens more than were asked for. Draft min(K, "
            "remaining - 1, n_ctx - len - 1).",
            seen="https://github.com/jaymody/speculative-sampling/blob/HEAD/main.py, "
            "https://github.com/feifeibear/LLMSpeculativeSampling/blob/HEAD/sampling/speculative_sampling.py"),
    Mistake("your sampler misses a stop token in the middle of a block",
            loop(kept=lambda self, new, stop_tokens: (len(new), new[-1] in stop_tokens)),
            name="stop token missed in mid-block", why="Only the last token of a round is compared with the stop "
            "token; one inside an accepted block is missed.",
            seen="https://github.com/huggingface/transformers/pull/31301 "
            "(prompt lookup), https://github.com/huggingface/transformers/issues/47912, "
            "https://github.com/LostRuins/koboldcpp/issues/1276"),
    Mistake("your sampler counts draft tokens after the stop token",
            loop(count=lambda self, n_accepted, n_kept: n_accepted),
            name="a counter past the stop token", options={"kind": "engines"}, why="The text ends at the stop token, "
            "but the counter of accepted tokens includes those that were accepted after it: tokens per call and "
            "acceptance are too high.",
            seen="https://github.com/vllm-project/vllm/issues/56101 (6 tokens where 3 are in the text)"),
    Mistake("your sampler uses a source of randomness other than rng: a generator of its own", SeedsInTheLoop,
            name="reseeding in the loop", why="Every round starts with the same random numbers.",
            seen="https://github.com/feifeibear/LLMSpeculativeSampling/pull/8"),
    Mistake("your sampler writes to its arguments", loop(begin=writes_to_the_prompt), name="the prompt written to",
            why="The new tokens are appended to the caller's own list.",
            seen="inputs.append(...) in https://github.com/jaymody/picoGPT/blob/HEAD/gpt2.py"),
]  # fmt: skip
