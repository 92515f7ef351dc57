"""The README's blocks and the docstrings' examples run and give what they say."""

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys

import pytest
from conftest import ROOT

import gpt2np
import speculative

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.M | re.S)
PACKAGES = (gpt2np, speculative)
MODULES = [
    name
    for package in PACKAGES
    for _, name, _ in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    if name != "gpt2np.tiny.train"
]


def normal(output):
    """A page of main.py without the numbers that depend on the machine and the moment."""
    output = re.sub(r"in \d+\.\d\d s, \d+\.\d tokens per second", "in _ s, _ tokens per second", output)
    output = re.sub(r"^.* time .*$", lambda line: re.sub(r"\d+\.\d+", "_", line.group()), output, flags=re.M)
    output = re.sub(r"^best K        .*\(alpha (\d\.\d\d) .*$", r"best K        _ (alpha \1 _", output, flags=re.M)
    return re.sub(r"^speedup       \d+\.\d\d$", "speedup       _", output, flags=re.M)


def test_the_output_shown_is_that_of_the_command():
    """All of it, or its last lines: `$ python main.py | tail -n 7`."""
    shown = [found for _, block in BLOCKS if (found := re.match(r"\$ python main\.py(?: \| tail -n (\d+))?\n", block))]
    assert len(shown) == 1
    output = subprocess.run([sys.executable, "main.py"], cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    lines = output.stdout.splitlines()[-int(shown[0][1] or 0) :]
    assert normal("\n".join(lines)).split() == normal(shown[0].string[shown[0].end() :]).split()


def test_the_three_set_up_commands_stand_in_it():
    commands = re.findall(r"^python -m pip install.*$", README, re.M)
    assert commands == [
        "python -m pip install -e . && python main.py",
        'python -m pip install -e ".[test]" && python -m pytest',
        'python -m pip install -e ".[test,notebooks]" && python -m pytest -m notebooks',
    ]


def test_the_python_blocks_run():
    blocks = [block for language, block in BLOCKS if language == "python"]
    assert blocks
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "README.md", "README.md", 0)
    assert len(examples.examples) > 5
    assert runner.run(examples).failed == 0


def test_every_file_that_it_names_is_there():
    names = re.findall(r"`((?:gpt2np|speculative|tests|notebooks)/[\w/.-]+)`", README)
    assert len(names) > 10
    assert [name for name in names if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_docstring_examples():
    finder = doctest.DocTestFinder()
    n = sum(len(test.examples) for name in MODULES for test in finder.find(importlib.import_module(name)))
    assert n > 10


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_a_docstring(package):
    assert [name for name in package.__all__ if not (getattr(package, name).__doc__ or "").strip()] == []
