"""Models and prompts that options name."""

import io
import json
import sys
from pathlib import Path

import pytest
from command import AGAIN, refusal, row_of, run_here
from systems import needs_any_name, needs_links, needs_proc

import gpt2np
from gpt2np.files.loading import find_folder
from speculative.cli.options import Options
from speculative.cli.prompts import KNOWN, prompts_of

TINY = ("--target_model_size=tiny-draft", "--drafter=prompt_lookup", "--n_tokens_to_generate=12")


# ------------------------------------------------------------------------------------------------ models


def linked(folder, *names):
    """A folder with links to these files of tiny-draft; returns its vocabulary."""
    Path(folder).mkdir()
    source = find_folder("tiny-draft", None)
    for name in ("config.json", "model.safetensors", *names):
        Path(folder, name).symlink_to(source / name)
    return json.loads((source / "vocab.json").read_text(encoding="utf-8"))


@needs_proc
@needs_links
def test_what_cannot_be_read_is_named(monkeypatch):
    """A prompt that is no text, a model's file, its folder."""
    Path("prompts").write_bytes(b"\xff\xfe")
    assert "expected a text in UTF-8, and " in refusal("--prompt_file=prompts")
    linked("model", "vocab.json")
    Path("model/merges.txt").symlink_to("/proc/self/mem")  # a file that cannot be read, whoever asks
    assert " cannot be read (Input/output error)" in refusal("--target_model_size=model")

    def forbidden(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", forbidden)
    sentence = "--target_model_size: cannot read model (Permission denied): name a folder that you may read"
    assert refusal("--target_model_size=model") == sentence


def test_a_model_of_the_hub_and_its_draft(hub):
    """It drafts with the smallest model of its vocabulary; with a vocabulary of its own, there is none by default."""
    page = run_here("--model", "owner/gpt2-like", "--n_tokens_to_generate=3").stdout
    assert "target  owner/gpt2-like" in page and "draft   tiny-draft" in page
    files = {name: body for name, body in hub.files.items() if name.startswith("/owner/gpt2-like/")}
    vocabulary = json.loads(files["/owner/gpt2-like/resolve/main/vocab.json"])
    vocabulary["."], vocabulary[","] = vocabulary[","], vocabulary["."]
    files["/owner/gpt2-like/resolve/main/vocab.json"] = json.dumps(vocabulary).encode()
    hub.files |= {name.replace("gpt2-like", "german"): body for name, body in files.items()}
    sentence = "no smaller model is known that drafts for owner/german: name one with --draft_model_size, or add "
    words = ("--model", "owner/german", "--n_tokens_to_generate=3")
    assert refusal(*words).startswith(sentence)
    assert run_here(*words, "--drafter=prompt_lookup").returncode == 0


def test_a_target_whose_usual_draft_cannot_be_downloaded(monkeypatch):
    """The sentence does not ask for a model that nobody named."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("speculative.cli.models.smallest", lambda tokenizer: "124M")
    assert refusal().startswith("no smaller model is known that drafts for tiny-target: name one with ")
    assert not Path("models").exists()


@needs_links
@needs_any_name
def test_control_characters_of_texts_and_names_do_not_reach_the_terminal():
    """A model whose full stop and comma are an escape character, in a folder with another in its name."""
    vocabulary = linked("m\033[31m", "merges.txt")
    escape = "\u011b"  # the byte 27, as vocabularies write it
    for name in (".", ","):
        vocabulary[name], vocabulary[escape] = vocabulary[escape], vocabulary[name]
    Path("m\033[31m", "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    words = (TINY[1], "--prompt", "a\033[2Jb\u202e", "--n_tokens_to_generate=60")
    result = run_here("--target_model_size=m\033[31m", *words)
    assert result.returncode == 0 and "\033" not in result.stdout and "\u202e" not in result.stdout
    assert "a\u241b[2Jb\\u202e" in result.stdout and "m\u241b[31m" in result.stdout
    assert result.stdout.count("\u241b") > 4


# ------------------------------------------------------------------------------------------------ prompts


def test_prompts_that_are_known_in_a_template():
    target, tokenizer = gpt2np.load("tiny-draft")
    options = Options(n_tokens_to_generate=2, template="A: {prompt}\nB:", prompts="known", n_prompts=9)
    found = [(prompt.text, tokenizer.decode(prompt.tokens)) for prompt in prompts_of(options, target, tokenizer)]
    assert found == [(f"A: {text}\nB:",) * 2 for text in KNOWN]


def test_the_prompt_from_a_file_from_standard_input_or_in_a_template(monkeypatch):
    Path("prompt").write_bytes("\ufeffOnce upon\u2028a time\r\n".encode())  # as Windows writes it
    assert row_of(*TINY, "--prompt_file=prompt")["prompt"] == "Once upon\u2028a time"
    assert row_of(*TINY, "--template=A: {prompt}\\nB:", "--prompt", "a\nb")["prompt"] == "A: a\nb\nB:"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"One\n\nTwo\n")))
    words = ("--prompt_file=-", "--template=A {prompt}", TINY[0], "--n_tokens_to_generate=3", "--drafter=prompt_lookup")
    page = run_here("compare", *words, "--by=prompt").stdout
    assert "\n1 A One  " in page and "\n2 A Two  " in page and "\nall  " in page


@pytest.mark.parametrize(
    "line",
    ["[]", '{"text": "a"}', '{"turns": []}', '{"turns": "a"}', '{"prompt": 3}', '{"prompt": "a", "question_id": NaN}'],
)
def test_a_line_that_is_no_question_is_shown(line):
    Path("q.jsonl").write_text(f'{{"prompt": "a"}}\n{line}\n')
    sentence = refusal("compare", "--prompt_file=q.jsonl")
    assert sentence.startswith("--prompt_file: expected ") and "in line 2 of q.jsonl, got" in sentence


def test_repeating_prompts_go_on_with_the_targets_own_text():
    pair = gpt2np.load("tiny-draft")
    tales, repeating = (
        prompts_of(Options(prompts=name, n_prompts=2, n_tokens_to_generate=4), *pair) for name in ("tales", "repeating")
    )
    assert [prompt.tokens for prompt in tales] == [prompt.tokens[:32] for prompt in repeating]
    assert {len(prompt.tokens) for prompt in repeating} == {232}


# ------------------------------------------------------------------------------------------------ drafters


@pytest.mark.parametrize(
    ("imported", "proposes", "sentence"),
    [
        ("sys.exit(0)", "", "d.py cannot be imported: SystemExit: 0 (line 2 of d.py)"),
        ("os.chdir('/')", "", "d.py cannot be imported: RuntimeError: os.chdir is not allowed here: use whole paths"),
        ("", "sys.exit(0)", "SystemExit: 0 (line 4 of d.py)"),
        ("", "os.chdir('/')", "RuntimeError: os.chdir is not allowed here: use whole paths (line 4 of d.py)"),
    ],
)
def test_a_drafter_that_leaves_is_an_error_of_its_own(tmp_path, imported, proposes, sentence):
    drafter = f"class Leaves:\n    def propose(self, *_): {proposes or 'pass'}\nd = Leaves()"
    Path("d.py").write_text(f"import os, sys\n{imported}\n{drafter}")
    result = run_here("--drafter=d.py:d", *TINY[2:])
    assert result.returncode == 2 and sentence in result.stderr and Path.cwd() == tmp_path


def test_what_a_drafter_prints_as_it_is_imported_is_not_in_the_report():
    Path("d.py").write_text(f"print('loaded')\n{AGAIN}")
    assert row_of("--drafter=d.py:Again", *TINY[2:])["same_texts"]
