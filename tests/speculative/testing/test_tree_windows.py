"""check_sampler(trees=True): right loops that draft trees pass, and the mistakes in wrong ones are named."""

import pytest
from students import told

from speculative import SpeculativeSampler, exact_match, rejection, traversal
from speculative.testing import check_sampler
from speculative.testing.mistakes import samplers
from speculative.testing.tree_windows import SHAPES, tree_windows
from speculative.tree import path


def graded(make):
    return check_sampler(make, trees=True)


@pytest.mark.parametrize(
    "verifier", [traversal, *(pytest.param(v, marks=pytest.mark.slow) for v in (rejection, exact_match))]
)
def test_the_librarys_own_pass(verifier):
    def make(target, drafter, K, sampling):
        return SpeculativeSampler(target, drafter, verifier=verifier, K=K, sampling=sampling)

    assert graded(make).startswith("check_sampler: the text has the target's distribution")


IN_TREES = [(mistake.hint, wrong) for mistake in samplers.IN_TREES for wrong in mistake.variants]


@pytest.mark.parametrize(("hint", "make"), [
    IN_TREES[0], *(pytest.param(*one, marks=pytest.mark.slow) for one in IN_TREES[1:])
])  # fmt: skip
def test_the_mistake_is_named(hint, make, few_cases):
    check_sampler(make)
    assert told(graded, make) == hint


@pytest.mark.slow
def test_the_target_is_asked_about_a_tree_with_its_parents():
    class NoParents(samplers.TreeLoop):
        def rows(self, text, drafted):
            tokens = [*text, *drafted]
            return self.looked(self.target(tokens, n_last=len(drafted) + 1), tokens, self.draft.parents.tolist())

    assert "as if it were a chain: pass its parents" in told(graded, NoParents)


def test_what_a_passed_loop_has_been_compared_for():
    cases = [*tree_windows()]
    places = {(case.shape, case.leaf, case.opened[0]) for case in cases}
    wanted = {
        (s, leaf, i) for s, (p, leaves) in SHAPES.items() for leaf in leaves for i in range(len(path(p, leaf)) + 1)
    }
    assert places == wanted
    ways = {(case.shape, case.opened[0], case.way) for case in cases if case.opened[0] < len(case.nodes)}
    assert len(ways) >= 40
    assert all(sum(str(case.sampling) == str(one.sampling) for case in cases) >= 5 for one in cases)
