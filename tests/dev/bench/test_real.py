"""dev/bench/real.py: a run that is killed at any moment and started again has the counts of an undisturbed one."""

import json

import pytest
from helpers import script

real = script("dev/bench/real.py")
PAIR = {
    "target_model_size": "tiny-target", "draft_model_size": "tiny-draft", "K": "1,3", "n_tokens_to_generate": "12",
    "n_prompts": "2",
}  # fmt: skip


def counts(path):
    """What no clock has measured, of each text and of each comparison with transformers."""
    parts = map(json.loads, path.read_text("utf-8").splitlines()[1:])
    return {part["part"]: (part.get("tokens"), part.get("calls"), part.get("other")) for part in parts}


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_killed_and_started_again(tmp_path, capsys):
    path = tmp_path / "whole.jsonl"
    real.main(str(path), **PAIR)
    whole, said, content = counts(path), capsys.readouterr().out, path.read_bytes()
    assert said.count("exact, same 2/2") == 2 and len(whole) >= 2 + 2 * 2 * 3
    for size in (len(content) // 5, len(content) // 2, len(content) - 9):  # in the middle of a line
        again = tmp_path / f"{size}.jsonl"
        again.write_bytes(content[:size])
        real.main(str(again), **PAIR)
        assert counts(again) == whole
    for changed in ({"n_tokens_to_generate": "13"}, {"n_prompts": "3"}, {"target_model_size": "tiny-draft"}):
        with pytest.raises(ValueError, match="was made with"):
            real.main(str(path), **PAIR | changed)
    cut = tmp_path / "unfinished.jsonl"
    cut.write_bytes(content[: content.rindex(b'{"part": "tiny-target, temperature 1')])
    real.main(str(cut), table="True", csv=str(tmp_path / "a.csv"))
    assert "exact, same 1/1" in capsys.readouterr().out
    assert len((tmp_path / "a.csv").read_text("utf-8").splitlines()) == 1 + 4  # K = 1, 3 at two temperatures
