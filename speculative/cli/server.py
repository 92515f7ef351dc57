"""A client of a running server with OpenAI's /completions, for `audit`: one request, its tokens and their logprobs."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from speculative.testing.betting import IMPOSSIBLE, REST

TIMEOUT = 60.0  # seconds without an answer
N_TOP = 20  # the logprobs of a row that servers return


class ServerError(ValueError):
    """A sentence on a request that has no usable answer."""


@dataclass
class Answer:
    tokens: list  # token ids, if there are logprobs; otherwise pieces of the text, and the reason for its end
    rows: list  # for each token {token: logprob} of the most probable ones
    text: str
    reason: str  # stop or length
    n: int | None  # the number of tokens, as the server counts them
    drafted: int
    accepted: int


class Server:
    """One running server, asked with the sampling of the options."""

    def __init__(self, url, options):
        import requests

        self.url, self.options, self.names, self.errors = url.rstrip("/"), options, {}, requests.RequestException
        self.session = requests.Session()
        self.session.mount("http", requests.adapters.HTTPAdapter(pool_maxsize=options.at_once))
        self.session.headers["Authorization"] = f"Bearer {options.key or 'none'}"

    def ask(self, prompt, n_tokens, n_top=None, **more):
        """The Answer to a prompt, a text or token ids; with n_top it has token ids and rows."""
        o = self.options
        body = {"messages": [{"role": "user", "content": prompt}]} if o.chat else {"prompt": prompt}
        body |= {"model": o.model or None, "max_tokens": n_tokens, "temperature": o.temperature}
        body |= {"top_k": o.top_k or -1, "top_p": 1, "min_p": 0}
        body |= {} if n_top is None else {"logprobs": n_top, "return_tokens_as_token_ids": True}
        body = {name: value for name, value in (body | (o.more or {}) | more).items() if value is not None}
        reply = self.post(f"{self.url}/chat/completions" if o.chat else f"{self.url}/completions", body)
        try:
            return self.answer(reply, reply["choices"][0])
        except (KeyError, IndexError, TypeError, AttributeError, ValueError):
            raise ServerError(f"{self.url}: expected a completion, got {json.dumps(reply)[:150]}") from None

    def post(self, url, body):
        try:
            reply = self.session.post(url, json=body, timeout=TIMEOUT)
            content = reply.json() if reply.ok else None
        except self.errors as error:
            if isinstance(error, ValueError) and "JSON" in type(error).__name__:
                raise ServerError(f"{url}: expected JSON, got {reply.text[:100]!r}: is it an API?") from None
            late = "Timeout" in type(error).__name__
            said = f"has not answered for {TIMEOUT:g} s" if late else f"cannot be reached ({type(error).__name__})"
            raise ServerError(f"{url} {said}: does the server run?") from None
        if not isinstance(content, dict):
            raise ServerError(f"{url} answers {reply.status_code}: {' '.join(reply.text.split())[:200]}")
        return content

    def answer(self, reply, choice):
        timings, usage, logprobs = reply.get("timings") or {}, reply.get("usage") or {}, choice.get("logprobs") or {}
        text = choice.get("text") or (choice.get("message") or {}).get("content") or ""
        named = logprobs.get("tokens") or []  # OpenAI's older format
        content = logprobs.get("content") or [
            {"token": token, "top_logprobs": [{"token": other, "logprob": p} for other, p in (row or {}).items()]}
            for token, row in zip(named, logprobs.get("top_logprobs") or [{}] * len(named))
        ]
        reason = choice["finish_reason"]
        tokens = [*map(self.token, content)] or [*re.findall(r"\s*\w+|\s*[^\w\s]|\s+", text), f"({reason})"]
        rows = [
            {self.token(entry): float(entry["logprob"]) for entry in each.get("top_logprobs") or ()} for each in content
        ]
        counts = timings.get("draft_n", 0), timings.get("draft_n_accepted", 0)
        return Answer(tokens, rows, text, reason, usage.get("completion_tokens"), *counts)

    def token(self, entry):
        """A token's id, from `id` or "token_id:17"; its text if the server sends no ids."""
        text = str(entry.get("token"))
        token = entry.get("id", int(text[9:]) if text.startswith("token_id:") else text)
        self.names[token] = text
        return token

    def encoded(self, prompt):
        """The token ids of a prompt."""
        body = {"content": prompt, "prompt": prompt, "model": self.options.model, "add_special": True}
        reply = self.post(f"{self.url.removesuffix('/v1')}/tokenize", body)
        if not isinstance(reply.get("tokens"), Sequence):
            raise ServerError(f"{self.url}: expected tokens from /tokenize, got {json.dumps(reply)[:100]}")
        return reply["tokens"]

    def rows(self, prompt, n_tokens):
        """The target's probabilities as sampled, dict text -> {token: probability}, of texts with a share of .01.

        They come from requests for one token, which engines answer without a draft.
        """
        o, rows, texts = self.options, {}, {(): 1.0}
        every = {"temperature": 1, "top_k": (o.more or {}).get("top_k", -1)}
        for _ in range(n_tokens):
            for text in texts:
                answer = self.ask([*prompt, *text], 1, max(N_TOP, o.top_k), **every)
                if not answer.rows or not answer.rows[0]:
                    raise ServerError(f"{self.url} has no logprobs: give --without, the same server without a draft")
                ranked = sorted(answer.rows[0].items(), key=lambda both: -both[1])[: o.top_k or None]
                shares = {token: math.exp(logprob / o.temperature) for token, logprob in ranked}
                total = math.fsum(shares.values())
                rest = IMPOSSIBLE if o.top_k else max(1 - total, IMPOSSIBLE)
                total = total if o.top_k else 1
                rows[text] = {token: share / total for token, share in shares.items()} | {REST: rest}
            longer = ((share * p, text, token) for text, share in texts.items() for token, p in rows[text].items())
            texts = {(*text, token): share for share, text, token in longer if token != REST and share >= 0.01}
        return rows

    def name(self, tokens):
        return "".join(str(self.names.get(token, token)) for token in tokens)
