"""The museum's mistakes: each is caught with a hint that names it; how far each changes the distribution."""

import re

import numpy as np
import pytest

from speculative import ModelDrafter, Sampling, exact_distribution
from speculative.cli.commands.museum import entry
from speculative.testing import (
    TableModel,
    check_batch,
    check_drafter,
    check_language_model,
    check_sampler,
    check_verifier,
)
from speculative.testing.museum import (
    CONSTRUCTED,
    ENGINE_EXHIBITS,
    EXHIBITS,
    TREE_EXHIBITS,
    caught_by,
    law_error,
    source,
)

ALL = EXHIBITS | TREE_EXHIBITS | ENGINE_EXHIBITS
LAW_IS_RIGHT = {
    "residual in place", "accepted at equality", "overshoot", "stop token missed in mid-block", "the prompt written to",
    "features one off", "predicted state stays in the draft's cache",
    "a child without its parent", "mask in 32 bits", "a counter past the stop token",
    "the correction counted as accepted", "the draft's cache cut too far",
}  # fmt: skip
ERRORS = {  # by prototypes, for p = (.2, .2, .4, .2), q = (.1, .1, .1, .7) and two candidates
    "unchanged q for every sibling": 0.1333,
    "residual with the full q": 0.0381,
    "stale p for siblings": 0.1,
    "residual not renormalised between siblings": 0.1,
    "duplicates skipped": 0.04,
    "one coin for all siblings": 0.0533,
    "the target's draw for every sibling": 0.144,
    "duplicates counted twice": 0.0957,
    "k-SEQ with rho = 1": 0.1,
    "k-SEQ on draws without replacement": 0.1091,
    "best of several chains": 0.1,
    "typical acceptance in a tree": 0.8,
    "the first row for every sibling": 0.1333,
    "most likely tokens with soft rows": 0.5143,
    "siblings sorted": 0.0667,
    "siblings reranked": 0.0833,
}
LINK = r"https://github\.com/[\w.-]+/[\w.-]+/(?:(?:issues|pull)/\d+|blob/HEAD/\w[\w/.]+\w)"
LONG = {name for name, exhibit in ALL.items()  # those of batches and of looking back are graded in testing/, too
        if exhibit.grader is check_batch or name.startswith(("looking back: ", "mask: ", "the draft's c"))}  # fmt: skip


def by_default(names):
    return [pytest.param(name, marks=[] if name in names else [pytest.mark.slow]) for name in ALL]


@pytest.mark.parametrize("name", by_default(ALL.keys() - LONG))
def test_every_mistake_is_caught_with_a_hint_that_names_it(name, request):
    if "stop token" in name:  # looked for after all cases
        request.getfixturevalue("few_cases")
    message = caught_by(ALL[name])
    assert message is not None and re.match(ALL[name].hint, message), message


@pytest.mark.parametrize(
    "name",
    by_default(
        ["residual in place", "residual not clipped", "top-k draft with the full row", "mask: all rows but the bonus"]
        + ["cut at the first forbidden token", "looking back: last token twice"]
    ),
)
def test_the_error_of_the_distribution_is_0_only_where_another_check_sees_the_mistake(name):
    error = law_error(ALL[name])
    assert error < 1e-12 if name in LAW_IS_RIGHT else error > 1e-9


def test_the_source_of_an_edit_is_a_diff_and_of_others_their_code():
    sources = {name: source(exhibit) for name, exhibit in ALL.items()}
    assert [line for line in sources["residual from the target"].splitlines() if line[0] != " "] == [
        "-            return Verdict(i, sample_token(residual(p, q), rng))",
        "+            return Verdict(i, sample_token(p, rng))",
    ]
    assert sources["greedy draft with a soft row"].startswith("Mistake(")
    assert sources["best of several chains"].startswith("def paths_apart(")
    assert sources["one noise for draft and correction"].startswith("class OneNoise(")
    assert all(sources.values())


def test_an_error_of_rounding_is_shown_as_0():
    assert entry(ALL["residual in place"])["law_error"] == 0 < entry(ALL["row in low precision"])["law_error"] < 1e-3


@pytest.mark.parametrize("name", ERRORS)
def test_the_distribution_is_off_by_as_much_as_elsewhere(name):
    assert law_error(TREE_EXHIBITS[name]) == pytest.approx(ERRORS[name], abs=6e-5)


def test_each_says_what_is_wrong_and_where_it_was_seen():
    assert len(EXHIBITS) + len(TREE_EXHIBITS) + len(ENGINE_EXHIBITS) == len(ALL)
    assert {e.grader for e in EXHIBITS.values()} == {check_drafter, check_language_model, check_sampler, check_verifier}
    texts = [exhibit.what for exhibit in ALL.values()]
    assert len(set(texts)) == len(texts) and all(text.endswith(".") for text in texts)
    for exhibit in ALL.values():
        assert (exhibit.seen == CONSTRUCTED) != bool(re.findall(f"{LINK}|dev/audits", exhibit.seen)), exhibit.seen
    for exhibits in (EXHIBITS, TREE_EXHIBITS):
        hints = [exhibit.hint for exhibit in exhibits.values() if exhibit.grader is check_verifier]
        assert len(set(hints)) == len(hints)


def test_one_noise_by_hand():
    """Token 0 is rejected only after a number below 1/2, with which the residual (0, 3/4, 1/4) gives token 1."""
    target, draft = TableModel([[0.1, 0.6, 0.3]] * 3), TableModel([[0.5, 0.3, 0.2]] * 3)
    drafter = ModelDrafter(draft, sampling=Sampling())
    sampler = ALL["one noise for draft and correction"].wrong(target, drafter, K=1, sampling=Sampling())
    found = exact_distribution(lambda rng: sampler.generate([0], 2, rng).tokens[0])
    np.testing.assert_allclose([found[token] for token in range(3)], [0.1, 0.7, 0.2], rtol=1e-6)
