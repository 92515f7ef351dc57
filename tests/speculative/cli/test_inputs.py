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
from speculative.cli.inputs import check_prompts, dialogue_prompts, draft_name, nearest, prompts_of
from speculative.cli.options import Options

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
    assert refusal("alpha_table", "--target_sizes", f"tiny-draft,{name}").startswith(f"--target_sizes: {message}")


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
        (["method_table", "--target_model_size=124M", "--drafters=model"], "there is no smaller model to draft"),
    ],
)
def test_a_target_without_a_smaller_model_is_refused_before_any_weights_are_asked_for(words, message, monkeypatch):
    monkeypatch.setattr(gpt2np, "load", None)
    assert refusal(*words).startswith(message)


@pytest.mark.parametrize(
    ("target", "draft"), [("tiny-target", "tiny-draft"), ("tiny-draft", ""), ("124M", "")]
    + [(size, "124M") for size in ("355M", "774M", "1558M")]
)  # fmt: skip
def test_the_draft_model_of_each_size(target, draft):
    assert draft_name(Options(target_model_size=target)) == draft
    assert draft_name(Options(target_model_size=target, draft_model_size="355M")) == "355M"


@needs_links
def test_the_draft_model_of_a_folder_is_the_one_with_its_vocabulary(tmp_path):
    linked(tmp_path, "config.json", "vocab.json", "merges.txt", "model.safetensors")
    assert draft_name(Options(target_model_size=str(tmp_path))) == "tiny-draft"
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    for n_vocab, draft in ((50257, "124M"), (50258, "")):
        (tmp_path / "config.json").unlink()
        (tmp_path / "config.json").write_text(json.dumps({**config, "vocab_size": n_vocab}), encoding="utf-8")
        assert draft_name(Options(target_model_size=str(tmp_path))) == draft


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
    for text, lines in (("Once upon a time\n\n  there was \n", ["Once upon a time", "  there was "]), ("\r\n", None)):
        (tmp_path / "file").write_text(text, encoding="utf-8")
        if lines:
            assert [tokenizer.decode(tokens) for tokens in prompts_of(options, tokenizer, target)] == lines
    with pytest.raises(ValueError, match="file is empty: write one prompt per line"):
        prompts_of(options, tokenizer, target)


def test_the_prompt_from_a_file_or_from_standard_input(tmp_path, monkeypatch):
    (tmp_path / "prompt").write_bytes("\ufeffOnce upon\u2028a time\r\n".encode())  # as Windows writes it
    assert report_of(*TINY, *FEW, "--prompt_file", tmp_path / "prompt")["prompt"] == "Once upon\u2028a time"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"One\n\nTwo\n")))
    page = run_here("prompts", "--prompt_file", "-", "--n_tokens_to_generate", "3", "--drafter", "suffix").stdout
    assert "\nOne  " in page and "\nTwo  " in page and "\nall 2  " in page


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a\nb\n", "prompts has 2 prompts, one per line, and a comparison takes one"),
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


def test_places_in_dialogue_have_quotation_marks(tiny_pair):
    _, _, tokenizer = tiny_pair
    found = dialogue_prompts(tokenizer, 5)
    assert len({tuple(tokens) for tokens in found}) == 5
    assert all(len(tokens) == 32 and tokenizer.decode(tokens).count('"') >= 4 for tokens in found)


def test_prompts_need_room(tiny_pair):
    message = r"^prompt 2 of 2: prompt has 500 tokens and n_tokens is 20, but n_ctx is 512"
    with pytest.raises(ValueError, match=message):
        check_prompts([[0], [0] * 400], 20, tiny_pair[0], n_ahead=100)
