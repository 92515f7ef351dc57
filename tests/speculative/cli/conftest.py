"""Models that are loaded once, for the tests of the commands."""

from functools import lru_cache

import pytest

import gpt2np
from speculative.cli import brought

load = lru_cache(gpt2np.load)


@pytest.fixture(autouse=True)
def load_once(monkeypatch):
    """A model that was used gives what a new one gives."""
    monkeypatch.setattr(gpt2np, "load", load)


@pytest.fixture(autouse=True)
def import_again():
    """A file of the same name in another folder is another file."""
    for cached in (brought.loaded, brought.brought, brought.graded_verifier, brought.graded_drafter):
        cached.cache_clear()


@pytest.fixture(scope="session")
def timeless():
    """A function: a report without what a clock has measured."""

    def without(value):
        if isinstance(value, dict):
            return {name: without(each) for name, each in value.items()}
        if isinstance(value, list):
            return [without(each) for each in value]
        return None if isinstance(value, float) else value

    return without
