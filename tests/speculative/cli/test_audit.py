"""`main.py audit` of a running server: right ones pass, wrong ones are found, and errors are sentences."""

import json
import time

import pytest
from command import refusal, run_here
from completion_server import WRONG, Engine, serving

from speculative.cli import server as client
from speculative.testing import betting

FOUND = {  # what the page says; the others differ in their sampled texts
    "twice": "DIFFERENT; texts repeat those before them",
    "late stop": "\n    stop 'went', 5 tokens: ",
    "stale": "not rounding",
}
SAMPLED = "SAMPLED TEXTS: DIFFERENT; "


def audited(url, *options):
    return run_here("audit", url, "--prompt", "the old", *options)


@pytest.fixture(autouse=True)
def found_at_once(monkeypatch):
    monkeypatch.setattr(betting, "N_LEAST", 64)


def test_a_right_server_passes():
    with serving(Engine("right").answer) as url:
        result = audited(url, "--n_max", "256")
    assert result.returncode == 0, result.stdout + result.stderr
    told = "no difference found, total variation 0.", "GREEDY TEXTS: equal, 48", "one text, also 8 times", "not seen: "
    assert all(said in result.stdout for said in told)
    assert "DID IT DRAFT" not in result.stdout and "DIFFER" not in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_a_right_server_passes_with_more_texts(seed):
    with serving(Engine("right").answer) as url:
        assert audited(url, "--n_max", "4096", "--seed", str(seed)).returncode == 0


QUICK = "typical", "twice", "late stop"


@pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=[] if mode in QUICK else [pytest.mark.slow]) for mode in WRONG]
)
def test_wrong_servers_are_found(mode):
    with serving(Engine(mode).answer) as url:
        result = audited(url, "--n_max", "64" if mode == "late stop" else "4096")
    assert result.returncode == 1 and FOUND.get(mode, SAMPLED) in result.stdout, result.stdout + result.stderr


@pytest.mark.slow
def test_two_servers_need_no_logprobs(tmp_path):
    def without_logprobs(engine):
        return lambda path, ask: engine.answer(path, {name: x for name, x in ask.items() if name != "logprobs"})

    journal = str(tmp_path / "audit.jsonl")
    with serving(without_logprobs(Engine("right"))) as url, serving(without_logprobs(Engine("alone"))) as without:
        options = "--without", without, "--n_max", "256", "--json", journal
        first = audited(url, *options)
        assert first.returncode == 0 and "256 texts of each" in first.stdout, first
    assert audited(url, *options).stdout.splitlines()[3:] == first.stdout.splitlines()[3:]  # the servers are gone
    assert "give --without" in refused_by(lambda path, ask: without_logprobs(Engine("right"))(path, ask))


def refused_by(answer, *options):
    with serving(answer) as url:
        return refusal("audit", url, "--prompt", "the old", *options)


def test_a_server_that_does_not_draft_is_asked_whether_it_does():
    with serving(Engine("alone").answer) as url:
        result = audited(url, "--n_max", "64")
    assert result.returncode == 0 and "BUT DID IT DRAFT?" in result.stdout


def test_what_a_server_refuses_is_left_out_and_said():
    engine = Engine("right")

    def picky(path, ask):
        return (400, b"no penalties") if "presence_penalty" in ask else engine.answer(path, ask)

    with serving(picky) as url:
        result = audited(url, "--n_max", "64")
    assert result.returncode == 0 and "never beside the texts: [{'presence_penalty': 1.5}]" in result.stdout


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda path, ask: (500, b"out of memory"), "answers 500: out of memory"),
        (lambda path, ask: (200, b"<html>hello</html>"), "expected JSON, got '<html>"),
        (lambda path, ask: {"tokens": [1]} if "tokenize" in path else {"choices": []}, "expected a completion, got"),
        (lambda path, ask: {"pieces": 3}, "expected tokens from /tokenize"),
        (lambda path, ask: time.sleep(1) or {}, "has not answered for 0.2 s"),
    ],
)
def test_a_server_without_a_usable_answer_is_one_sentence(answer, words, monkeypatch):
    monkeypatch.setattr(client, "TIMEOUT", 0.2)
    assert words in refused_by(answer)


def test_refusals():
    assert "cannot be reached" in refusal("audit", "http://127.0.0.1:9/v1")
    assert "expected a running server" in refusal("audit")
    assert "needs --top_k" in refusal("audit", "http://127.0.0.1:9/v1", "--temperature", "0.5", "--top_k", "0")
    assert "expected a JSON object" in refusal("audit", "http://127.0.0.1:9/v1", "--more", "top_k=3")
    assert "without" in refusal("audit", "http://127.0.0.1:9/v1", "--chat")


def test_further_fields_reach_the_server_and_null_leaves_one_out():
    seen = []

    def answer(path, ask):
        seen.append(ask)
        return 500, b""

    refused_by(lambda path, ask: {"tokens": [0]} if "tokenize" in path else answer(path, ask), "--model", "m",
               "--more", json.dumps({"cache": False, "min_p": None}))  # fmt: skip
    assert seen[0]["cache"] is False and seen[0]["model"] == "m" and "min_p" not in seen[0] and seen[0]["top_k"] == 3
