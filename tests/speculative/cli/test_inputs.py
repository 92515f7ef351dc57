"""Models and prompts that options name."""

import io
import json
import sys
from pathlib import Path

import pytest
from command import refusal, report_of, run_here
from helpers import ROOT
from systems import needs_any_name, needs_links, needs_proc

import gpt2np
from gpt2np.files.loading import find_folder
from speculative.cli.models import Models, nearest
from speculative.cli.options import Options
from speculative.cli.prompts import KNOWN, prompts_of
from speculative.cli.report import Report

FEW = ("--n_tokens_to_generate", "12")
TINY = ("--target_model_size", "tiny-draft", "--drafter", "prompt_lookup")


def test_the_nearest_name():
    names = ("tiny-target", "tiny-draft", "124M")
    assert [nearest(name, names) for name in ("tiny_target", "Tiny-Draf", "125M", "x")] == [*names, None]


# ------------------------------------------------------------------------------------------------ models


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tiny_target", "unknown model 'tiny_target': did you mean tiny-target?"),
        ("nothing/like/it", "unknown model 'nothing/like/it': expected tiny-target, tiny-draft, 124M"),
        ("tests", "tests lacks config.json and model.safetensors"),
        ("tests/golden", "tests/golden lacks vocab.json with merges.txt"),
        (
            "some/model.gguf",
            "some/model.gguf is a GGUF file, and this is GPT-2 in NumPy: see docs/engines.md for others",
        ),
    ],
)
def test_a_model_that_is_none_is_named_before_anything_is_loaded(name, message, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert refusal("--target_model_size", name).startswith(f"--target_model_size: {message}")
    assert f": {message}" in refusal("compare", "--target_model_size", f"tiny-draft,{name}", "--drafter=ngram")


@pytest.mark.parametrize(("config", "is_named"), [('{"model_type": "llama"}', True), ("[]", False), ("{", False)])
def test_a_folder_with_a_model_of_another_kind(config, is_named, tmp_path):
    (tmp_path / "config.json").write_text(config)
    sentence = refusal("--target_model_size", tmp_path)
    assert ("is a model of type 'llama', and this is GPT-2 in NumPy: see docs/engines.md" in sentence) == is_named
    assert is_named or "lacks model.safetensors" in sentence


def test_a_folder_that_may_not_be_read_is_named(monkeypatch, tmp_path):
    def forbidden(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", forbidden)
    sentence = refusal("--target_model_size", tmp_path)
    assert sentence.startswith("--target_model_size: cannot read ")
    assert sentence.endswith(" (Permission denied): name a folder that you may read")


def linked(folder, *names):
    source = find_folder("tiny-draft", None)
    for name in names:
        (folder / name).symlink_to(source / name)
    return json.loads((source / "vocab.json").read_text(encoding="utf-8"))


@needs_proc
@needs_links
def test_an_unreadable_model_is_named(tmp_path):
    linked(tmp_path, "config.json", "model.safetensors", "vocab.json")
    (tmp_path / "merges.txt").symlink_to("/proc/self/mem")  # a file that cannot be read, whoever asks
    assert " cannot be read (Input/output error)" in refusal("--target_model_size", tmp_path, *FEW)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target_model_size=124M"], "there is no smaller model to draft for 124M: choose a larger --target_model"),
        (["calibrate", "--target_model_size=124M"], "there is no smaller model to draft for 124M"),
        (["compare", "--target_model_size=124M"], "there is no smaller model to draft"),
    ],
)
def test_a_target_without_a_smaller_model_is_refused_before_any_weights_are_asked_for(words, message, monkeypatch):
    monkeypatch.setattr(gpt2np, "load", None)
    assert refusal(*words).startswith(message)


@needs_links
def test_the_draft_model_is_the_smallest_with_the_targets_vocabulary(tmp_path):
    linked(tmp_path, "config.json", "vocab.json", "merges.txt", "model.safetensors")
    for target, draft in (("tiny-target", ""), (str(tmp_path), ""), ("tiny-draft", "tiny-draft")):
        options = Options(target_model_size=target, draft_model_size=draft)
        assert Models(options, Report(False, "", {})).draft(options)[0] == "tiny-draft"


def test_a_draft_that_is_no_smaller_than_the_target_is_told_so():
    few = ("--n_tokens_to_generate=2", "--target_model_size=tiny-draft")
    assert "no smaller than the target: no speedup" in run_here(*few, "--draft_model_size=tiny-target").stdout
    assert "no smaller" not in run_here(*few[:1]).stdout


@needs_links
@needs_any_name
def test_control_characters_of_texts_and_names_do_not_reach_the_terminal(tmp_path):
    """A model whose full stop is an escape character, in a folder with another in its name."""
    folder = tmp_path / "m\033[31m"
    folder.mkdir()
    vocabulary = linked(folder, "config.json", "merges.txt", "model.safetensors")
    escape = "\u011b"  # the byte 27, as vocabularies write it
    for name in (".", ","):
        vocabulary[name], vocabulary[escape] = vocabulary[escape], vocabulary[name]
        (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
        words = (*TINY[2:], "--prompt", "a\033[2Jb\u202e", "--n_tokens_to_generate", "60")
        result = run_here("--target_model_size", folder, *words)
        assert result.returncode == 0 and "\033" not in result.stdout and "\u202e" not in result.stdout
        assert "a\u241b[2Jb\\u202e" in result.stdout and "m\u241b[31m" in result.stdout
    assert result.stdout.count("\u241b") > 4


# ------------------------------------------------------------------------------------------------ prompts


def test_prompts_from_a_file_are_its_lines(tmp_path, tiny_pair):
    target, _, tokenizer = tiny_pair
    options = Options(prompt_file=str(tmp_path / "file"))
    (tmp_path / "file").write_text("Once upon a time\n\n  there was \n", encoding="utf-8")
    found = prompts_of(options, target, tokenizer)
    assert [prompt.text for prompt in found] == ["Once upon a time", "  there was "]
    assert [tokenizer.decode(prompt.tokens) for prompt in found] == [prompt.text for prompt in found]
    (tmp_path / "file").write_text("\r\n", encoding="utf-8")
    with pytest.raises(ValueError, match="file is empty: write one prompt per line"):
        prompts_of(options, target, tokenizer)


def test_the_prompt_from_a_file_or_from_standard_input(tmp_path, monkeypatch):
    (tmp_path / "prompt").write_bytes("\ufeffOnce upon\u2028a time\r\n".encode())  # as Windows writes it
    assert report_of(*TINY, *FEW, "--prompt_file", tmp_path / "prompt")["prompt"] == "Once upon\u2028a time"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"One\n\nTwo\n")))
    page = run_here(
        "compare", "--prompt_file", "-", "--n_tokens_to_generate", "3", "--drafter", "suffix", "--by=prompt"
    )
    assert "\n1 One  " in page.stdout and "\n2 Two  " in page.stdout and "\nall  " in page.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a\nb\n", "prompts has 2 prompts, one per line, and this takes one: give one, or use the command `compare`"),
        (b"\xff\xfe", "prompts is not one"),
        (None, "prompts (No such file or directory): give a text"),
    ],
)
def test_a_prompt_that_cannot_be_read(text, message, tmp_path):
    if text:
        (tmp_path / "prompts").write_bytes(text)
    assert message in refusal("--prompt_file", tmp_path / "prompts")


def test_an_empty_prompt_starts_from_end_of_text():
    result = run_here("--prompt", "", *FEW)
    assert "\nspeculative\n<|endoftext|>" in result.stdout and report_of("--prompt", "", *FEW)["prompt_tokens"] == 1


LONG = json.dumps({"question_id": 91, "category": "rag", "prompt": "so long " * 300})


def test_what_is_left_out_of_a_file_of_questions_is_said(tmp_path):
    lines = [
        '{"question_id": 81, "category": "qa", "turns": ["Once upon\\na time", "And?"]}',
        LONG,
        '{"prompt": "Once"}',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    words = ("compare", "--prompt_file", tmp_path / "a.jsonl", "--n_tokens_to_generate=4", "--by=prompt")
    result = run_here(*words, "--json")
    assert result.stderr.splitlines() == [
        "note: left out: 1 of 3 prompts, too long for n_ctx 512 with 4 new tokens",
        "note: left out: 1 further turn, which only a model with a chat template can answer",
    ]
    assert [row["by"] for row in json.loads(result.stdout)["rows"]] == ["81 Once upon a time", "3 Once", "all"]
    (tmp_path / "a.jsonl").write_text(LONG, encoding="utf-8")
    assert "the first prompt: prompt has 601 tokens" in refusal(*words)


@pytest.mark.parametrize(
    "line",
    ["Once", "[]", '{"text": "a"}', '{"turns": []}', '{"turns": "a"}', '{"prompt": 3}', '{"turns": [["a"]]}']
    + [f'{{"prompt": "a", "question_id": {value}}}' for value in ("NaN", "1e999", "[1]")],
)
def test_a_line_that_is_no_question(line, tmp_path):
    (tmp_path / "a.jsonl").write_text(f'{{"prompt": "a"}}\n{line}\n', encoding="utf-8")
    message = refusal("compare", "--prompt_file", tmp_path / "a.jsonl")
    assert message.startswith('--prompt_file: expected {"prompt": TEXT} or {"turns": [TEXT, ...]}, with a whole number')
    assert f"in line 2 of {tmp_path / 'a.jsonl'}, got {line!r}" in message


def test_a_template_around_every_prompt(tmp_path):
    (tmp_path / "a.txt").write_text("Who?\nWhy?\n", encoding="utf-8")
    template, options = "A: {prompt}\\nB:", {"n_tokens_to_generate": 2, "prompt_template": "A: {prompt}\nB:"}
    pair = gpt2np.load("tiny-draft")
    found = prompts_of(Options(**options, prompt_file=str(tmp_path / "a.txt")), *pair)
    assert [prompt.text for prompt in found] == ["A: Who?\nB:", "A: Why?\nB:"]
    found = prompts_of(Options(**options, prompts="known", n_prompts=3), *pair)
    assert [prompt.text for prompt in found] == [f"A: {prompt}\nB:" for prompt in KNOWN[:3]] and len(KNOWN) == 7
    assert report_of(*TINY, *FEW, f"--prompt_template={template}", "--prompt", "a\nb")["prompt"] == "A: a\nb\nB:"


def test_repeating_prompts_go_on_with_the_targets_own_text(tiny_pair):
    target, _, tokenizer = tiny_pair
    plain, longer = (
        prompts_of(Options(prompts=name, n_prompts=2, n_tokens_to_generate=4), target, tokenizer)
        for name in ("tales", "repeating")
    )
    assert [prompt.tokens for prompt in plain] == [prompt.tokens[:32] for prompt in longer]
    assert {len(prompt.tokens) for prompt in longer} == {232}
    assert "prompt 1 of 12: prompt has 32 tokens and n_tokens is 500" in refusal(
        "compare", "--prompts=repeating", "--n_tokens_to_generate=300"
    )
