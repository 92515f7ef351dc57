"""museum: what it finds. Its pages are in pages/."""

from speculative.cli.commands import museum
from speculative.testing.museum import EXHIBITS, TREE_EXHIBITS


def test_the_mistakes_about_a_word_are_in_a_section_of_their_own():
    assert not any(museum.has(one, "of trees") for one in EXHIBITS.values() if "of trees" not in one.what)
    assert all(museum.has(one, "OF TREES") for one in TREE_EXHIBITS.values())
