"""Every command of docs/coming_from.md starts, with the bundled pair in the place of the models that it names."""

import contextlib
import io
import re
import shlex
import shutil

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
STAND_INS = {"1558M": "tiny-target", "774M": "tiny-target", "124M": "tiny-draft", "distilgpt2": "tiny-draft"}


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
    monkeypatch.setattr(generate, "LAPS", {})
    for name, size in STAND_INS.items():
        shutil.copytree(find_folder(size, None), tmp_path / "models" / name)
    (tmp_path / "prompt.txt").write_text("Once upon a time\n")
    command = re.sub(r"--n_prompts \d+", "--n_prompts 2", LENGTH.sub(r"\1 4", command).replace("1-10", "1-2"))
    code, output, errors = started(command)
    assert code == 0 and output, errors
    assert [line for line in errors.splitlines() if not re.match("note: .* no effect", line)] == []
    target = re.search(r"(?:--target_model_size|--model|-m) (\S+)", command)
    if target and "main.py" in command:
        assert re.search(rf"^target +{known_as(target[1])}", output, re.M)


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
