"""The museum's mistakes in trees: each is caught with a hint that names it; how far each changes the distribution."""

import re

import pytest

from speculative.cli.commands.museum import entry, table
from speculative.museum import CONSTRUCTED, EXHIBITS, TREE_EXHIBITS, caught_by, law_error
from speculative.testing import check_drafter, check_language_model, check_verifier

LAW_IS_RIGHT = {"accepted at equality in a tree", "a child without its parent", "mask in 32 bits"}
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
    "likeliest tokens with soft rows": 0.5143,
    "siblings sorted": 0.0667,
    "siblings reranked": 0.0833,
}


@pytest.mark.parametrize("name", TREE_EXHIBITS)
def test_every_mistake_in_a_tree_is_caught_with_a_hint_that_names_it(name):
    message = caught_by(TREE_EXHIBITS[name])
    assert message is not None and re.match(TREE_EXHIBITS[name].hint, message), message


@pytest.mark.parametrize("name", ERRORS)
def test_the_distribution_is_off_by_as_much_as_elsewhere(name):
    assert law_error(TREE_EXHIBITS[name]) == pytest.approx(ERRORS[name], abs=6e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", TREE_EXHIBITS)
def test_the_error_of_the_distribution_is_0_only_where_another_check_sees_the_mistake(name):
    error = law_error(TREE_EXHIBITS[name])
    assert error < 1e-12 if name in LAW_IS_RIGHT else error > 1e-4


def test_each_says_what_is_wrong_and_where_it_was_seen():
    assert {e.grader for e in TREE_EXHIBITS.values()} == {check_drafter, check_language_model, check_verifier}
    assert not EXHIBITS.keys() & TREE_EXHIBITS.keys()
    texts = [e.what for e in [*EXHIBITS.values(), *TREE_EXHIBITS.values()]]
    assert len(set(texts)) == len(texts) and all(text.endswith(".") for text in texts)
    for exhibit in TREE_EXHIBITS.values():
        links = re.findall(
            r"https://github\.com/[\w.-]+/[\w.-]+/(?:(?:issues|pull)/\d+|blob/HEAD/\w[\w/.]+\w)", exhibit.seen
        )
        assert (exhibit.seen == CONSTRUCTED) != bool(links), exhibit.seen
    hints = [e.hint for e in TREE_EXHIBITS.values() if e.grader is check_verifier]
    assert len(set(hints)) == len(hints)


@pytest.mark.slow
def test_the_page_of_the_museum_has_them():
    page = table([entry(exhibit) for exhibit in TREE_EXHIBITS.values()])
    for exhibit in TREE_EXHIBITS.values():
        line = next(line for line in page.splitlines() if line.startswith(exhibit.name + "  "))
        assert line.split()[-1] == exhibit.grader.__name__ and exhibit.what in page and exhibit.seen in page
