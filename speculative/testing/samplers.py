"""The grader of samplers: the distribution of the tokens, their number, and other things a loop can get wrong.

The sampler, and what it is made of, is in sampler_parts.py; stop tokens and counts are in counts.py; the sentence about
a wrong distribution comes from sampler_diagnosis.py.
"""

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from time import monotonic
from typing import Any

import numpy as np

from ..drafters.model import ModelDrafter
from ..exact.table import TableModel
from ..logits.probs import Sampling
from .cases import NAMING, TOLERANCE, Passed, compared
from .counts import check_counts, check_stops, takes_stop_tokens
from .greedy import GREEDY, check_greedy, is_greedy
from .mistakes import samplers as catalogue
from .pace import told_pace
from .sampler_diagnosis import AROUND, LOOKING_BACK, ONE, SEVERAL, TIED, loops, mistake_in_a_text
from .sampler_parts import PROMPT, AllTokens, Made, Recorded, ShortDrafter, Target, in_window, models, nearly_certain
from .sources import Sources
from .tree_windows import tree_windows
from .watch import UNKNOWN_SOURCE, fail, fail_by_source, note, with_progress
from .windows import windows

FEW_PATHS = 150  # if two tokens take no more than these, three are enumerated as well


def check_sampler(
    make: Callable[..., Any],
    *,
    seed: int = 0,
    target_sampling: Callable[..., np.ndarray] | None = None,
    with_models: bool = False,
    tolerance: float = TOLERANCE,
    look_back: bool = True,
    trees: bool = False,
) -> str:
    """Raise AssertionError unless the samplers made by `make` produce the target's distribution.

    Checks the joint distribution of up to three tokens with four drafters, with probabilities close to 0 and 1, with a
    history-dependent sampling, where n_ctx is close, and where two tokens are equally probable at temperature 0; the
    number of tokens, up to n_ctx; and a stop token, for each number of tokens. Then the distribution in windows, which
    cover by design each position of a round for K = 1 to 6, after each kind of round before, in up to four rounds, at
    each end of the text, with ten samplings and up to two stop tokens (windows.py). If the result has `stats.accepted`,
    it is compared with the draft tokens that are in the text. Prints a note if a sampler is exact but slower than it
    could be, and returns one line that lists the checks.

    Parameters
    ----------
    make
        make(target, drafter, K=..., sampling=...) -> an object with generate(prompt, n_tokens, rng), which returns a
        `Generation` or a sequence of new tokens, and may take a keyword stop_tokens. A class will do.
    seed
        Varies the models.
    target_sampling
        Passed to `make` instead of the grader's own samplings, which its drafters still use: for a target that samples
        differently from the draft, such as Sampling(top_p=0.7). If it is built into a sampler, grade it as
        check_sampler(lambda target, drafter, K, sampling: Mine(target, drafter, K), target_sampling=...).
    with_models
        Whether the samplers support only drafters with a model, `drafter.model` and `drafter.sampling`.
    tolerance
        The largest error of a probability that counts as rounding: 1e-6 for a sampler in float32.
    look_back
        Whether the samplers call sampling(logits, tokens) rather than sampling(logits).
    trees
        Whether drafts may branch: then the drafters propose trees as well, the target takes target(tokens, n_last,
        parents), and samplings are called as sampling(logits, tokens, parents).
    """
    rng = np.random.default_rng(seed)
    target, other = models(rng)
    if with_models:  # a function of models does not know their n_ctx, and always drafts K tokens
        target.n_ctx = other.n_ctx = 2 * Target.n_ctx
    made = partial(Made, make, target, tolerance=tolerance, overshoots=with_models)
    draft, usual = Recorded(ModelDrafter(other, sampling=Sampling())), target_sampling or Sampling()
    greedy, what = Sampling(temperature=0), "your function" if with_models else "your sampler"
    drafters = {
        "a draft model": lambda sampling: ModelDrafter(other, sampling=sampling),
        "the target as its own draft": lambda sampling: ModelDrafter(target, sampling=sampling),
        "a greedy draft": lambda sampling: ModelDrafter(other, sampling=Sampling(temperature=0)),
        "a drafter that proposes fewer than K tokens": lambda sampling: ShortDrafter(other),
    }
    if with_models:
        drafters.popitem()
    for K in (1, 2, 3, 5):
        check_lengths(made(draft, K))
    takes_stops = takes_stop_tokens(made(draft, 1))
    sharp = Sampling(temperature=0.2)
    if target_sampling is None and is_greedy(made(draft, 2), made(ModelDrafter(other, sampling=sharp), 2, sharp)):
        entries = [
            *((hint, catalogue.loop(verifier=staticmethod(wrong))) for hint, wrong in GREEDY.items()),
            *loops(AROUND, [*ONE, *SEVERAL]),
        ]
        passed = check_greedy(made(draft, 2), entries, takes_stops)
        return Passed(passed + told_pace(made(ModelDrafter(other, sampling=greedy), 1, greedy), what, seed))
    for name, K in itertools.product(drafters, (1, 2)):
        check_distribution(made(drafters[name](Sampling()), K, usual, f"K = {K}, {usual}, {name}"))
    for sampling in (Sampling(temperature=0.5), Sampling(top_k=2)) if target_sampling is None else ():
        drafter = ModelDrafter(other, sampling=sampling)
        check_distribution(made(drafter, 2, sampling, f"K = 2, {sampling}, a draft model"), (2,))
    if takes_stops:
        check_stops(made(draft, 2, usual), made(draft, 3, usual))
    if target_sampling is None and look_back:  # a sampling that is some function of all tokens before a row
        sampling = Sampling(processors=[AllTokens(rng)])
        drafter = ModelDrafter(other, sampling=Sampling(temperature=1 - with_models))
        check_distribution(made(drafter, 2, sampling, "K = 2, a sampling that looks back"), (3,), LOOKING_BACK)
    for sure in nearly_certain(made(draft, 1, usual)):
        check_distribution(sure, (2,))
    if not with_models:
        for n_left in range(2):
            near = [*PROMPT * 6][: target.n_ctx - 3 - n_left]
            case = f"K = 2, a prompt of {len(near)} tokens, n_ctx = {target.n_ctx}"
            check_distribution(made(draft, 2, usual, case, prompt=near), (3,))
    tied = Target(TableModel([[0.2, 0.4, 0.4]] * 3, target.n_ctx), target.calls)
    if target_sampling is None:
        drafter = ModelDrafter(other, sampling=greedy)
        check_distribution(replace(made(drafter, 2, greedy, TIED), target=tied))
    cases = [*windows(look_back, takes_stops), *(tree_windows(look_back, takes_stops) if trees else ())]
    check_windows(made(draft, 1, usual), cases, target_sampling, seed)
    check_counts(made(draft, 3), takes_stops)
    note_lists_alone(made(draft, 2))
    in_rows = getattr(make, "of_one_row", False)  # a target that returns the next token's row alone is called for each
    in_all = ", with ten samplings" * (target_sampling is None and look_back) + ", in trees" * trees
    return Passed(
        f"check_sampler: the text has the target's distribution, to {tolerance:g}, with {len(drafters)} drafters and "
        f"in {len(cases)} windows: K = 1 to 6, each position of a round, after each kind of round{in_all}, as many "
        "tokens as asked for" + ("" if in_rows else told_pace(made(draft, 1, usual), what, seed))
    )


def check_lengths(made):
    K, n_ctx = made.K, made.target.n_ctx
    for n_tokens in range(11):
        tokens = made.text(n_tokens, 0, case=f"K = {K}")
        if len(tokens) != n_tokens:
            whole = tokens[: len(PROMPT)] == PROMPT and len(tokens) == len(PROMPT) + n_tokens
            fail(
                f"your sampler returns {len(tokens)} tokens where {n_tokens} were asked for: draft at most min(K, "
                "remaining - 1, n_ctx - len(tokens) - 1), and return the new tokens alone"
                + (", without the prompt" if whole else ""),
                f"  K = {K}, n_tokens = {n_tokens}, a prompt of {len(PROMPT)}, n_ctx = {n_ctx}",
            )
        if made.text(n_tokens, 0, case=f"K = {K}") != tokens:
            rng = np.random.default_rng(0)
            with Sources() as sources:
                made.text(n_tokens, rng, case=f"K = {K}")
            if sources.named():
                fail_by_source("your sampler", sources.named())
            fail(f"your sampler {UNKNOWN_SOURCE}", f"  for K = {K}, n_tokens = {n_tokens} one seed gave two texts")


def check_windows(made, cases, target_sampling, seed):
    """The distribution in each window (windows.py, tree_windows.py)."""

    @cache
    def elsewhere(kind):
        """(window, sampler, whether it is right) of each window of a kind for which there is time."""
        until, results = monotonic() + NAMING, []
        for window in [window for window in cases if type(window) is kind]:
            sampler = in_window(made, window, seed, target_sampling)
            result = window, sampler, sampler.is_right(window.n_tokens, until)
            if monotonic() > until:
                break
            results.append(result)
        return results

    for window in with_progress("check_sampler", cases):
        sampler = in_window(made, window, seed, target_sampling, partial(elsewhere, type(window)))
        check_distribution(sampler, (window.n_tokens,), n_again=1)


def check_distribution(made, counts=(1, 2, 3), known=None, **options):
    for n_tokens in counts:
        wanted, n_paths = made.wanted(n_tokens), [0]

        def text(rng, n_tokens=n_tokens, n_paths=n_paths):
            n_paths[0] += 1
            return made.text(n_tokens, rng)

        def told(distribution, wanted=wanted, n_tokens=n_tokens):
            return (
                mistake_in_a_text(distribution, wanted, made, n_tokens, known),
                "",
                f"  {made.case}, {n_tokens} tokens",
            )

        compared("your sampler", text, wanted, told, tolerance=made.tolerance, **options)
        if n_tokens == 2 and n_paths[0] > FEW_PATHS:
            return


def note_lists_alone(made):
    """A note on a sampler that takes only lists."""
    try:
        takes_arrays = made.text(9, 0, np.array(PROMPT)) == made.text(9, 0)
    except AssertionError:
        takes_arrays = False
    if not takes_arrays:
        note("your sampler is right for a prompt that is a list, but not for an array: tokens = list(prompt)")
