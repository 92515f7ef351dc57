"""The blocks of the README and the docs and the docstrings' examples run; what they name is there."""

import doctest
import importlib
import pkgutil
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from command import run_here
from exactness import error_of
from helpers import ROOT

import gpt2np
import speculative
from speculative import AutoregressiveSampler, Sampling, SpeculativeSampler
from speculative.testing import TableModel, check_drafter

README = (ROOT / "README.md").read_text(encoding="utf-8")
FOLDERS = (".", "docs", "docs/raw", "notebooks", "notebooks/teaching", "gpt2np/tiny")
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for folder in FOLDERS
    for path in sorted((ROOT / folder).glob("*.md"))
}
PACKAGES = (gpt2np, speculative)
EXAMPLES = [
    name
    for package in PACKAGES
    for _, name, _ in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    if ">>>" in Path(find_spec(name).origin).read_text(encoding="utf-8")
]


def blocks(page, language=""):
    """The fenced blocks of a page in a language, those inside of a list as well."""
    found = re.findall(r"^( *)```(\w*)\n(.*?)^ *```$", page, re.M | re.S)
    return [re.sub(f"^{indent}", "", block, flags=re.M) for indent, kind, block in found if kind == language]


def normal(output):
    """Without the speedup, which depends on the machine and the moment."""
    return re.sub(r"^speedup .*$", "speedup _", output, flags=re.M).split()


def test_the_output_shown_is_that_of_the_command():
    (shown,) = [block for block in blocks(README) if block.startswith("$ python main.py | tail -n ")]
    command, *lines = shown.splitlines()
    output = run_here().stdout
    last = output.splitlines()[-int(command.rpartition(" ")[2]) :]
    assert normal("\n".join(last)) == normal("\n".join(lines))
    (quoted,) = re.findall(r"^> (.*)$", README, re.M)
    assert " ".join(output.split()).count(quoted) == 2  # without the draft model and with it


def test_the_options_shown_are_those_of_the_command():
    """When this fails: python dev/bench/run_blocks.py docs/options.md"""
    (block,) = [block for block in blocks(PAGES["docs/options.md"]) if block.startswith("$ python main.py ")]
    command, _, output = block.partition("\n")
    assert run_here(*command.split()[3:]).stdout.strip() == output.strip(), command


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "docs/serving.md",
        "docs/how_to.md",
        "docs/reading.md",
        "docs/coming_from.md",
        "docs/graders.md",
        "docs/techniques.md",
    ],
)
def test_the_python_blocks_run(name):
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks(PAGES[name], "python")), {}, name, name, 0)
    assert len(examples.examples) > 2, name
    assert runner.run(examples).failed == 0


def test_the_drafter_of_the_guide_is_exact_and_drafts_well(tiny_pair):
    (block,) = blocks(PAGES["CONTRIBUTING.md"], "python")
    exec(block, names := {})
    drafter_of = names["FollowerDrafter"]
    check_drafter(drafter_of(3))
    toy = lambda: SpeculativeSampler(TableModel.random(3, seed=1), drafter_of(3), K=2)  # noqa: E731
    assert error_of(toy(), 3, make=toy) < 1e-12
    target, _, tokenizer = tiny_pair
    sampler = SpeculativeSampler(target, drafter_of(target.n_vocab), sampling=Sampling(0))
    generation = sampler.generate(tokenizer.encode("Once upon a time"), 40)
    alone = AutoregressiveSampler(target, sampling=Sampling(0)).generate(generation.prompt, 40)
    assert generation.tokens.tolist() == alone.tokens.tolist() and generation.stats.tokens_per_target_call > 1.1


def anchors(page):
    """The anchors that GitHub makes of a page's headings, and those that it sets itself."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings} | {
        *re.findall(r'<a id="([\w-]+)">', page)
    }


@pytest.mark.parametrize("name", PAGES)
def test_every_file_and_every_anchor_that_a_page_names_is_there(name):
    names = re.findall(r"`((?:gpt2np|speculative|tests|notebooks|docs|dev)/[\w/.-]+)`", PAGES[name])
    assert [path for path in names if not (ROOT / path).exists()] == []
    for path, anchor in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", PAGES[name]):
        there = (ROOT / name).parent / path if path else ROOT / name
        assert there.exists(), path
        assert not anchor or anchor in anchors(there.read_text(encoding="utf-8")), (path, anchor)


@pytest.mark.parametrize("name", EXAMPLES)
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_a_docstring(package):
    assert [name for name in package.__all__ if not (getattr(package, name).__doc__ or "").strip()] == []


def test_the_workflow_runs_the_test_command_of_the_pages():
    """With the oldest versions that setup.py promises, and with the newest."""
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    command, _ = re.findall(r"^python -m pip install .* python -m pytest .*$", README, re.M)
    assert f"        run: {command}\n" in workflow and command in PAGES["CONTRIBUTING.md"]
    promised = (ROOT / "setup.py").read_text(encoding="utf-8")
    (python,), (numpy,) = (re.findall(part, promised) for part in (r'python_requires=">=(.*?)"', r'"numpy>=(.*?)"'))
    tried = [int(minor) for minor in re.findall(r" 3\.(\d+)\.\d+ ", PAGES["CONTRIBUTING.md"])]
    assert f"for minor in range({min(tried)}, {max(tried) + 1})" in promised and python == f"3.{min(tried)}"
    assert f'- {{ python: "{python}", numpy: "=={numpy}.0" }}\n' in workflow
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    assert yaml.safe_load(workflow)["jobs"]["tests"]["steps"]


def test_the_citations_are_of_this_version():
    """Where setup.py knows the address of the repository, the citation and the README do as well."""
    setup, citation = ((ROOT / name).read_text(encoding="utf-8") for name in ("setup.py", "CITATION.cff"))
    (entry,) = re.findall(r"`(@software\{.*?)`", README)
    (version,) = re.findall(r'version="(.*)"', setup)
    assert f"\nversion: {version}\n" in citation and f"{{{version}}}" in entry
    years = re.findall(r"^date-released: (\d{4})-\d\d-\d\d$", citation, re.M)
    is_published = f"## {version} (not published" not in PAGES["CHANGELOG.md"]
    assert len(years) == is_published and all(f"{{{year}}}" in entry for year in years)
    (url,) = re.findall(r'^URL = "(.*?)"', setup, re.M)
    assert not url or (f"\nrepository-code: {url}\n" in citation and f"git clone {url}" in README)
