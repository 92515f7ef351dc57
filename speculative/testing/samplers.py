"""The grader of samplers: the distribution of the tokens, their number, and other things a loop can get wrong."""

import contextlib
import itertools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from time import monotonic
from typing import Any

import numpy as np

from ..drafters.model import ModelDrafter
from ..exact.enumeration import CannotEnumerate, exact_distribution
from ..exact.table import TableModel
from ..interfaces import Draft
from ..logits.probs import Sampling
from ..tree import is_chain, n_common, texts_of_rows
from .cases import (
    NAMING,
    NEARLY_CERTAIN,
    NEARLY_RIGHT,
    TOLERANCE,
    Passed,
    alike,
    compared,
    entry_like,
    has,
    is_right,
    largest_difference,
    marginal,
    shortened,
    up_to,
)
from .greedy import GREEDY, check_greedy, is_greedy
from .mistakes import samplers as catalogue
from .mistakes import verifiers
from .pace import told_pace
from .sources import Sources
from .tree_windows import TreeWindow, WindowTree, tree_windows
from .tree_windows import facts as tree_facts
from .watch import UNKNOWN_SOURCE, asked, fail, fail_by_source, note, told_error, with_progress
from .windows import facts, shared, windows

PROMPT = [2, 1]
FEW_PATHS = 150  # if two tokens take no more than these, three are enumerated as well
MOST_CALLS = 400  # calls of target and drafter together, for at most 10 tokens
TIED = "K = 2, Sampling(temperature=0), two equal maxima"


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
        passed = check_greedy(made(draft, 2), entries, in_window, takes_stops)
        return Passed(passed + told_pace(made(ModelDrafter(other, sampling=greedy), 1, greedy), what, seed))
    for name, K in itertools.product(drafters, (1, 2)):
        check_distribution(made(drafters[name](Sampling()), K, usual, f"K = {K}, {usual}, {name}"))
    for sampling in (Sampling(temperature=0.5), Sampling(top_k=2)) if target_sampling is None else ():
        drafter = ModelDrafter(other, sampling=sampling)
        check_distribution(made(drafter, 2, sampling, f"K = 2, {sampling}, a draft model"))
    if takes_stops:
        check_stops(made(draft, 2, usual), made(draft, 3, usual))
    if target_sampling is None and look_back:  # a sampling that is some function of all tokens before a row
        sampling = Sampling(processors=[AllTokens(rng)])
        drafter = ModelDrafter(other, sampling=Sampling(temperature=1 - with_models))
        check_distribution(made(drafter, 2, sampling, "K = 2, a sampling that looks back"), (3,), LOOKING_BACK)
    for sure in nearly_certain(made(draft, 1, usual)):
        check_distribution(sure, (2,))
    if not with_models:
        for n_left in range(4):
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


@dataclass
class Made:
    """A sampler made from these parts, and how to ask it for a text."""

    make: Callable
    target: Any
    drafter: Any
    K: int
    sampling: Any = field(default_factory=Sampling)
    case: str = ""
    prompt: Any = field(default_factory=PROMPT.copy)
    tolerance: float = TOLERANCE
    overshoots: bool = False
    stops: tuple = ()
    elsewhere: Callable = list  # what the grader knows of other cases (see check_windows)

    def __post_init__(self):
        def made():
            return self.make(self.target, self.drafter, K=self.K, sampling=self.sampling)

        def where():
            return f"when it is made as make(target, drafter, K={self.K}, sampling={self.sampling})"

        self.sampler = asked(made, "your sampler", where)
        if not callable(getattr(self.sampler, "generate", None)):
            fail(f"a sampler has a method generate(prompt, n_tokens, rng); yours is {shortened(self.sampler)}")

    def text(self, n_tokens, rng, prompt=None, case="", **options):
        """The new tokens, a list of int; `rng` is a generator or a seed."""
        rng, prompt = np.random.default_rng(rng), (self.prompt if prompt is None else prompt).copy()
        self.target.calls.clear()

        def where():
            parts = f"for prompt = {[int(token) for token in prompt]}, n_tokens = {n_tokens}", case or self.case
            return ", ".join(filter(None, parts))

        if self.stops:
            options["stop_tokens"] = [*self.stops]

        def call():
            result = self.sampler.generate(prompt, n_tokens, rng, **options)
            if result is None:
                fail("generate returns the new tokens, or a Generation; yours returns None", f"  {where()}")
            self.stats = getattr(result, "stats", None)
            return list(getattr(result, "tokens", result))

        try:
            tokens = asked(call, "your sampler", where, (prompt,))
        except AssertionError as error:
            if error.__cause__ is None or not (hint := self.wrong_question()):
                raise
            raise told_error(hint, *str(error).splitlines()) from error.__cause__
        try:
            return [operator.index(token) for token in tokens]
        except TypeError:
            hint = f"generate returns tokens, whole numbers in one sequence; yours returns {shortened(tokens)}"
            fail(hint, f"  {where()}")

    def wrong_question(self):
        """A sentence if the last question to the target does not fit the draft; otherwise None."""
        rounds, (tokens, n_last) = getattr(self.drafter, "rounds", ()), self.target.question
        text, drafted = rounds[-1] if rounds else ([], [])
        if drafted and tokens == text:
            return f"your sampler asks the target about the text without its draft tokens{ROWS}"
        if drafted and tokens == text + drafted and n_last <= len(drafted):
            return f"your sampler asks the target for too few rows, {n_last} for {len(drafted)} draft tokens{ROWS}"
        return None

    def wanted(self, n_tokens):
        """The target's distribution, each text cut at its first stop token."""
        whole = self.target.table.distribution(self.prompt, n_tokens, self.sampling)
        return marginal(whole, lambda tokens: up_to(tokens, self.stops))

    def is_right(self, n_tokens, until):
        return is_right(partial(self.text, n_tokens), self.wanted(n_tokens), until, self.tolerance)

    def is_like(self, make, n_tokens, wanted, until):
        """Whether n_tokens tokens have this distribution, from a second sampler with the same parts."""
        if self.overshoots and make.room is catalogue.Loop.room:  # like a function that always drafts K tokens
            make = type(make.__name__, (make,), {"room": lambda self, n_left, n_text: self.K})
        sampler = make(self.target, self.drafter, K=self.K, sampling=self.sampling)

        def text(rng):
            self.target.calls.clear()
            return sampler.generate(self.prompt.copy(), n_tokens, rng, self.stops).tokens[:n_tokens]

        return has(text, wanted, until)


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


def nearly_certain(made):
    """The sampler in cases with probabilities close to 1 and to 0."""
    for kind, rows in NEARLY_CERTAIN.items():
        sure, other = (TableModel([row] * 3, made.target.n_ctx) for row in rows)
        drafter, target = ModelDrafter(other, sampling=made.sampling), Target(sure, made.target.calls)
        case = f"K = 1, {made.sampling}, {kind}"
        yield replace(made, target=target, drafter=drafter, K=1, case=case, prompt=[0])


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


def in_window(made, window, seed, target_sampling=None, elsewhere=list):
    """The sampler in a window; the text ends at n_ctx or before it."""
    room = len(window.prompt) + window.n_tokens + window.near + 20 * made.overshoots
    table, other = (window.model(name, seed, room) for name in ("target", "draft"))
    sampling = replace(window.sampling, temperature=0) if window.greedy else window.sampling
    drafter, target = ModelDrafter(other, sampling=sampling), Target(table, made.target.calls)
    if isinstance(window, TreeWindow):
        drafter = target.drafter = WindowTree(window, table, other, sampling)
    return replace(
        made, target=target, drafter=drafter, K=window.K, sampling=target_sampling or window.sampling,
        case=str(window), prompt=window.prompt, stops=window.stops, elsewhere=elsewhere,
    )  # fmt: skip


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


# ------------------------------------------------------------------------------------------------ the mistake

ROWS = ": target([*tokens, *draft_tokens], n_last=k + 1) has a row for each of k draft tokens, and one for the bonus"
LIMIT = "right, but not where tokens are nearly certain: is a probability compared with a limit, or rounded?"
AROUND = [*catalogue.SAMPLING, *catalogue.LOOPS]
LOOKING_BACK = catalogue.LOOKING_BACK
ONE = [*verifiers.WHOLE, *verifiers.BONUS, *verifiers.ACCEPT, *verifiers.REST]
ONE = [mistake for mistake in ONE if len(mistake.variants) < 10]  # not those of an epsilon, which has many values
SEVERAL = [*verifiers.SEVERAL, *verifiers.BLOCK]


def mistake_in_a_text(distribution, wanted, made, n_tokens, known=None):
    """The mistake in a sentence, from the catalogue's entry with this distribution in the same case."""
    error = largest_difference(distribution, wanted)
    if known is None and error < 1e-4:
        return NEARLY_RIGHT.format(error)
    if made.case == TIED and (len(distribution) == 1 or error > 0.1):
        return (
            "at temperature 0 your sampler does not take the first of two equal maxima, as the target alone does: "
            "np.argmax, not a softmax at a small temperature"
        )
    if known is None and getattr(made.sampling, "temperature", 1) == 0 and len(distribution) > 1:
        return (
            "your sampler draws at temperature 0, where the text is the greedy one: put the logits through `sampling`"
        )
    if "nearly" in made.case:
        return LIMIT
    if made.overshoots:  # a function of models that drafts no more than are missing
        exact_end = replace(made, overshoots=False)
        if hint := entry_in_a_text(distribution, exact_end, n_tokens, known):
            return hint
    if hint := entry_in_a_text(distribution, made, n_tokens, known):
        return hint
    if wrong := [window for window, _, right in made.elsewhere() if not right]:
        in_trees, of = ("in trees, ", tree_facts) if isinstance(wrong[0], TreeWindow) else ("", facts)
        return f"your sampler goes wrong {in_trees}{shared(wrong, [window for window, *_ in made.elsewhere()], of)}"
    return unknown_mistake(distribution, wanted, made, n_tokens, known)


def entry_in_a_text(distribution, made, n_tokens, known):
    """The sentence of the catalogue's entry with this distribution in the same case, or None."""
    by_length = {n_tokens: distribution}
    with contextlib.suppress(AssertionError, CannotEnumerate):  # three tokens tell mistakes apart, if the paths are few
        by_length[3] = exact_distribution(lambda rng: made.text(3, rng), max_leaves=3000)

    @cache
    def in_others():
        others = nearly_certain(made) if known is None else ()
        in_these = [(other, 2, exact_distribution(partial(other.text, 2))) for other in others]
        if made.K > 1:
            return in_these
        block = replace(made, K=2)
        with contextlib.suppress(CannotEnumerate):  # a function of models has more paths, and drafts two for two tokens
            return [*in_these, (block, 3, exact_distribution(partial(block.text, 3), max_leaves=500))]
        return [*in_these, (block, 2, exact_distribution(partial(block.text, 2)))]

    def agrees(make, until):
        if not all(made.is_like(make, n, shares, until) for n, shares in by_length.items()):
            return False
        if not all(other.is_like(make, n, shares, until) for other, n, shares in in_others()):
            return False
        in_windows = made.elsewhere()  # an entry that is like it is wrong in the same ones
        likes = ((replace(other, make=make), window.n_tokens, right) for window, other, right in in_windows)
        return all(other.is_right(n, until) == right for other, n, right in likes)

    return entry_like(known_samplers(made, known), agrees)


def known_samplers(made, known):
    """(hint, class of samplers) of the entries that may be wrong here; cases with K = 1 came before the others."""
    if isinstance(made.drafter, WindowTree):
        return loops(catalogue.IN_TREES, verifiers.TREES, catalogue.TreeLoop)
    return loops(known, ()) if known else loops(AROUND, ONE if made.K == 1 else SEVERAL)


def loops(around, inside, base=catalogue.Loop):
    """(hint, class of samplers) of entries that are wrong around a verifier, and of wrong verifiers."""
    for mistake in around:
        yield from ((mistake.hint, make) for make in mistake.variants)
    for mistake in inside:
        yield from ((mistake.hint, catalogue.loop(base, verifier=staticmethod(wrong))) for wrong in mistake.variants)


def unknown_mistake(distribution, wanted, made, n_tokens, known):
    """A sentence for a mistake that no entry matches."""
    if known is not None:
        return "your sampler goes wrong with a sampling that looks back, as penalties and grammars do" + catalogue.ROW_I
    if len(distribution) == 1 and len(wanted) > 1:
        return "the text does not depend on the generator: draw from the one that is passed, do not seed in the loop"
    if len(made.prompt) > len(PROMPT):
        return (
            "your sampler goes wrong near the end of the context: where min(K, remaining - 1, n_ctx - len(tokens) - 1) "
            "is less than K, ask the drafter for so many tokens, after the text as it is then, or draft none"
        )
    if n_tokens == 1:
        return (
            "even the first token does not have the target's distribution: where nothing is drafted it is a draw "
            "from sampling(target(tokens), tokens)[0]"
        )
    if "as its own draft" in made.case:
        return (
            "your sampler goes wrong where every draft token is accepted, as it is where draft and target are equal: "
            "accept x with probability min(1, p(x) / q(x)), and keep all K of them and the bonus"
        )
    if "fewer" in made.case:
        return "your sampler goes wrong where the drafter proposes fewer than K tokens: count the tokens of the draft"
    firsts = ((of_first(n, distribution), of_first(n, wanted)) for n in range(1, n_tokens + 1))
    n_right = next(n for n, both in enumerate(firsts) if not alike(*both, TOLERANCE))
    if n_right == 0:
        return (
            "your sampler goes wrong where a draft token is rejected: accept x with probability min(1, p(x) / q(x)), "
            "and replace the first rejected one by a draw from max(0, p - q), normalised; or, in exact match, by the "
            "draw from p that it did not match"
        )
    if made.K > 1:
        return (
            "right for K = 1, but not for a block of several draft tokens: test draft token i against row i, with a "
            "uniform number of its own, replace the first rejected one from its own row, and drop those after it"
        )
    return (
        f"the first {n_right} tokens are right and the next is wrong: which text, draft and rows does it come from? A "
        "rejection, an acceptance, or a round in which nothing is drafted may leave too much or too little"
    )


def of_first(n, distribution):
    """The distribution of the first n tokens."""
    return marginal(distribution, lambda tokens: tokens[:n])


# ------------------------------------------------------------------------------------------------ stops, notes


def takes_stop_tokens(made):
    try:
        made.text(0, 0, stop_tokens=[1])
    except AssertionError as error:
        return "unexpected keyword argument 'stop_tokens'" not in str(error)
    return True


def check_stops(*made_with_draft):
    """With a stop token a text must be the same up to its first occurrence, and end there, wherever the limit is."""
    for made, n_tokens, seed in itertools.product(made_with_draft, range(11), range(8)):
        tokens = made.text(n_tokens, seed, case="stop_tokens = [1]", stop_tokens=[1])
        where = f"  K = {made.K}, n_tokens = {n_tokens}, stop_tokens = [1]: your text is {tokens}"
        if len(tokens) < n_tokens and 1 not in tokens:
            fail("your sampler leaves the stop token out; the text ends with it", where)
        if 1 in tokens[:-1]:
            longer = (made.text(n, seed, stop_tokens=[1]) for n in range(n_tokens + 1, 11))
            if any(tokens[: tokens.index(1) + 1] == text for text in longer):
                hint = "where a round reaches both a stop token and n_tokens, your sampler misses the stop token: look "
                fail(hint + "for it in every token that the round adds, before the text is cut at n_tokens", where)
            fail(
                "your sampler misses a stop token in the middle of a block: look at every token that a round adds, and "
                "drop those after the first",
                where,
            )


def check_counts(made, takes_stops):
    """Compare stats.accepted, if there is one, with the draft tokens that are in the text, if they were observed."""
    runs, stop, n_rounds = [], {"stop_tokens": [1]}, 0
    for options, n_tokens, seed in itertools.product(({}, stop) if takes_stops else ({},), range(11), range(4)):
        made.drafter.rounds = []
        new = made.text(n_tokens, seed, **options)
        text, accepted = [*made.prompt, *new], getattr(made.stats, "accepted", None)
        questions = [tokens for model, tokens in made.target.calls if model is made.target]
        if accepted is None or any([*before, *drafted] not in questions for before, drafted in made.drafter.rounds):
            return  # not counted, or drafted for a different text
        n_rounds += len(made.drafter.rounds)
        case = f"K = {made.K}, n_tokens = {n_tokens}, {options}"
        runs.append((accepted, kept_of(text, made.drafter.rounds), len(new), case))
    if n_rounds:  # otherwise the sampler drafts with drafter.model itself
        check_accepted(runs, "your sampler", str(stop))


def check_accepted(runs, what, stop):
    """AssertionError unless the counts are right; runs: (count, the right ones, number of new tokens, case)."""
    wrong = [(n, kept, case) for n, kept, _, case in runs if n not in kept]
    if not wrong:
        return
    n, kept, case = wrong[0]
    late = all(n > kept[-1] for n, kept, _ in wrong)
    if all(n == n_new for n, _, n_new, _ in runs):
        hint = f"{what} counts the correction and the bonus as accepted"
    elif late and all(stop in str(case) for *_, case in wrong):
        hint = f"{what} counts draft tokens after the stop token as accepted: cut n_accepted with the tokens"
    else:
        hint = f"{what} counts {'too many' if late else 'a wrong number of'} draft tokens as accepted"
    where = "accepted is the number of draft tokens that are in the text"
    fail(hint if ":" in hint else f"{hint}: {where}", f"  {n} are counted, and {kept[-1]} are in the text", f"  {case}")


def kept_of(text, rounds):
    """The numbers that may be called accepted; `rounds` lists (the text before it, its draft tokens) for each round.

    There are two if a round adds no token but its draft: the last draft token may then count as the target's.
    """
    ends = [*(len(before) for before, _ in rounds[1:]), len(text)]
    added = [text[len(before) : end] for (before, _), end in zip(rounds, ends)]
    kept = [n_common(drafted, new) for (_, drafted), new in zip(rounds, added)]
    doubtful = sum(0 < n == len(new) for n, new in zip(kept[:-1], added))
    return range(sum(kept) - doubtful, sum(kept) + 1)


def note_lists_alone(made):
    """A note on a sampler that takes only lists."""
    try:
        takes_arrays = made.text(9, 0, np.array(PROMPT)) == made.text(9, 0)
    except AssertionError:
        takes_arrays = False
    if not takes_arrays:
        note("your sampler is right for a prompt that is a list, but not for an array: tokens = list(prompt)")


# ------------------------------------------------------------------------------------------------ models


class Target:
    """A language model on a TableModel that enforces its n_ctx and detects endless loops."""

    n_ctx, question, drafter = 12, ([], 0), None  # drafter: a WindowTree

    def __init__(self, table, calls):
        self.table, self.n_vocab, self.n_ctx = table, table.n_vocab, table.n_ctx
        self.calls = calls  # (model, tokens) of each call of this model and its drafters since the last generate

    def count(self, tokens):
        self.calls.append((self, tokens))
        if len(self.calls) > MOST_CALLS:
            fail(
                f"your sampler does not return: an endless loop? After {MOST_CALLS} calls of target and drafter there "
                "is no result; each round adds at least one token, also if nothing is drafted (k = 0)"
            )

    def __call__(self, tokens, n_last=1, parents=()):
        tokens, parents = ([operator.index(node) for node in nodes] for nodes in (tokens, parents))
        self.count(tokens)
        self.question = tokens, n_last
        drafted, above = self.drafter.drafted if self.drafter else ([], [])
        if not parents and tokens == drafted and not is_chain(above):
            fail(
                "your sampler asks the target about a tree as if it were a chain: pass its parents, "
                "target([*tokens, *draft.tokens], n_last=n + 1, parents=draft.parents)"
            )
        if parents and (len(parents) >= len(tokens) or any(not -1 <= node < i for i, node in enumerate(parents))):
            fail(
                f"your sampler asks the target with parents that are no tree, {parents} for {len(tokens)} tokens: the "
                "last len(parents) tokens are the draft, and each parent is -1 or the index of an earlier one"
            )
        texts = texts_of_rows(tokens, n_last, parents) if parents else [tokens]  # a tree is as long as its paths
        if (n := max(map(len, texts))) > self.n_ctx:
            fail(
                f"your sampler asks the target about {n} tokens, and its n_ctx is {self.n_ctx}: draft at "
                "most min(K, remaining - 1, n_ctx - len(tokens) - 1)"
            )
        if not 1 <= n_last <= len(tokens):
            fail(f"your sampler asks the target for the last n_last = {n_last} rows of {len(tokens)} tokens{ROWS}")
        return np.array([self.table(text)[0] for text in texts]) if parents else self.table(tokens, n_last)


class Recorded:
    """A drafter that lists (the text, the draft tokens) of each draft in `rounds`."""

    def __init__(self, drafter):
        self.drafter, self.rounds = drafter, []
        self.model, self.sampling = drafter.model, drafter.sampling  # for loops that draft with a model alone

    def propose(self, tokens, K, rng):
        draft = self.drafter.propose(tokens, K, rng)
        self.rounds.append(([*map(int, tokens)], draft.tokens.tolist()))
        return draft


class ShortDrafter:
    """Drafts with a model, but proposes only one token of every K, and none after token 0."""

    def __init__(self, model):
        self.drafter = ModelDrafter(model)
        self.model, self.sampling = model, self.drafter.sampling

    def propose(self, tokens, K, rng):
        draft = self.drafter.propose(tokens, min(K, 1 if tokens[-1] else 0), rng)
        for array in (draft.tokens, draft.probs):
            array.setflags(write=False)
        return Draft(draft.tokens, draft.probs)


class AllTokens:
    """A logits processor that depends on every token before the row and on its position, and sometimes bans a token."""

    def __init__(self, rng, n_vocab=3):
        self.n_vocab, self.weights = n_vocab, rng.normal(size=(64, n_vocab, n_vocab))

    def __repr__(self):
        return "AllTokens()"

    def __call__(self, logits, tokens):
        changed = logits + self.weights[np.arange(len(tokens)) % 64, tokens].sum(axis=0)
        if self.n_vocab > 2 and sum(tokens) % 2:
            changed[sum(tokens) % self.n_vocab] = -np.inf
        return changed


def models(rng):
    """Target and draft model. After the prompt two of three tokens are more probable for the target than for the draft,
    so the residual contains two tokens, and mistakes can be told apart."""
    calls = []
    tables = rng.dirichlet(np.ones(3), size=(2, 3, 3))
    tables[:, 2, 1] = rng.dirichlet([30, 20, 10]), rng.dirichlet([10, 10, 40])
    return (Target(TableModel(table, n_ctx=Target.n_ctx), calls) for table in tables)
