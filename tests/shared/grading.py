"""Fixtures that make grading faster."""

import pytest

from speculative.testing import forms, samplers, verifiers


@pytest.fixture
def few_cases(monkeypatch):
    """Graders with a part of their cases, for what the others do not concern."""
    all_of_them = samplers.windows
    monkeypatch.setattr(samplers, "windows", lambda *options: [*all_of_them(*options)][::5])
    monkeypatch.setattr(verifiers, "LARGER", verifiers.LARGER[:5])


@pytest.fixture
def few_forms(monkeypatch):
    """check_function with the commonest results alone, where it must guess the form."""
    monkeypatch.setattr(forms, "USUAL", forms.USUAL[:2])
