"""Models and prompts that options name."""

import io
import json
import sys
from pathlib import Path

from command import refusal, report_of, run_here
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


def test_no_weights_are_asked_for_where_a_target_has_no_smaller_model(monkeypatch):
    monkeypatch.setattr(gpt2np, "load", None)
    for words in ([], ["calibrate"], ["compare"]):
        assert refusal(*words, "--target_model_size=124M").startswith("there is no smaller model")


def test_a_text_that_is_not_in_utf8(tmp_path):
    (tmp_path / "prompts").write_bytes(b"\xff\xfe")
    assert "expected a text in UTF-8, and " in refusal("--prompt_file", tmp_path / "prompts")


@needs_proc
@needs_links
def test_an_unreadable_model_is_named(tmp_path):
    linked(tmp_path, "config.json", "model.safetensors", "vocab.json")
    (tmp_path / "merges.txt").symlink_to("/proc/self/mem")  # a file that cannot be read, whoever asks
    assert " cannot be read (Input/output error)" in refusal("--target_model_size", tmp_path, *FEW)


@needs_links
def test_the_draft_model_is_the_smallest_with_the_targets_vocabulary(tmp_path):
    linked(tmp_path, "config.json", "vocab.json", "merges.txt", "model.safetensors")
    for target, draft in (("tiny-target", ""), (str(tmp_path), ""), ("tiny-draft", "tiny-draft")):
        options = Options(target_model_size=target, draft_model_size=draft)
        assert Models(options, Report(False, "", {})).draft(options)[0] == "tiny-draft"


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


def test_the_prompt_from_a_file_or_from_standard_input(tmp_path, monkeypatch):
    (tmp_path / "prompt").write_bytes("\ufeffOnce upon\u2028a time\r\n".encode())  # as Windows writes it
    assert report_of(*TINY, *FEW, "--prompt_file", tmp_path / "prompt")["prompt"] == "Once upon\u2028a time"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"One\n\nTwo\n")))
    page = run_here(
        "compare", "--prompt_file", "-", "--n_tokens_to_generate", "3", "--drafter", "suffix", "--by=prompt"
    )
    assert "\n1 One  " in page.stdout and "\n2 Two  " in page.stdout and "\nall  " in page.stdout


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
