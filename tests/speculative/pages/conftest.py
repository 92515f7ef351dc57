import pytest
from browser import chromium


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running
