"""Functions with signatures of their own: RIGHT in the forms that exercises have, WRONG with the words of the hint."""

import inspect
import math
import random
from collections import namedtuple

import numpy as np

from students.edits import edited


def rest(p, q):
    excess = np.maximum(p - q, 0)
    return excess / excess.sum()


def decode(target_probs, draft_probs, draft_tokens, rng):
    out = []
    for p, q, x in zip(target_probs, draft_probs, draft_tokens.tolist()):
        if not rng.random() < p[x] / q[x]:
            return [*out, int(rng.choice(len(p), p=rest(p, q)))]
        out.append(x)
    return [*out, int(rng.choice(len(p), p=target_probs[-1]))]


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
    for row, (tokens, p, q, u) in enumerate(zip(draft_token_ids, target_probs, draft_probs, uniform_samples)):
        n = next((i for i, x in enumerate(tokens) if not u[i] * q[i, x] < p[i, x]), k)
        weights = p[k] if n == k else rest(p[n], q[n])
        out[row, : n + 1] = [*tokens[:n], np.searchsorted(np.cumsum(weights), u[k], side="right")]
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


Result = namedtuple("Result", "tokens n_accepted")


def changed(*changes):
    return edited(inspect.getsource(decode), "decode", *changes, kept=globals())


ARGUMENTS, TEST, TOKEN = "draft_tokens, rng):", "rng.random() < p[x] / q[x]", "int(rng.choice(len(p), p=rest(p, q)))"
REJECTED, LAST = f"return [*out, {TOKEN}]", "return [*out, int(rng.choice(len(p), p=target_probs[-1]))]"
COUNTED = REJECTED, f"return [*out, {TOKEN}], len(out)", LAST, f"{LAST}, len(out)"
INVERSE = "int(np.searchsorted(np.cumsum({}), uniforms[-1], side='right'))"
coins = changed(ARGUMENTS, "draft_tokens, uniforms):", TEST, "uniforms[len(out)] < p[x] / q[x]",
                TOKEN, INVERSE.format("rest(p, q)"),
                LAST, f"return [*out, {INVERSE.format('target_probs[-1]')}]")  # fmt: skip
RIGHT = {f.__name__: f for f in (index_and_token, from_logits, padded_batch, one_token, in_lists)} | {
    "coins": coins,
    "of log-probabilities": changed("decode(target_probs, draft_probs", "decode(target_log_p, draft_log_q",
                                    "zip(target_probs, draft_probs", "zip(np.exp(target_log_p), np.exp(draft_log_q)",
                                    "p=target_probs[-1]", "p=np.exp(target_log_p[-1])"),
    "without a bonus": changed(LAST, "return out"),
    "with a count": changed(*COUNTED),
    "a named result": changed(REJECTED, f"return Result([*out, {TOKEN}], len(out))",
                              LAST, f"{LAST.replace('[*', 'Result([*')}, len(out))"),
}  # fmt: skip


def with_a_bonus_token(output_tokens, target_probs, draft_probs, draft_tokens, uniforms, bonus_token_id):
    new = coins(target_probs, draft_probs, draft_tokens, uniforms)
    output_tokens[: len(new)] = [*new[: len(draft_tokens)], *[bonus_token_id] * (len(new) > len(draft_tokens))]


WRONG = {name: (changed(*changes), tuple(hint.split(" ... "))) for name, (hint, *changes) in {
    "accepts all": ("accept every draft token", TEST, "True", LAST, "return out"),
    "goes on": ("the first rejection ends the round", REJECTED, f"x = {TOKEN}", LAST, "return out"),
    "accepted alone, and a bonus": ("no token takes the place of a rejected draft token", REJECTED, "return out"),
    "keeps the rejected": ("the rejected draft token stays", REJECTED, f"return [*out, x, {TOKEN}]"),
    "counts the rejected": ("count the rejected token as accepted", REJECTED, f"return [*out, {TOKEN}], len(out) + 1",
                            LAST, f"{LAST}, len(out)"),
    "counts all that pass": ("you count all draft tokens that pass", REJECTED, f"""n = sum(
                p[x] >= q[x] for p, q, x in zip(target_probs, draft_probs, draft_tokens))
            return [*out, {TOKEN}], n""", LAST, f"{LAST}, len(out)"),
    "counts one less": ("your count is one too small where all", *COUNTED[:2], LAST, f"{LAST}, len(out) - 1"),
    "from the target": ("on a rejection you drew from the target", "rest(p, q)", "p"),
    "random.choice": ("equal probability from all tokens with p > q", ARGUMENTS, "draft_tokens):", "rng.random()",
                      "random.random()", TOKEN, "random.choice(np.flatnonzero(p > q))",
                      "int(rng.choice(len(p), p=target_probs[-1]))", "random.choices(range(len(p)), target_probs[-1])[0]"),
    "random.randint": ("all tokens with equal probability", TOKEN, "random.randint(0, len(p) - 1)"),
    "argmin where all pass": ("accepted.argmin() is 0", "out = []", """out = []
    passed = [rng.random() < p[x] / q[x] for p, q, x in zip(target_probs, draft_probs, draft_tokens.tolist())]
    n = int(np.argmin(passed))
    return [*draft_tokens[:n], int(rng.choice(len(target_probs[n]), p=rest(target_probs[n], draft_probs[n])))]"""),
    "not divided by its sum": ("one too large ... by its sum", "rest(p, q)", "rest(p, q)", TOKEN,
                               "int(np.searchsorted(np.cumsum(np.maximum(p - q, 0)), rng.random()))"),
    "u <= ratio": ("u < p / q, not u <= p / q", TEST, "rng.random() <= p[x] / q[x]"),
    "the row before": ("the bonus from the row of the last draft token ... row K of the target",
                       "target_probs[-1]", "target_probs[-2]"),
    "of drafted alone": ("one number for each draft token", TEST, "rng.random() < p[x] / q.item()", "rest(p, q)", "p"),
    "fixed seed": ("a fixed seed", ARGUMENTS, "draft_tokens):", "out = []", "rng, out = np.random.RandomState(0), []"),
    "a JAX key": ("JAX", ARGUMENTS, "draft_tokens, key):"),
    "writes to its arguments": ("writes to its arguments", "out = []", "out, target_probs[0] = [], target_probs[1]"),
    "asserts": ("your function fails ... `assert len(draft_tokens) > 2`", "out = []", "assert len(draft_tokens) > 2"),
}.items()}  # fmt: skip


def of_models(prompt, target_model, draft_model):
    return prompt


WRONG["models"] = of_models, ("your function is greedy, and its text is not the target's greedy text",)
