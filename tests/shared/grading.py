"""Fixtures that make grading faster."""

import pytest

from speculative.testing import batches, forms, samplers, verifiers


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


KNOWN = {}  # what was computed, by what it depends on


@pytest.fixture
def simulated_once(monkeypatch):
    """The entries of the catalogues are simulated once for all wrong answers, not once for each."""

    def remember(owner, name, key):
        computed = getattr(owner, name)

        def known(self, *given):
            asked = key(self, *given)
            if asked not in KNOWN:
                KNOWN[asked] = computed(self, *given)
            return KNOWN[asked]

        monkeypatch.setattr(owner, name, known)

    def of_a_sampler(made, make, n_tokens):
        entry = make.verifier if make.__qualname__ == "Loop" and "verifier" in vars(make) else make
        parts = made.K, repr(made.sampling), made.case, made.overshoots, repr(made.target.table.rows if hasattr(made.target.table, "rows") else made.target.table.probs), repr(made.prompt), made.stops
        return entry, n_tokens, *parts

    remember(samplers.Made, "simulated", of_a_sampler)
    remember(batches.Loop, "distribution", lambda loop, case: (loop.serve, str(case), loop.table.probs.tobytes()))
