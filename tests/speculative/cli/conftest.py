"""Models that are loaded once, and measurements that are quick, for the tests of the commands."""

from dataclasses import replace
from functools import lru_cache

import pytest

import gpt2np
from speculative import measure_costs
from speculative.cli import brought

load = lru_cache(gpt2np.load)


@lru_cache
def load_short(name, *arguments):
    """The bundled target with three of its layers: a command does the same with it, in half of the time."""
    model, tokenizer = load(name, *arguments)
    if name == "tiny-target":
        params = {**model.params, "blocks": model.params["blocks"][:3]}
        model = gpt2np.GPT2(params, replace(model.hparams, n_layer=3), model.strategy)
    return model, tokenizer


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    """Each test runs in a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def load_once(monkeypatch):
    """A model that was used gives what a new one gives."""
    monkeypatch.setattr(gpt2np, "load", load_short)


@pytest.fixture
def whole_models(load_once, monkeypatch):
    """The models with all their layers, where their text matters."""
    monkeypatch.setattr(gpt2np, "load", load)


@pytest.fixture(autouse=True)
def measure_little(monkeypatch):
    """Costs once: see tests/speculative/measuring."""
    monkeypatch.setitem(measure_costs.__kwdefaults__, "repeats", 1)


@pytest.fixture(autouse=True)
def import_again():
    """A file of the same name in another folder is another file."""
    for cached in (brought.loaded, brought.brought, brought.graded_verifier, brought.graded_drafter):
        cached.cache_clear()
