"""Models that are loaded once, for the tests of the commands."""

from functools import lru_cache

import pytest

import gpt2np

load = lru_cache(gpt2np.load)


@pytest.fixture(autouse=True)
def load_once(monkeypatch):
    """A model that was used gives what a new one gives."""
    monkeypatch.setattr(gpt2np, "load", load)
