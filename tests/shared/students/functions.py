"""Functions with signatures of their own: RIGHT in the forms that exercises have, WRONG with the words of the hint."""

import math
import random
from collections import namedtuple

import numpy as np

RIGHT, WRONG = {}, {}


def rest(p, q):
    excess = np.maximum(p - q, 0)
    return excess / excess.sum()


def without_a_bonus(target_probs, draft_probs, draft_tokens):
    out = []
    for i, x in enumerate(draft_tokens):
        if np.random.rand() < target_probs[i, x] / draft_probs[i, x]:
            out.append(int(x))
        else:
            return [*out, int(np.random.choice(len(target_probs[i]), p=rest(target_probs[i], draft_probs[i])))]
    return out


def with_a_count(target_probs, draft_probs, draft_tokens, rng):
    emitted = []
    for i, x in enumerate(draft_tokens):
        if not rng.random() * draft_probs[i][x] < target_probs[i][x]:
            return [*emitted, rng.choice(target_probs.shape[1], p=rest(target_probs[i], draft_probs[i]))], i
        emitted.append(x)
    return [*emitted, rng.choice(target_probs.shape[1], p=target_probs[-1])], len(draft_tokens)


def index_and_token(target_dists, proposal_dists, candidate_tokens):
    k = len(candidate_tokens)
    ratio = target_dists[np.arange(k), candidate_tokens] / proposal_dists[np.arange(k), candidate_tokens]
    passed = np.random.rand(k) < ratio
    n = k if passed.all() else int(passed.argmin())
    row = target_dists[k] if n == k else rest(target_dists[n], proposal_dists[n])
    return n, int(np.searchsorted(np.cumsum(row), np.random.rand(), side="right"))


def from_logits(draft_tokens, draft_probs, target_logits, temperature):
    p = np.exp(target_logits / temperature)
    p /= p.sum(axis=1, keepdims=True)
    accepted = []
    for i, x in enumerate(draft_tokens):
        if not math.log(random.random()) < math.log(p[i, x] + 1e-300) - math.log(draft_probs[i, x]):
            return accepted, len(accepted), random.choices(range(p.shape[1]), weights=rest(p[i], draft_probs[i]))[0]
        accepted.append(x)
    return accepted, len(accepted), None


def padded_batch(draft_probs, draft_token_ids, uniform_samples, target_probs):
    b, k = draft_token_ids.shape
    out, n_accepted = np.full((b, k + 1), -1), np.zeros(b, int)
    for row in range(b):
        n = 0
        while n < k:
            x = draft_token_ids[row, n]
            if not uniform_samples[row, n] * draft_probs[row, n, x] < target_probs[row, n, x]:
                break
            out[row, n] = x
            n += 1
        weights = target_probs[row, k] if n == k else rest(target_probs[row, n], draft_probs[row, n])
        out[row, n] = np.searchsorted(np.cumsum(weights), uniform_samples[row, k], side="right")
        n_accepted[row] = n
    return out, n_accepted


def one_token(p_target, p_draft, draft_token):
    if random.random() < min(1.0, p_target[draft_token] / p_draft[draft_token]):
        return draft_token, True
    return int(np.random.choice(len(p_target), p=rest(p_target, p_draft))), False


def in_lists(p: list[float], q: list[float], x: list[int]):
    n = 0
    while n < len(x) and random.random() < p[n][x[n]] / q[n][x[n]]:
        n += 1
    weights = p[n] if n == len(x) else [max(a - b, 0.0) for a, b in zip(p[n], q[n])]
    return x[:n] + random.choices(range(len(weights)), weights=weights)


RIGHT |= {f.__name__: f for f in (
    without_a_bonus, with_a_count, index_and_token, from_logits, padded_batch, one_token, in_lists,
)}  # fmt: skip


def round_of(passes=None, weights=None, bonus=None, form="tokens"):
    """A function in which a part is exchanged: passes(p, q, x), weights(p, q, x), bonus(target_probs, draft_probs)."""

    def decode(target_probs, draft_probs, draft_tokens, rng):
        out = []
        for i, x in enumerate(draft_tokens.tolist()):
            p, q = target_probs[i], draft_probs[i]
            if passes(p, q, x, rng) if passes else rng.random() < p[x] / q[x]:
                out.append(x)
                continue
            w = weights(p, q, x) if weights else np.maximum(p - q, 0)
            return [*out, int(rng.choice(len(w), p=w / w.sum()))]
        w = bonus(target_probs, draft_probs) if bonus else target_probs[-1]
        return [*out, int(rng.choice(len(w), p=w))]

    return decode


def accepts_all(target_probs, draft_probs, draft_tokens):
    return draft_tokens.tolist()


def goes_on(target_probs, draft_probs, draft_tokens):
    return [without_a_bonus(target_probs[i:], draft_probs[i:], [x])[0] for i, x in enumerate(draft_tokens)]


def accepted_alone(target_probs, draft_probs, draft_tokens):
    out = []
    for i, x in enumerate(draft_tokens):
        if not np.random.rand() < target_probs[i, x] / draft_probs[i, x]:
            break
        out.append(x)
    return out


def keeps_the_rejected(target_probs, draft_probs, draft_tokens, rng):
    tokens, n = with_a_count(target_probs, draft_probs, draft_tokens, rng)
    return [*tokens[:n], draft_tokens[n], tokens[n]] if n < len(draft_tokens) else tokens


def counts_the_rejected(target_probs, draft_probs, draft_tokens, rng):
    tokens, n = with_a_count(target_probs, draft_probs, draft_tokens, rng)
    return tokens, min(n + 1, len(draft_tokens))


def of_drafted_alone(target_probs, draft_probs, draft_tokens):
    for i, x in enumerate(draft_tokens):
        if np.random.rand() * draft_probs[i].item() >= target_probs[i, x]:
            return [*draft_tokens[:i], np.random.choice(target_probs.shape[1], p=target_probs[i])]
    return list(draft_tokens)


def fixed_seed(target_probs, draft_probs, draft_tokens):
    np.random.seed(0)
    return without_a_bonus(target_probs, draft_probs, draft_tokens)


def of_jax(key, draft_tokens, draft_probs, target_probs):
    return draft_tokens


def of_models(prompt, target_model, draft_model):
    return prompt


WRONG |= {
    "accepts all": (accepts_all, ("accept every draft token",)),
    "goes on": (goes_on, ("the first rejection ends the round",)),
    "accepted alone": (accepted_alone, ("no token takes the place of a rejected draft token",)),
    "keeps the rejected": (keeps_the_rejected, ("the rejected draft token stays",)),
    "counts the rejected": (counts_the_rejected, ("count the rejected token",)),
    "of drafted alone": (of_drafted_alone, ("one number for each draft token",)),
    "fixed seed": (fixed_seed, ("a fixed seed",)),
    "a JAX key": (of_jax, ("JAX",)),
    "models": (of_models, ("prompt, target_model, draft_model, n_tokens, K -> text",)),
    "upside down": (round_of(lambda p, q, x, rng: rng.random() < q[x] / p[x]), ("upside down",)),
    "u > ratio": (round_of(lambda p, q, x, rng: rng.random() > p[x] / q[x]), ("other way round",)),
    "p >= q": (round_of(lambda p, q, x, rng: p[x] >= q[x]), ("p(x) >= q(x)",)),
    "u <= ratio": (round_of(lambda p, q, x, rng: rng.random() <= p[x] / q[x]), ("u < p / q, not u <= p / q",)),
    "epsilon": (round_of(lambda p, q, x, rng: rng.random() < p[x] / (q[x] + 1e-9)), ("epsilon",)),
    "from the target": (round_of(weights=lambda p, q, x: p), ("drew from the target",)),
    "from the draft": (round_of(weights=lambda p, q, x: q), ("drew from the draft",)),
    "|p - q|": (round_of(weights=lambda p, q, x: abs(p - q)), ("|p - q|",)),
    "the row before": (round_of(bonus=lambda p, q: p[-2]), ("bonus from the row of the last draft token",)),
}


def coins(target_probs, draft_probs, draft_tokens, uniforms):
    for i, x in enumerate(draft_tokens):
        if uniforms[i] * draft_probs[i][x] >= target_probs[i][x]:
            cdf = np.cumsum(np.maximum(target_probs[i] - draft_probs[i], 0))
            return [*draft_tokens[:i], int(np.searchsorted(cdf / cdf[-1], uniforms[-1], side="right"))]
    return [*draft_tokens, int(np.searchsorted(np.cumsum(target_probs[-1]), uniforms[-1], side="right"))]


Result = namedtuple("Result", "tokens n_accepted")


def named_result(target_probs, draft_probs, draft_tokens, rng):
    for i, x in enumerate(draft_tokens):
        if not rng.random() * draft_probs[i][x] < target_probs[i][x]:
            excess = np.maximum(target_probs[i] - draft_probs[i], 0)
            return Result([*draft_tokens[:i], rng.choice(len(excess), p=excess / excess.sum())], i)
    return Result([*draft_tokens, rng.choice(len(target_probs[-1]), p=target_probs[-1])], len(draft_tokens))


def with_a_bonus_token(output_tokens, target_probs, draft_probs, draft_tokens, uniforms, bonus_token_id):
    for i, x in enumerate(draft_tokens):
        output_tokens[i] = x
        if uniforms[i] * draft_probs[i][x] >= target_probs[i][x]:
            cdf = np.cumsum(np.maximum(target_probs[i] - draft_probs[i], 0))
            output_tokens[i] = np.searchsorted(cdf / cdf[-1], uniforms[-1], side="right")
            return
    output_tokens[len(draft_tokens)] = bonus_token_id


RIGHT |= {"coins": coins, "named result": named_result}
