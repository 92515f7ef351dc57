"""Samplers as students write them: RIGHT, NOTES, and WRONG with the words that the first line must contain."""

import inspect

import numpy as np

from speculative import AutoregressiveSampler, Sampling, residual, sample_token  # noqa: F401 (Sampling: in answers)
from students.edits import edited

GENERATOR = np.random.default_rng(1)


class Sampler:
    def __init__(self, target, drafter, K, sampling):
        self.target, self.drafter, self.K, self.sampling = target, drafter, K, sampling

    def generate(self, prompt, n_tokens, rng):
        text, end = list(prompt), len(prompt) + n_tokens
        while len(text) < end:
            k = min(self.K, end - len(text) - 1, self.target.n_ctx - len(text) - 1)
            draft = self.drafter.propose(text, k, rng)
            drafted, new = draft.tokens.tolist(), []
            rows = self.sampling(self.target(text + drafted, n_last=len(drafted) + 1), text + drafted)
            for p, q, x in zip(rows, draft.probs, drafted):
                if rng.random() * q[x] < p[x]:
                    new.append(x)
                else:
                    new.append(sample_token(residual(p, q), rng))
                    break
            else:
                new.append(sample_token(rows[-1], rng))
            text += new
        return text[len(prompt) :]


def changed(*changes):
    return edited(inspect.getsource(Sampler), "Sampler", *changes, kept=globals())


class Decorated(Sampler):
    """Takes no stop tokens, which its signature does not tell, and returns an array."""

    def generate(self, *given, **options):
        return np.array(Sampler.generate(self, *given, **options), np.int64)


def ties(rows, sampler, tokens, drafted):
    """The rows, with equal maxima sharing the probability at temperature 0."""
    if getattr(sampler.sampling, "temperature", 1):
        return rows
    logits = sampler.target(tokens, n_last=len(drafted) + 1)
    is_largest = logits == logits.max(axis=1, keepdims=True)
    return is_largest / is_largest.sum(axis=1, keepdims=True)


ROOM, ASK, ROWS = (
    "self.K, end - len(text) - 1, ",
    "text + drafted, n_last=len(drafted) + 1",
    "self.sampling(self.target(",
)
ALL_ROWS = f"{ROWS}{ASK}), text + drafted)"
ACCEPT, RESIDUAL, BONUS = (
    "rng.random() * q[x] < p[x]",
    "sample_token(residual(p, q), rng)",
    "sample_token(rows[-1], rng)",
)
ADD, RESULT, STOPS = "text += new", "return text[len(prompt) :]", ("n_tokens, rng):", "n_tokens, rng, stop_tokens=()):")
OTHER = "your sampler uses a source of randomness other than rng"

RIGHT = {"decorated": Decorated} | {name: changed(*changes) for name, changes in {
    "lists alone": ("list(prompt)", "[] + prompt"),
    "never all K": (ROOM, f"1, {ROOM}"),
}.items()}  # fmt: skip
NOTES = {
    "one at a time": (lambda target, drafter, K, sampling: AutoregressiveSampler(target, sampling=sampling),
                      ("54.9 % where K = 1", "it drafts nothing")),
    "bonus thrown away": (changed(ADD, "text += new[:-1] if len(new) > self.K else new"), ("no bonus follows",)),
}  # fmt: skip

WRONG = {name: (changed(*changes), tuple(hint.split(" ... "))) for name, (hint, *changes) in {
    "np.random": (f"{OTHER}: np.random", ACCEPT, "np.random.rand() * q[x] < p[x]"),
    "its own generator": (f"{OTHER} ... a generator of", ACCEPT, "GENERATOR.random() * q[x] < p[x]"),
    "default_rng()": (f"{OTHER} ... default_rng", ACCEPT, "np.random.default_rng().random() * q[x] < p[x]"),
    "default_rng(0)": (f"{OTHER} ... default_rng", BONUS, "sample_token(rows[-1], np.random.default_rng(0))"),
    "ignores sampling": ("ignores `sampling`", ROWS, "Sampling()(self.target("),
    "temperature twice": ("temperature twice", ALL_ROWS,
                          f"self.sampling(np.log(np.maximum({ALL_ROWS}, 1e-300)), text + drafted)"),
    "greedy": ("your sampler is greedy", ROWS, "Sampling(0)(self.target("),
    "the temperature alone": ("ignores sampling.top_k ... applies all of them", ROWS,
                              "Sampling(self.sampling.temperature)(self.target("),
    "accepts all": ("accept every draft token", ACCEPT, "True"),
    "upside down": ("upside down", ACCEPT, "rng.random() * p[x] < q[x]"),
    "one uniform number": ("one uniform number decides on several draft tokens", "[]\n",
                           "[]\n            u = rng.random()\n",
                           ACCEPT, "u * q[x] < p[x]"),
    "replaced from the target": ("on a rejection you drew from the target", RESIDUAL, "sample_token(p, rng)"),
    "replaced from the draft": ("on a rejection you drew from the draft", RESIDUAL, "sample_token(q, rng)"),
    "bonus by argmax": ("you took the most probable token as the bonus", BONUS, "int(rows[-1].argmax())"),
    "bonus from the row before": ("the bonus from the row of the last draft token", BONUS,
                                  "sample_token(rows[max(0, len(rows) - 2)], rng)"),
    "float32": ("nearly right ... float32", ALL_ROWS, f"{ALL_ROWS}.astype(np.float32)"),
    "last row for all": ("goes wrong where a draft token is rejected", ALL_ROWS,
                         f"np.repeat({ROWS}text + drafted, 1), text), len(drafted) + 1, axis=0)"),
    "rows one early": ("even the first token does not have the target's distribution", ALL_ROWS,
                       "self.sampling(self.target((text + drafted)[:-1], len(drafted) + 1))"),
    "adds to the rejected": ("the rejected draft token stays in the text", f"new.append({RESIDUAL})",
                             f"new += [x, {RESIDUAL}]"),
    "keeps those after the rejected": ("after a rejection, drop the draft tokens that follow it", "break", "pass"),
    "a[:-0]": ("keep all K of them and the bonus (a[:-0] is empty)", ADD,
               "text += [*drafted[: len(new) - 1 - len(drafted)], new[-1]]"),
    "reckons with K": ("goes wrong where the drafter proposes fewer than K tokens", ASK,
                       "text + drafted, n_last=min(k + 1, len(text + drafted))"),
    "starts from the prompt": ("each round drafts for the prompt", "propose(text", "propose(list(prompt)", ASK,
                               "list(prompt) + drafted, len(drafted) + 1"),
    "no guard": ("n_ctx is 12 ... min(K, remaining - 1, n_ctx - len(tokens) - 1)",
                 f"min({ROOM}self.target.n_ctx - len(text) - 1)", "self.K",
                 RESULT, f"{RESULT}[:n_tokens]"),
    "too many": ("your sampler returns 3 tokens where 2 were asked for", ROOM, "self.K, "),
    "with the prompt": ("tokens where 0 were asked for ... the new tokens alone, without the prompt",
                        RESULT, "return text"),
    "never ends": ("does not return: an endless loop? After 400 calls", ADD, "pass"),
    "without the stop token": ("leaves the stop token out", *STOPS, RESULT,
                               """new = text[len(prompt) :]
        return new[: next((i for i, x in enumerate(new) if x in stop_tokens), n_tokens)]"""),
    "greedy where nothing is drafted": ("where nothing is drafted you take the target's most probable token", BONUS,
                                        f"{BONUS} if drafted else int(rows[-1].argmax())"),
    "throws a drawn token away": ("a draft token that was drawn is thrown away", "draft.tokens.tolist(), []\n",
                                  "[*draft.tokens.tolist(), 0], []\n            drafted = drafted[: drafted.index(0)]\n"),
    "shares ties out": ("the first of two equal maxima", ALL_ROWS, f"ties({ALL_ROWS}, self, text + drafted, drafted)"),
    "a limit": ("not where tokens are nearly certain", ACCEPT, f"({ACCEPT} or 0.99 < q[x] < 1)"),
    "old draft near the end": ("near the end of the context", "draft = self.drafter.propose(text, k, rng)",
                               """if "draft" not in locals() or len(text) + self.K < self.target.n_ctx:
                draft = self.drafter.propose(text, k, rng)
            draft = type(draft)(draft.tokens[:k], draft.probs[:k])"""),
    "limit before the stop": ("reaches both a stop token and n_tokens", *STOPS, ROOM, "self.K, ",
                              RESULT, f"{RESULT}[:n_tokens]", ADD, """n = len(new)
            if len(text) + n < end:
                n = next((i for i, x in enumerate(new, 1) if x in stop_tokens), n)
            text += new[:n]
            if new[n - 1] in stop_tokens:
                break"""),
    "writes to the prompt": ("writes to its arguments", "list(prompt)", "prompt"),
    "None": ("yours returns None", RESULT, "pass"),
    "half tokens": ("whole numbers ... [1.5]", RESULT, "return [x + 0.5 for x in text[len(prompt) :]]"),
    "asserts": ("your sampler fails for prompt = [2, 1], n_tokens = 1, K = 1 ... `assert len(rows) > 3`",
                ADD, "assert len(rows) > 3"),
}.items()}  # fmt: skip
WRONG |= {"no generate": (lambda target, drafter, K, sampling: None, ("a method generate(prompt, n_tokens, rng)",)),
          "gamma": (lambda target, drafter, gamma: None, ("make(target, drafter, K=1", "TypeError"))}  # fmt: skip
