"""A server of /v1/completions on 127.0.0.1 that drafts, right or wrong, with models of twelve words."""

import contextlib
import itertools
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from speculative import AutoregressiveSampler, ModelDrafter, Sampling, SpeculativeSampler, rejection
from speculative.interfaces import Draft, Verdict
from speculative.logits.probs import sample_token
from speculative.testing import TableModel
from speculative.verifiers.lenient import Lenient
from speculative.verifiers.typical import Typical

WORDS = ["the", "old", "king", "had", "three", "sons", "and", "one", "day", "we", "went", "out"]
PROBS, NOISE = np.random.default_rng(24).dirichlet(np.full(12, 0.4), size=(2, 12, 12))
TARGET, DRAFT = TableModel(PROBS, n_ctx=256), TableModel(0.75 * PROBS + 0.25 * NOISE, n_ctx=256)
K = 3


class Stale:
    """WRONG: the rows of draft tokens see a token that is no longer in the text."""

    n_vocab, n_ctx = TARGET.n_vocab, TARGET.n_ctx

    def __call__(self, tokens, n_last=1):
        rows = [TARGET([*tokens[:end], *tokens[end - 1 : end]] if n_last > 1 and end < len(tokens) else tokens[:end])[0]
                for end in range(len(tokens) - n_last + 1, len(tokens) + 1)]  # fmt: skip
        return np.array(rows)


class GreedyDraft(ModelDrafter):
    """WRONG: the draft's most probable tokens, with the rows that they were not sampled from."""

    def propose(self, tokens, K, rng):
        text, rows = list(tokens), []
        for _ in range(K):
            rows.append(self.sampling(self.model(text), text)[0])
            text.append(int(rows[-1].argmax()))
        return Draft(np.array(text[len(tokens) :], np.int64), np.reshape(rows, (K, 12)))


def resampled(draft, rows, rng):
    """WRONG: after a rejection, a token from the target's own row instead of the residual."""
    for i, token in enumerate(draft.tokens):
        if not rng.random() * draft.probs[i][token] < rows[i][token]:
            return Verdict(i, sample_token(rows[i], rng))
    return Verdict(len(draft.tokens), sample_token(rows[-1], rng))


RULES = {"typical": Typical(), "lenient": Lenient(0.5), "resampled": resampled}
WRONG = [*RULES, "greedy draft", "stale", "twice", "company", "late stop"]


class Engine:
    """Answers requests; `mode` is right, alone (no draft) or one of WRONG."""

    def __init__(self, mode):
        self.mode, self.unseeded, self.running, self.lock = mode, itertools.count(), [], threading.Lock()

    def complete(self, ask):
        prompt = tokens_of(ask["prompt"]) if isinstance(ask["prompt"], str) else ask["prompt"]
        sampling, n, seed = Sampling(ask["temperature"], max(0, ask["top_k"])), ask["max_tokens"], ask.get("seed")
        if self.mode == "twice" and seed is None:  # WRONG: each text without a seed comes two times
            seed = next(self.unseeded) // 2
        target = Stale() if self.mode == "stale" else TARGET
        drafter = (GreedyDraft if self.mode == "greedy draft" else ModelDrafter)(DRAFT, sampling=sampling)
        rule = RULES.get(self.mode, rejection)
        if self.mode == "company" and len({*self.running}) > 1:  # WRONG beside a request with a different temperature
            rule = Typical()
        sampler = SpeculativeSampler(target, drafter, verifier=rule, K=K, sampling=sampling)
        if self.mode == "alone":
            sampler = AutoregressiveSampler(TARGET, sampling=sampling)
        made = sampler.generate(prompt, n, seed)
        tokens, ended = made.tokens.tolist(), False
        for i, stop in itertools.product(range(1, n + 1), ask.get("stop", ())):
            late = self.mode == "late stop" and i > n - K  # WRONG: not seen in the block that reaches the limit
            if stop in text_of(tokens[:i]) and not late and not ended:
                tokens, ended = tokens[:i], True
        text = text_of(tokens).partition(ask["stop"][0])[0] if ended else text_of(tokens)
        choice = {"text": text, "finish_reason": "stop" if ended else "length"}
        if "logprobs" in ask:
            logits = TARGET([*prompt, *tokens], n_last=len(tokens) + 1)[:-1]
            choice["logprobs"] = {"content": [
                {**entry(token, row), "top_logprobs": [entry(x, row) for x in np.argsort(-row)[: ask["logprobs"]]]}
                for token, row in zip(tokens, logits)
            ]}  # fmt: skip
        counts = {"draft_n": made.stats.drafted, "draft_n_accepted": made.stats.accepted}
        return {"choices": [choice], "usage": {"completion_tokens": len(tokens)}, "timings": counts}

    def answer(self, path, ask):
        if path.endswith("/tokenize"):
            return {"tokens": tokens_of(ask["content"])}
        self.running.append(ask["temperature"])
        with self.lock:
            answer = self.complete(ask)
        self.running.remove(ask["temperature"])
        return answer


def entry(token, row):
    return {"id": int(token), "token": f" {WORDS[token]}", "logprob": float(row[token])}


def tokens_of(text):
    return [WORDS.index(word) for word in text.split()]


def text_of(tokens):
    return "".join(f" {WORDS[token]}" for token in tokens)


@contextlib.contextmanager
def serving(answer):
    """The address of a server; answer(path, request) returns a dict, or (status, body)."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version, wbufsize, disable_nagle_algorithm = "HTTP/1.1", -1, True

        def do_POST(self):
            found = answer(self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            status, body = found if isinstance(found, tuple) else (200, json.dumps(found).encode())
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.02])
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()
