"""Fixtures that make grading faster, and independent of how fast the machine is."""

import pytest

from speculative.testing import batches, cases, forms, samplers, verifiers


@pytest.fixture
def few_cases(monkeypatch):
    """Graders with a part of their cases, for what the others do not concern."""

    def few(module, name):
        every = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *options: [*every(*options)][::9])

    few(samplers, "windows")
    few(verifiers, "in_trees")
    few(batches, "of_windows")
    monkeypatch.setattr(verifiers, "WINDOWS", verifiers.WINDOWS[::9])
    monkeypatch.setattr(verifiers, "LARGER", verifiers.LARGER[:5])


@pytest.fixture(autouse=True)
def time_to_name(monkeypatch):
    """A mistake is named however busy the machine is."""
    for module in (cases, samplers, batches):
        monkeypatch.setattr(module, "NAMING", 90.0)


@pytest.fixture
def few_forms(monkeypatch):
    """check_function with the commonest results alone, where it must guess the form."""
    monkeypatch.setattr(forms, "USUAL", forms.USUAL[:2])
