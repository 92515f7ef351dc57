"""What the tests of the commands share: models that are loaded once, and a small report of every experiment."""

import json
from functools import cache, lru_cache

import pytest
from command import EXPERIMENTS, run_here

import gpt2np
from speculative import Costs
from speculative.cli.inputs import TALES

load = lru_cache(gpt2np.load)


@pytest.fixture(autouse=True)
def load_once(monkeypatch):
    """A model that was used gives what a new one gives."""
    monkeypatch.setattr(gpt2np, "load", load)


@pytest.fixture(scope="session")
def few_tales(tmp_path_factory):
    path = tmp_path_factory.mktemp("tales") / "tales.txt"
    path.write_text(TALES.read_text(encoding="utf-8")[:40_000], encoding="utf-8")
    return path


@pytest.fixture
def quick(monkeypatch, few_tales):
    """Short tales, few tokens before text repeats itself, a short warm-up."""
    make_quick(monkeypatch, few_tales)


def make_quick(patch, tales):
    patch.setattr("speculative.cli.inputs.TALES", tales)
    patch.setattr("speculative.cli.inputs.N_AHEAD", 12)
    patch.setattr("speculative.measuring.runs.N_WARM", 1)


@pytest.fixture(scope="session")
def small(tmp_path_factory, few_tales):
    """A function: the name of an experiment -> (report, page, path of the plot), with few tokens and a small model."""
    folder, costs = tmp_path_factory.mktemp("reports"), Costs(0.001, 0.1, (1.0,) * 9)

    @cache
    def made(name):
        path, plot = folder / f"{name}.json", folder / f"{name}.png"
        with pytest.MonkeyPatch.context() as patch:
            make_quick(patch, few_tales)
            patch.setattr("speculative.cli.experiments.calibration.measure_costs", lambda *_, **options: costs)
            patch.setattr(gpt2np, "load", load)
            result = run_here(name, *EXPERIMENTS[name], "--json", path, "--plot", plot)
        assert result.returncode == 0, result.stderr
        return json.loads(path.read_text("utf-8")), result.stdout, plot

    return made
