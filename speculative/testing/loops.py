"""Is your own speculative loop lossless? Compare its texts' distribution with the product of the target's rows."""

import copy
import inspect
import itertools
import math
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import itemgetter
from time import monotonic
from typing import Any

import numpy as np

from ..drafters.model import ModelDrafter
from ..exact.enumeration import exact_distribution, total_variation
from ..logits.probs import Sampling
from .cases import entry_like, has, independent, marginal, up_to
from .draws import on_cpu
from .mistakes import models
from .mistakes.samplers import Loop
from .pace import calls_of_rejection, in_words
from .sampler_diagnosis import AROUND, ONE, SEVERAL, loops, of_first

EXACT, ROUNDING = 1e-12, 1e-6  # total variation; float32 leaves about 1e-7


@dataclass(frozen=True)
class LoopAudit:
    """The result of `audit_loop`; print it."""

    verdict: str  # exact, rounding (as in float32), wrong, or unknown: the time ran out before a mistake was found
    distance: float  # total variation of the joint distribution of the texts; a lower bound while covered < 1
    paths: int
    covered: float  # the probability of the paths that were taken
    mistakes: tuple[str, ...]  # sentences, including the catalogue's for this distribution
    message: str

    def __str__(self):
        return self.message


def audit_loop(
    generate: Callable[..., Any],
    target: Any,
    draft: Any = None,
    prompt: Sequence[Any] | np.ndarray = (0, 1),
    n_tokens: int = 3,
    *,
    K: int = 2,
    sampling: Callable[..., np.ndarray] | Sequence[Callable[..., np.ndarray]] = Sampling(),
    eos: int | None = None,
    seconds: float = 60,
    certain: int | None = None,
) -> "LoopAudit":
    """A `LoopAudit` of generate(prompt, n_tokens): tokens in, tokens out, in PyTorch or in NumPy.

    The reference is the product of sampling(target(text)), row by row, one text at a time, without a mask or a cache.
    It never uses another `generate`, which might have its own mistake. Models with random weights and two or three
    tokens are enough; three new tokens and K = 2 take a few hundred paths.

    Parameters
    ----------
    generate
        generate(prompt, n_tokens), or generate(prompt, n_tokens, rng=...), returns the new tokens, with the prompt or
        without. PyTorch's random numbers are enumerated (see `TorchDraws`); a loop in NumPy draws from rng.
    target, draft
        The loop's models, each a LanguageModel or a module of PyTorch. A module is called as model(ids [1, n]).logits.
        The draft is used only to name a mistake.
    prompt
        Token ids. Several prompts, of any lengths, form a batch: `generate` receives all of them, and returns a text
        for each.
    n_tokens
        The number of new tokens of each text.
    K
        The draft length of the loop, to name a mistake.
    sampling
        The loop's sampling; for a batch also a list, one for each text.
    eos
        A token that ends a text, which contains it. After it only one constant token may follow, the padding, in all
        texts and on all paths: a loop that goes on after eos is wrong.
    seconds
        The time limit for the paths. When it runs out, the verdict is "unknown" unless a mistake is found already. With
        `certain`, it applies to each pair.
    certain
        For a batch of many texts: a token that the models always repeat, and that no other text contains. Two texts at
        a time keep their prompts, and the others become prompts of this token, so each pair has only the paths of two
        texts.
    """
    if certain is not None and len(prompt) > 2:
        options = {"K": K, "sampling": sampling, "eos": eos, "seconds": seconds}
        return of_pairs(generate, target, draft, prompt, n_tokens, certain, **options)
    prompt = prompt.tolist() if hasattr(prompt, "tolist") else prompt
    is_batch, target = np.ndim(prompt[0]) > 0, Rows(target)
    prompts = [[*map(int, row)] for row in (prompt if is_batch else [prompt])]
    samplings = [sampling] * len(prompts) if callable(sampling) else [*sampling]
    if len(samplings) != len(prompts):
        raise ValueError(f"audit_loop: expected one sampling, or one for each of {len(prompts)} texts, got {samplings}")
    wanted = [
        own_distribution(target, row, n_tokens, its_sampling, eos) for row, its_sampling in zip(prompts, samplings)
    ]
    joint = independent(wanted)
    with counted(target.model) as n_calls:
        distribution, paths, covered, goes_on = taken(generate, prompts, is_batch, n_tokens, seconds, eos, n_calls)
    distance = math.fsum(
        max(0, share - joint.get(texts, 0)) for texts, share in distribution.items()
    )  # the least it can be
    kind = "unknown" if covered < 1 else "rounding" if distance > EXACT else "exact"
    kind = "wrong" if distance > ROUNDING or goes_on else kind
    lines = [
        f"{kind}: total variation {'at least ' * (covered < 1)}{distance:.2g}; {paths} paths, {covered:.3g} of all"
    ]
    if kind in ("exact", "rounding") and n_calls and draft is not None and not is_batch and eos is None:
        p, q = (cache(lambda text, rows=rows: sampling(rows(text), [*text])[0]) for rows in (target, Rows(draft)))
        calls = calls_of_rejection(p, q, prompts[0], n_tokens, K)
        lines.append(f"K = {K}: {in_words(n_tokens / n_calls.mean, calls / n_calls.mean)}")
    if kind == "unknown":
        lines.append(f"the time ran out: give more than seconds={seconds:g}, or ask for fewer tokens or a smaller K")
    mistakes = [goes_on] if goes_on else []
    lines += mistakes
    if distance > ROUNDING and covered == 1:
        alone = partial(taken, generate, is_batch=True, n_tokens=n_tokens, seconds=seconds, eos=eos)
        parts = target, draft, K, samplings, eos
        for i, said in mistakes_in(distribution, wanted, prompts, alone, n_tokens, seconds, parts):
            lines.append(f"text {i}: " * (is_batch and i is not None) + said)
            mistakes.append(said)
    return LoopAudit(kind, distance, paths, covered, tuple(mistakes), "\n".join(lines))


def of_pairs(generate, target, draft, prompt, n_tokens, certain, **options):
    """The `LoopAudit` of each pair of texts, beside deterministic texts: the first that is wrong, or a summary."""
    audits = []
    for pair in itertools.combinations(range(len(prompt)), 2):
        rows = [[*row] if i in pair else [certain] * len(row) for i, row in enumerate(prompt)]
        audits.append(audit_loop(generate, target, draft, rows, n_tokens, **options))
        if audits[-1].verdict == "wrong":
            words = f"{audits[-1]}\nwhere texts {pair[0]} and {pair[1]} are drawn, beside deterministic texts"
            return replace(audits[-1], message=words)
    worst = max(audits, key=lambda audit: ("exact", "rounding", "unknown").index(audit.verdict))
    distance, paths = max(audit.distance for audit in audits), sum(audit.paths for audit in audits)
    message = f"{worst.verdict}: total variation {distance:.2g} at most, in {len(audits)} pairs of texts; {paths} paths"
    return LoopAudit(worst.verdict, distance, paths, min(audit.covered for audit in audits), (), message)


class Rows:
    """A causal model as a memoised LanguageModel: one text at a time, no mask, no cache, in its own precision."""

    n_ctx = 1 << 30

    def __init__(self, model):
        self.model, self.known = model, {}
        self.n_vocab = model.n_vocab if hasattr(model, "n_vocab") else model.config.vocab_size

    def __call__(self, tokens, n_last=1):
        key = tuple(map(int, tokens)), n_last
        if key not in self.known:
            self.known[key] = self.model(*key) if hasattr(self.model, "n_vocab") else self.of_a_module(*key)
        return self.known[key]

    def of_a_module(self, tokens, n_last):
        torch = sys.modules["torch"]
        device = next((parameter.device for parameter in self.model.parameters()), None)
        with torch.no_grad():
            return self.model(torch.tensor([tokens], device=device)).logits[0, -n_last:].double().cpu().numpy()


def own_distribution(model, prompt, n_tokens, sampling, eos):
    """The product of the model's own rows, a dict tokens -> probability; a text ends with eos."""
    texts = {(): 1.0}
    for n in range(n_tokens):
        ended = {text: share for text, share in texts.items() if len(text) < n or text[-1:] == (eos,)}
        rows = {text: sampling(model([*prompt, *text]), [*prompt, *text])[0].tolist() for text in texts.keys() - ended}
        texts = {(*text, x): texts[text] * p for text, row in rows.items() for x, p in enumerate(row) if p > 0} | ended
    return texts


class Calls:
    """The number of calls of a module of PyTorch: `now` of this path so far, and the mean over the paths."""

    now, mean = 0, 0.0

    def count(self, *_):
        self.now += 1


@contextmanager
def counted(model):
    """The Calls of a module of PyTorch; None of a different model."""
    if not hasattr(model, "register_forward_hook"):
        yield None
        return
    calls = Calls()
    hook = model.register_forward_hook(calls.count)
    try:
        yield calls
    finally:
        hook.remove()


def taken(generate, prompts, is_batch, n_tokens, seconds, eos, n_calls=None):
    """(dict texts -> probability, number of paths, the probability that they cover, a sentence if a text goes on)."""
    counts, paths, end, n_calls = Counter(), 0, monotonic() + seconds, n_calls or Calls()
    takes_rng, draws = "rng" in inspect.signature(generate).parameters, nullcontext
    if "torch" in sys.modules and not takes_rng:
        from .torch_draws import TorchDraws as draws

    def texts(rng):
        nonlocal paths
        if monotonic() > end:
            raise TimeoutError
        n_calls.now, rng.slack = 0, ROUNDING  # a cache that stays between calls rounds differently
        with draws(rng):
            result = generate(
                copy.deepcopy(prompts) if is_batch else [*prompts[0]], n_tokens, **{"rng": rng} if takes_rng else {}
            )
        result = result if is_batch else [getattr(result, "tokens", result)]
        new = tuple(tuple(map(int, np.ravel(on_cpu(getattr(text, "tokens", text))))) for text in result)
        if len(new) != len(prompts) or (eos is None and not all(map(has_n, new, prompts))):
            hint = "; if a text may end earlier, give the token that ends it as eos="
            raise ValueError(f"audit_loop: expected {n_tokens} new tokens for each prompt, got {new}{hint}")
        if math.fsum(counts.values()) < 1 - EXACT:  # otherwise this is the most probable path again
            counts[new], paths = counts[new] + rng.reached(), paths + 1
            n_calls.mean += rng.reached() * n_calls.now
        return new

    def has_n(text, prompt):
        return len(text) in (n_tokens, n_tokens + len(prompt))

    try:
        whole, covered = exact_distribution(texts), 1
    except TimeoutError:
        whole, covered = counts, math.fsum(counts.values())
    shares, after = new_tokens(whole, prompts, n_tokens, eos)
    goes_on = AFTER_EOS.format(eos, ", ".join(map(str, sorted(after)))) if len(after) > 1 else None
    return shares, paths, covered, goes_on


AFTER_EOS = (
    "a text goes on after eos = {}: tokens {} follow it, where only one constant token may, the padding; look for eos "
    "in every token that a round adds, and drop those after it"
)


def new_tokens(distribution, prompts, n_tokens, eos):
    """The distribution of the new tokens, each text up to eos, and the set of tokens that follow eos in any text.

    A loop returns them with the prompts or without.
    """
    begins = [
        all(texts[i][: len(prompt)] == tuple(prompt) for texts in distribution) for i, prompt in enumerate(prompts)
    ]
    shares, after = Counter(), set()
    for texts, share in distribution.items():
        new = [text[len(prompt) * (whole and (eos is not None or len(text) > n_tokens)) :]
               for text, prompt, whole in zip(texts, prompts, begins)]  # fmt: skip
        after.update(*(text[len(up_to(text, [eos])) :] for text in new))
        new = [up_to(text, [eos]) for text in new]
        if wrong := [text for text in new if len(text) != n_tokens and text[-1:] != (eos,)]:
            until = f", or fewer and then eos = {eos}," * (eos is not None)
            raise ValueError(f"audit_loop: expected {n_tokens} new tokens{until} for each prompt, got {wrong[0]}")
        shares[tuple(new)] += share
    return shares, after


def same(distribution, wanted):
    return total_variation(distribution, wanted) <= ROUNDING


def mistakes_in(distribution, wanted, prompts, alone, n_tokens, seconds, parts):
    """(number of a text or None, a sentence) for each mistake; alone(prompts) is `taken` for a batch of these."""
    target, draft, K, samplings, eos = parts
    if len(distribution) == 1 and max(map(len, wanted)) > 1:
        greedy = [own_distribution(target, prompt, n_tokens, Sampling(temperature=0), eos) for prompt in prompts]
        is_greedy = "; it is the target's greedy text: audit it with sampling=Sampling(temperature=0)"
        yield (
            None,
            (
                "the text is always the same: the loop draws nothing from rng, or from PyTorch"
                + is_greedy * bool(same(distribution, independent(greedy)))
            ),
        )
        return
    apart = [marginal(distribution, itemgetter(i)) for i in range(len(prompts))]
    wrong = [i for i in range(len(prompts)) if not same(apart[i], wanted[i])]
    if not wrong:
        yield None, "each text is right by itself, but together they are not: texts share random numbers"
    for i in wrong:
        yield i, first_wrong(apart[i], wanted[i])
        if len(prompts) > 1:
            others = {
                repr(other_sampling): own_distribution(target, prompts[i], n_tokens, other_sampling, eos)
                for other_sampling in samplings
            }
            if other := next(
                (other_sampling for other_sampling, its_own in others.items() if same(apart[i], its_own)), None
            ):
                yield i, f"it has the distribution of a different text's sampling, {other}: each text has its own"
                continue
            if len({*map(repr, samplings)}) == 1:  # otherwise a text alone would be the first
                apart[i] = marginal(alone(prompts=prompts[i : i + 1])[0], itemgetter(0))
            if same(apart[i], wanted[i]):
                yield i, "right in its own batch, so the others make it wrong: lengths, padding, a shared truncation"
                continue
        names, n_tried, n_entries = ([], 0, 0) if eos is not None else known_mistakes(
            apart[i], target, draft, K, samplings[i], prompts[i], n_tokens, monotonic() + seconds
        )  # fmt: skip
        if not names and n_tried < n_entries:
            yield i, f"the time ran out after {n_tried} of {n_entries} mistakes, none of them this: give more seconds"
        elif not names:
            yield i, f"the catalogue has no mistake with this distribution, with K = {K}"
        yield from ((i, f"the same distribution has: {name}") for name in names)


def first_wrong(distribution, wanted):
    """The first wrong token, and the tokens before it."""
    n = next(n for n in itertools.count(1) if not same(of_first(n, distribution), of_first(n, wanted)))
    (got, before), (right, due) = ((of_first(n, which), of_first(n - 1, which)) for which in (distribution, wanted))
    *start, x = worst = max(got.keys() | right.keys(), key=lambda text: abs(got.get(text, 0) - right.get(text, 0)))
    shares = [a.get(worst, 0) / (b.get(worst[:-1]) or 1) for a, b in ((got, before), (right, due))]
    after = f"after {start}, " if start else ""
    return f"new token {n} is the first wrong one: {after}token {x} has {shares[0]:.4f}, not {shares[1]:.4f}"


# ------------------------------------------------------------------------------------------------ names


def known_mistakes(distribution, target, draft, K, sampling, prompt, n_tokens, end):
    """(the catalogue's sentences for the mistakes that have this distribution, number of entries tried, and of all)."""
    if draft is None:
        return [], 0, 0
    drafter = ModelDrafter(Rows(draft), sampling=sampling)
    first = of_first(1, distribution)  # compared first, which takes one round
    rooms = (lambda n_left, n_text: min(K, n_left - 1)), (lambda n_left, n_text: K)  # up to the end, or always K tokens

    def generates(loop, n, wanted, until):
        return has(lambda rng: loop.generate([*prompt], n, rng).tokens[:n], wanted, min(until, end), ROUNDING)

    def agrees(wrong, until):
        make, room = wrong
        loop = make(target, drafter, K=K, sampling=sampling)
        loop.room = lambda n_left, n_text: min(K, n_tokens - 1)  # as many as in the first round of n_tokens tokens
        if not generates(loop, 1, first, until):
            return False
        loop.room = room
        return generates(loop, n_tokens, distribution, until)

    entries = [(hint, (make, room)) for hint, make in known_loops() for room in rooms]
    names, n_tried = {}, 0
    for hint, wrong in entries:
        names |= {hint: None} if entry_like([(hint, wrong)], agrees) else {}
        if monotonic() > end:
            break
        n_tried += 1
    return [*names], n_tried, len(entries)


def known_loops():
    """(hint, class of loops) for each entry."""
    yield from loops(AROUND, [*ONE, *SEVERAL])
    for mistake in [*models.ROWS, *models.OTHERWISE]:
        if mistake.name and not getattr(mistake.wrong, "drafts", False):
            yield from ((mistake.name, partial(of_model, wrong)) for wrong in mistake.variants)


def of_model(wrong, target, drafter, *, K, sampling):
    return Loop(wrong(target), drafter, K=K, sampling=sampling)
