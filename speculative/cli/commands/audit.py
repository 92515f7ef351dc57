"""Is a running server lossless? Bet on it: its texts, against the target's own probabilities.

The server has OpenAI's /v1/completions. The target's probabilities come from requests for one token, which engines
answer without a draft, or from a second server --without one. The bets may be looked at any time (docs/audit.md).
Greedy texts, repeated requests, stop texts, limits and counts are compared as well. Exit code 1 if something differs.
"""

import math
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic

import numpy as np
from tqdm import tqdm

from speculative.testing.betting import BATCH, audit_samples

from .. import options as shared
from ..journal import Journal
from ..options import option
from ..server import Server, ServerError
from ..values import fields_of_json, flag, number, whole
from . import Failed

TAKES = "prompt top_k temperature n_max seed json"
WORD = "url"
EXAMPLES = ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1 --without http://127.0.0.1:8081/v1")
N_GREEDY, N_SHORT = 48, 24  # tokens of the greedy text, and of those that stop
ROUNDING = 0.05  # greedy texts may differ by rounding where two logprobs are closer than this
FEW = 100  # accepted draft tokens
OTHERS = [  # requests that keep the audited ones company
    {"temperature": 0.3},
    {"temperature": 1.7, "top_k": 5},
    {"temperature": 0, "max_tokens": 9},
    {"presence_penalty": 1.5},
]
BOTH = "so do texts of one token: do the settings differ, or does an earlier request leave something behind?"
NOT_SEEN = "not seen: differences below the bounds, rare states, long contexts, faults that one-token requests share"


# fmt: off
@dataclass(frozen=True)
class Options(shared.Options):
    url: str = option("", "URL", str, "the server, such as http://127.0.0.1:8080/v1")
    without: str = option("", "URL", str, "the same server without a draft, if the first one has no logprobs")
    model: str = option("", "M", str, "the model's name in the requests")
    prompt: str = option("Once upon a time", "TEXT", str,
        "a prompt after which the draft is often right: only accepted draft tokens are an audit")
    top_k: int = option(3, "N", whole(0), "sample from the N most probable tokens; 0 means all")
    temperature: float = option(1, "T", number(least=0.01), "other than 1 it needs --top_k or --without")
    n_tokens: int = option(5, "N", whole(1, 64), "the number of tokens of each text")
    n_max: int = option(16384, "N", whole(BATCH), "the largest number of texts")
    alpha: float = option(0.001, "P", number(least=1e-12, most=0.5),
        "the probability that a right server is called different")
    at_once: int = option(4, "N", whole(1, 256), "the number of requests at once")
    seed: int = option(0, "N", whole(0), "the seed of the requests' seeds")
    chat: bool = option(False, "", flag, "ask /chat/completions", needs="without")
    more: object = option(None, "JSON", fields_of_json, "further fields of each request; null leaves a field out")
    key: str = option("", "KEY", str, "the API key")
# fmt: on


def run(options):
    if not options.url:
        raise ValueError("audit: expected a running server, such as http://127.0.0.1:8080/v1")
    if options.chat and not options.without:
        raise ValueError("--chat needs --without: the texts of a chat have no rows to compare with")
    if options.temperature != 1 and not (options.without or options.top_k):
        raise ValueError(f"--temperature {options.temperature} needs --top_k: the other tokens' logprobs are not known")
    with Journal(options.json, options) as journal:
        audit = Audit(options, journal.keep)
        try:
            audit.run()
        except KeyboardInterrupt:
            print(*audit.lines, "interrupted", sep="\n")
            raise
        journal.finish(lambda: {"audit": audit.found}, "\n".join(audit.lines))
    if audit.failed:
        raise Failed


class Audit:
    """The parts of an audit: `lines` is the page so far, `found` has the numbers, `failed` what makes exit code 1."""

    def __init__(self, options, keep):
        self.options, self.keep, self.counts = options, keep, np.zeros(2, int)
        self.server, self.other = Server(options.url, options), options.without and Server(options.without, options)
        self.lines, self.found, self.failed = [], {}, []

    def run(self):
        o = self.options
        settings = f"temperature {o.temperature:g}, top_k {o.top_k}, {o.n_tokens} tokens"
        self.lines.append(f"{o.url} against {o.without or 'its own logprobs'}: {settings}")
        self.prompt, self.others = self.keep("requests", self.requests).values()
        if refused := [other for other in OTHERS if other not in self.others]:
            self.lines.append(f"refused, so never beside the texts: {refused}")
        with ThreadPoolExecutor(o.at_once) as self.pool:
            try:
                self.part(self.repeated)  # first, as the texts change what a server has cached
                self.sampled()
                for part in (self.greedy, self.stops, self.seeds):
                    self.part(part)
            except BaseException:
                self.pool.shutdown(cancel_futures=True)
                raise
        self.lines.append(NOT_SEEN)

    def requests(self):
        """The prompt, as token ids if its rows are asked for, and the other requests that the server accepts."""
        prompt, others = self.options.prompt if self.other else self.server.encoded(self.options.prompt), []
        self.server.ask(prompt, 1)
        for other in OTHERS:
            with suppress(ServerError):
                self.server.ask(prompt, 1, **other)
                others.append(other)
        return {"prompt": prompt, "others": others}

    def part(self, compare):
        """Keep what compare() says, a line and whether something is wrong."""

        def told():
            try:
                line, wrong = compare()
            except ServerError as error:
                line, wrong = f"{compare.__name__.upper()}: not compared: {error}", False
            return {"line": line, "wrong": wrong}

        self.found[compare.__name__] = self.keep(compare.__name__, told)
        self.lines.append(self.found[compare.__name__]["line"])
        self.failed += [compare] * self.found[compare.__name__]["wrong"]

    def beside(self, i, prompt, n_tokens):
        """Send a different request; its answer does not matter."""
        if self.others:
            self.pool.submit(self.server.ask, prompt, n_tokens, **self.others[i % len(self.others)])

    # ------------------------------------------------------------------------------------------------ many texts

    def sampled(self):
        self.begun, rows = monotonic(), None
        if not self.other:
            rows = self.rows("rows")
        audit = self.audited(self.options.n_tokens, rows, self.options.n_max, "sampled")
        before, token, share, right, deviance = audit.worst()
        before, token = self.server.name(before), self.server.name([token])
        self.lines += [
            *self.of_the_bounds(audit),
            f"most different: after {before!r}, {token!r} has {share:.4f}, and {right:.4f} without a draft "
            f"(root of the deviance {deviance:.1f})",
        ]
        if rows:
            again = self.rows("rows again")
            moved = max(abs(p - again[text].get(x, 0)) for text in rows.keys() & again for x, p in rows[text].items())
            self.lines.append(f"the target's probabilities, before and after the texts: {moved:.1e} apart at most")
        self.found["sampled"] = {"texts": audit.n, "log_e": audit.log_e, "bounds": audit.bounds()}
        doubt = "" if self.counts[1] >= FEW else "; BUT DID IT DRAFT?"
        said = f"no difference found, total variation {audit.levels[-1].most:.3f} at most{doubt}"
        if audit.differs:
            self.failed.append("sampled")
            said = f"DIFFERENT; {audit.winner}"
            if "repeat" not in audit.winner:
                control = self.audited(1, rows and {(): rows[()]}, min(self.options.n_max, 2 * audit.n), "one token")
                said += f"; {BOTH if control.differs else 'texts of one token do not differ: it is the draft'}"
        self.lines.append(f"SAMPLED TEXTS: {said}")

    def rows(self, name):
        def asked():
            rows = self.server.rows(self.prompt, self.options.n_tokens)
            return {"rows": [[list(text), list(row.items())] for text, row in rows.items()]}

        return {tuple(text): dict(map(tuple, row)) for text, row in self.keep(name, asked)["rows"]}

    def audited(self, n_tokens, rows, n_max, about):
        """The SampleAudit of up to n_max texts of n_tokens tokens."""
        sources = [partial(self.texts, server, n_tokens, {}, f"{about}, {i}") for i, server in
                   enumerate([self.server, self.other]) if server]  # fmt: skip
        audit = None

        def watch(so_far):
            nonlocal audit
            audit = so_far
            bar.update(BATCH)
            bar.set_postfix_str(f"total variation {audit.levels[-1].most:.3f} at most")

        with tqdm(total=n_max, unit=" texts", leave=False, disable=None) as bar:
            try:
                return audit_samples(*sources[:1], n_tokens + (rows is None), rows=rows, other=[*sources, None][1],
                                     n_max=n_max, alpha=self.options.alpha, watch=watch)  # fmt: skip
            except KeyboardInterrupt:
                self.lines += self.of_the_bounds(audit) if audit else []
                raise

    def texts(self, server, n_tokens, seen, about, n):
        """The next n texts of a server; `seen` counts them."""
        seen["n"] = seen.get("n", 0) + 1
        part = self.keep(f"{about}, {seen['n']}", lambda: self.batch(server, n_tokens, f"{about}, {seen['n']}", n))
        self.counts += part["counts"] if server is self.server else 0
        server.names |= {int(token) if token.isdecimal() else token: name for token, name in part["names"].items()}
        return part["texts"]

    def batch(self, server, n_tokens, about, n):
        """n texts, every second one without a seed, and a different request beside every third."""
        seeds = np.random.default_rng([self.options.seed, *about.encode()]).integers(2**31, size=n)
        requests = []
        for i, seed in enumerate(seeds.tolist()):
            if i % 3 == 0:
                self.beside(i // 3, self.prompt[: len(self.prompt) // 2 + 1], n_tokens + 3)
            seeded = {"seed": seed} if i % 2 else {}
            requests.append(self.pool.submit(server.ask, self.prompt, n_tokens, None if self.other else 1, **seeded))
        answers = [request.result() for request in requests]
        counts = [sum(answer.drafted for answer in answers), sum(answer.accepted for answer in answers)]
        names = {str(token): name for token, name in server.names.items()}
        return {"texts": [answer.tokens for answer in answers], "counts": counts, "names": names}

    def of_the_bounds(self, audit):
        each, seconds = " of each" * bool(self.other), monotonic() - self.begun
        e_value = f"{math.exp(audit.log_e):.2g}" if audit.log_e < 700 else f"10^{audit.log_e / math.log(10):.0f}"
        drafts = "{:,}, accepted: {:,}".format(*self.counts) if any(self.counts) else "none, or the server does not say"
        yield f"{audit.n:,} texts{each}, {seconds:.0f} s, e-value {e_value}; draft tokens: {drafts}"
        yield "  first different  distance by chance  at least   at most"
        for k, (n, distance, chance, least, most) in enumerate(audit.bounds(), 1):
            yield f"{k:7} {n:9} {distance:9.4f} {chance:9.4f} {least:9.4f} {most:9.4f}"

    # ------------------------------------------------------------------------------------------------ single texts

    def greedy(self):
        """The greedy text beside the one without a draft: from one-token requests, or from the other server."""
        mine, alone = self.server.ask(self.prompt, N_GREEDY, None if self.other else 1, temperature=0).tokens, []
        if self.other:
            alone = self.other.ask(self.prompt, N_GREEDY, temperature=0).tokens
        while len(alone) < len(mine) and alone == mine[: len(alone)]:
            alone += self.server.ask([*self.prompt, *alone], 1, 1, temperature=0).tokens
        if (i := first_different(mine, alone)) is None:
            return f"GREEDY TEXTS: equal, {len(alone)} tokens", False
        words, wrong = self.apart(alone[:i])
        x, y = (self.server.name(text[i : i + 1]) for text in (mine, alone))
        return f"GREEDY TEXTS: token {i + 1} differs, {x!r} for {y!r}; {words}", wrong

    def apart(self, before):
        """(how far the two most probable tokens after a text are apart, whether that is more than rounding)."""
        server, prompt = (self.other, self.prompt + "".join(map(str, before))) if self.other else (
            self.server, [*self.prompt, *before])  # fmt: skip
        rows = []
        with suppress(ServerError):  # one without logprobs
            rows = [] if self.options.chat else server.ask(prompt, 1, 2, temperature=0).rows
        if not rows or len(rows[0]) < 2:
            return "without logprobs, rounding and a bug look the same", False
        first, second = sorted(rows[0].values())[:-3:-1]
        is_more = first - second >= ROUNDING
        return f"two logprobs {first - second:.4f} apart: {'not ' * is_more}rounding", is_more

    def repeated(self):
        """One greedy request, alone and beside others: the same text each time."""
        ask, requests = partial(self.server.ask, self.prompt, N_GREEDY, None if self.other else 1, temperature=0), []
        alone = [ask().tokens for _ in range(4)]
        if (n := len({*map(tuple, alone)})) > 1:
            return f"ONE REQUEST, FOUR TIMES: {n} DIFFERENT texts", True
        for i in range(2 * self.options.at_once):
            requests.append(self.pool.submit(ask))
            self.beside(i, self.prompt, N_GREEDY)
        firsts = [first_different(request.result().tokens, alone[0]) for request in requests]
        different = [i for i in firsts if i is not None]
        if not different:
            return f"ONE REQUEST, FOUR TIMES: one text, also {len(requests)} times beside others", False
        words, wrong = self.apart(alone[0][: min(different)])
        return f"ONE REQUEST: {len(different)} of {len(requests)} texts DIFFER beside others; {words}", wrong

    def stops(self):
        """Stop texts in the middle of a block and close to the limit, limits, and the number of tokens."""
        plain = {n: self.server.ask(self.prompt, n, temperature=0) for n in (N_SHORT, *range(1, 16))}
        text, wrong = plain[N_SHORT].text, []
        later = [*re.finditer(r"\w+", text)][3:]
        near = [word[0] for word in later if text.index(word[0]) == word.start()][:1]
        words = [*dict.fromkeys(re.findall(r"\w+|[^\w\s]", text)[1:13])]
        cases = [*((word, n) for word in near for n in range(3, 16)), *((word, N_SHORT) for word in words)]
        for stop, n in cases:
            answer = self.server.ask(self.prompt, n, temperature=0, stop=[stop])
            wanted = plain[n].text, plain[n].reason
            if stop in plain[n].text:
                wanted = plain[n].text.partition(stop)[0], "stop"
            if (answer.text.rstrip(), answer.reason) != (wanted[0].rstrip(), wanted[1]):
                wrong.append(f"stop {stop!r}, {n} tokens: {(answer.text, answer.reason)} and not {wanted}")
        for n, answer in plain.items():
            is_counted = answer.reason != "length" or answer.n in (n, None)
            if not is_counted or not text.startswith(answer.text.rstrip("\ufffd")):
                wrong.append(f"max_tokens {n}: {answer.text!r}, {answer.n} tokens")
        n_cases = len(cases) + len(plain)
        line = f"STOPS, LIMITS, COUNTS: {n_cases - len(wrong)} of {n_cases} right"
        more = [f"and {len(wrong) - 4} more"] * (len(wrong) > 4)
        return "\n    ".join([line, *wrong[:4], *more]), bool(wrong)

    def seeds(self):
        a, b, c = (self.server.ask(self.prompt, 16, temperature=1, seed=seed).text for seed in (5, 5, 6))
        same, other = "one text" if a == b else "DIFFERENT texts", "two" if a != c else "ONE"
        return f"SEEDS: one seed gives {same}, two seeds {other}", False


def first_different(a, b):
    """The first position where two texts differ, or None."""
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), None)
