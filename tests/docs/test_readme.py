"""The README's blocks and the docstrings' examples run and give the results shown."""

import doctest
import importlib
import pkgutil
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest
from command import run_here
from helpers import ROOT

import gpt2np
import speculative

README = (ROOT / "README.md").read_text(encoding="utf-8")
FOLDERS = (".", "docs", "notebooks", "gpt2np/tiny")
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for folder in FOLDERS
    for path in sorted((ROOT / folder).glob("*.md"))
}
PACKAGES = (gpt2np, speculative)
MODULES = [
    name
    for package in PACKAGES
    for _, name, _ in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    if name != "speculative.testing.torch_draws" or find_spec("torch")
]


def blocks(page, language=""):
    """The fenced blocks of a page in a language, those inside of a list as well."""
    found = re.findall(r"^( *)```(\w*)\n(.*?)^ *```$", page, re.M | re.S)
    return [re.sub(f"^{indent}", "", block, flags=re.M) for indent, kind, block in found if kind == language]


def normal(output):
    """A page of main.py without the measurements that depend on the machine and the moment."""
    output = re.sub(r"in \d+\.\d\d s, \d+\.\d tokens per second", "in _ s, _ tokens per second", output)
    output = re.sub(r"^.* time .*$", lambda line: re.sub(r"\d+\.\d+", "_", line.group()), output, flags=re.M)
    output = re.sub(r"^best K        .*\(alpha (\d\.\d\d) .*$", r"best K        _ (alpha \1 _", output, flags=re.M)
    return re.sub(r"^speedup       \d+\.\d\d$", "speedup       _", output, flags=re.M)


def output_of(command):
    arguments, *_ = command.removeprefix("$ python ").split(" | ")
    run = subprocess.run(
        [sys.executable, *arguments.split()], cwd=ROOT, capture_output=True, encoding="utf-8", check=True
    )
    return run.stdout


def test_the_front_page_is_short():
    assert len(README.splitlines()) <= 140


def test_the_output_shown_is_that_of_the_command():
    (shown,) = [block for block in blocks(README) if block.startswith("$ python main.py | tail -n ")]
    command, *lines = shown.splitlines()
    n = int(command.rpartition(" ")[2])
    assert normal("\n".join(output_of(command).splitlines()[-n:])).split() == normal("\n".join(lines)).split()


def test_the_options_shown_are_those_of_the_command():
    """When this fails: python docs/run_blocks.py docs/options.md"""
    shown = [block for block in blocks(PAGES["docs/options.md"]) if block.startswith("$ python main.py ")]
    assert len(shown) == 2
    for block in shown:
        command, _, output = block.partition("\n")
        assert run_here(*command.split()[3:]).stdout.strip() == output.strip(), command


@pytest.mark.parametrize("name", ["docs/measurements.md", "docs/measurements_avx2.md"])
def test_the_measurements_are_of_one_run_on_a_machine_that_is_named(name):
    page = PAGES[name]
    assert re.search(r"^Machine: \d+ cores, .*NumPy \d", page, re.M)
    shown = [block.splitlines() for block in blocks(page)]
    assert len(shown) >= 5 and all(command.startswith("$ ") and output for command, *output in shown)


def test_the_set_up_commands_are_in_it():
    commands = re.findall(r"^python -m pip install.*$", README, re.M)
    assert commands == [
        "python -m pip install -e . && python main.py",
        'python -m pip install -e ".[test]" && python -m pytest -n auto --dist loadfile',
        'python -m pip install -e ".[test,notebooks]" && python -m pytest -m notebooks',
    ]


WORKFLOW = ROOT / ".github" / "workflows" / "tests.yml"


def test_the_workflow_runs_the_test_command():
    """On each system, with the oldest versions that setup.py promises and with the newest."""
    workflow, promised = WORKFLOW.read_text(encoding="utf-8"), (ROOT / "setup.py").read_text(encoding="utf-8")
    (command,) = re.findall(r"^python -m pip install .* python -m pytest -n auto.*$", README, re.M)
    assert f"        run: {command}\n" in workflow and command in PAGES["CONTRIBUTING.md"]
    (python,) = re.findall(r'python_requires=">=(.*?)"', promised)
    (numpy,) = re.findall(r'"numpy>=(.*?)"', promised)
    assert (
        f'- {{ python: "{python}", numpy: "=={numpy}.*" }}\n' in workflow
        and f"numpy=={numpy}." in PAGES["CONTRIBUTING.md"]
    )
    systems = re.search(r"^ +system: \[(.*)\]$", workflow, re.M).group(1).split(", ")
    assert systems == ["ubuntu-latest", "ubuntu-24.04-arm", "macos-latest", "windows-latest"]


def test_the_workflow_is_yaml():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    job = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]["tests"]
    assert len(job["strategy"]["matrix"]["versions"]) == 2 and len(job["steps"]) == 5


@pytest.mark.skipif(not shutil.which("actionlint"), reason="actionlint is not installed")
def test_the_workflow_passes_actionlint():
    run = subprocess.run(["actionlint", WORKFLOW], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("name", ["README.md", "docs/measurements.md", "docs/engines.md"])
def test_the_python_blocks_run(name):
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks(PAGES[name], "python")), {}, name, name, 0)
    assert len(examples.examples) > 2
    assert runner.run(examples).failed == 0


@pytest.mark.parametrize("name", PAGES)
def test_every_file_that_a_page_names_is_there(name):
    page, folder = PAGES[name], (ROOT / name).parent
    names = re.findall(r"`((?:gpt2np|speculative|tests|notebooks|docs)/[\w/.-]+)`", page)
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page) if not link.startswith("http")]
    assert [path for path in names if not (ROOT / path).exists()] == []
    assert [link for link in links if not (folder / link).exists()] == []


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


def test_what_five_tokens_cost_is_what_was_measured():
    """Notebook 06 on docs/measurements.md: the strategy "panels" on processors with AVX-512, for 355M."""
    page = PAGES["docs/measurements.md"]
    bench = re.search(
        r"^355M, random weights.*?^panels +\d+ +[\d.]+ ± [\d.]+ ms +[\d.]+ +((?:[\d.]+ +)+)", page, re.M | re.S
    )
    kernels = re.findall(r"^SkylakeX +\d+  panels \* +[\d.]+ ms +[\d.]+ +([\d.]+)", page, re.M)
    earlier = re.findall(r"gave V\(5\) / V\(1\) = ([\d.]+)", page)
    measured = [float(ratio) for ratio in (bench[1].split()[3], *kernels, *earlier)]
    assert len(measured) == 4
    notebook = (ROOT / "notebooks" / "06_why_it_is_fast.ipynb").read_text(encoding="utf-8")
    assert f"five tokens cost {min(measured):.1f} to {max(measured):.1f} times as much as one" in notebook
