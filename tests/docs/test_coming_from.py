"""Every command of docs/coming_from.md starts, with the bundled pair in the place of the models that it names."""

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from command import run_here
from helpers import ROOT

import gpt2np.__main__ as alone
from gpt2np.files.loading import find_folder
from gpt2np.files.model_files import known_as
from speculative.cli.commands import generate

PAGE = (ROOT / "docs" / "coming_from.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S) for line in block.splitlines()]
LENGTH = re.compile(r"(--n_tokens_to_generate|--max_new_tokens|--max-tokens|-n) \d+")
LARGE, SMALL = ("1558M", "774M"), ("124M", "distilgpt2")


def stand_in(folder, large, small):
    """Folders for the names on the page."""
    for names, source in ((LARGE, large), (SMALL, small)):
        for name in names:
            shutil.copytree(source, folder / "models" / name)
    (folder / "prompt.txt").write_text("Once upon a time\n")


def started(command):
    """(exit code, output) of a command of the page."""
    words = shlex.split(command)
    if words[1] == "main.py":
        result = run_here(*words[2:])
        return result.returncode, result.stdout, result.stderr
    with contextlib.redirect_stdout(io.StringIO()) as out:
        prompt, *others = words[3:]
        names = [name.removeprefix("--") for name in others[::2]]
        texts = {name: int(text) if text.isdigit() else text for name, text in zip(names, others[1::2])}
        alone.main(prompt, **texts)
    return 0, out.getvalue(), ""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(generate, "MOST_LAPS", 1)
    stand_in(tmp_path, find_folder("tiny-target", None), find_folder("tiny-draft", None))
    command = re.sub(r"--n_prompts \d+", "--n_prompts 2", LENGTH.sub(r"\1 4", command).replace("1-10", "1-2"))
    code, output, errors = started(command)
    assert code == 0 and output, errors
    assert [line for line in errors.splitlines() if not re.match("note: .* no effect", line)] == []
    target = re.search(r"(?:--target_model_size|--model|-m) (\S+)", command)
    if target and "main.py" in command:
        assert re.search(rf"^target +{known_as(target[1])}", output, re.M)


@pytest.mark.slow
def test_the_commands_with_models_of_true_shapes(tmp_path, monkeypatch):
    """355M and 124M, in the place of larger ones as well."""
    pytest.importorskip("safetensors", reason="the models are written with safetensors")
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, ROOT / "dev" / "train" / "grow_pair.py", tmp_path / "grown"], check=True)
    (tmp_path / "models").mkdir()
    for names, size in ((LARGE, "355M"), (SMALL, "124M")):
        for name in names:
            (tmp_path / "models" / name).symlink_to(tmp_path / "grown" / size)
    (tmp_path / "prompt.txt").write_text("Once upon a time\n")
    for command in COMMANDS:
        command = re.sub(r"--n_prompts \d+", "--n_prompts 2", LENGTH.sub(r"\1 8", command).replace("1-10", "1-2"))
        code, output, errors = started(command)
        assert code == 0 and output, (command, errors)


def test_gpt2np_continues_a_text_as_the_samplers_do(tiny_pair, capsys):
    from speculative import AutoregressiveSampler, Sampling

    target, _, tokenizer = tiny_pair
    alone.main("Once upon a time", n_tokens_to_generate=12)
    sampler = AutoregressiveSampler(target, sampling=Sampling(0))
    tokens = sampler.generate(tokenizer.encode("Once upon a time"), 12).tokens
    assert capsys.readouterr().out == tokenizer.decode(tokens.tolist()) + "\n"
    for how in ({"words": 3}, {"n_tokens_to_generate": 0}, {"n_tokens_to_generate": 900}, {"model_size": "nothing"}):
        with pytest.raises(SystemExit, match=r"^gpt2np: (expected|unknown|--n_tokens|4 tokens)"):
            alone.main("Once upon a time", **how)
